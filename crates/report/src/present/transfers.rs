//! What calls of MPI-IO and of one-sided communication have moved, and how fast, as text.

use mpiprobe_functions::Group;
use mpiprobe_model::{FunctionRow, Profile, Volume};

use super::{
    table::{Column, TextOptions, left, right, section, table},
    units::{bytes, count, duration, time_unless, unless},
};

/// Empty if no such function was called, or it is not known what they move.
pub(super) fn transfers(options: &TextOptions, profile: &Profile) -> String {
    let io = of_group(options, profile, Group::Io, "I/O, all ranks", ["written", "read"]);
    let one_sided = of_group(options, profile, Group::OneSided, "One-sided, all ranks", ["put", "got"]);
    [io, one_sided].into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn of_group(options: &TextOptions, profile: &Profile, group: Group, title: &str, moved: [&'static str; 2]) -> String {
    let rows = profile.functions.iter().map(|function| &function.all).filter(|row| row.group == group.title());
    let rows: Vec<(&FunctionRow, &Volume, &Volume)> =
        rows.filter_map(|row| row.traffic.as_ref().map(|traffic| (row, &traffic.sent, &traffic.received))).collect();
    if rows.iter().all(|(_, sent, received)| sent.messages == 0 && received.messages == 0) {
        return String::new();
    }
    let [sent, received] = moved;
    let columns: [Column; 9] = [
        left("function"),
        right("calls"),
        right("time"),
        right("mean").spare(),
        right(sent),
        right("each").spare_first(),
        right(received),
        right("each").spare_first(),
        right("in a second of it"),
    ];
    let cells = rows.iter().map(|(row, sent, received)| {
        let moved = sent.bytes.saturating_add(received.bytes);
        let per_s = if row.time_ns == 0 { None } else { Some(moved as f64 / (row.time_ns as f64 / 1e9)) };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes in a second, never negative"
        )]
        let per_s = per_s.filter(|_| moved > 0).map_or_else(String::new, |rate| bytes(rate.round() as u64));
        let mut cells = vec![
            row.name.to_owned(),
            count(row.calls),
            time_unless(row.untimed_calls, row.time_ns),
            unless(row.untimed_calls, duration(row.mean_ns)),
        ];
        cells.extend(volume(sent, 0));
        cells.extend(volume(received, row.traffic.as_ref().map_or(0, |traffic| traffic.received_at_most_bytes)));
        cells.push(unless(row.untimed_calls, per_s));
        cells
    });
    section(title, &table(options, &columns, cells))
}

/// Bytes that went one way, and how many in a call; `<=` if some of them are an upper bound.
pub(super) fn volume(volume: &Volume, at_most: u64) -> [String; 2] {
    if volume.messages == 0 {
        return [String::new(), String::new()];
    }
    let sign = if at_most > 0 { "<= " } else { "" };
    [format!("{sign}{}", bytes(volume.bytes)), bytes(volume.bytes / volume.messages)]
}
