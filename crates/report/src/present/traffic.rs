//! Communicators, sizes of messages and partners as text.

use std::cmp::Reverse;

use mpiprobe_model::{
    Amounts, CommunicatorProfile, FunctionProfile, PartnerRow, Profile, SaturatingSum as _, TrafficProfile,
};

use super::{
    pending::pending,
    table::{RANKS, TextOptions, left, right, section, table},
    units::{binary, bytes, count, ns, or_unknown, percent},
};
use crate::By;

/// Communicators and pairs of ranks shown, of those with most in them.
const SHOWN: usize = 20;

/// What `--traffic` has found out beyond functions and places.
pub(super) fn traffic(options: &TextOptions, profile: &Profile) -> String {
    let Some(traffic) = &profile.traffic else { return String::new() };
    let sections = [
        communicators(options, traffic),
        communicator_sizes(options, traffic),
        sizes(options, &profile.functions),
        partners(options, profile, &traffic.partners),
        pending(options, profile),
    ];
    let shown: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    shown.join("\n")
}

fn communicators(options: &TextOptions, traffic: &TrafficProfile) -> String {
    let columns = [
        left("communicator"),
        right("size"),
        right("calls"),
        right("time"),
        right("sent"),
        right("received").spare(),
        left("most time in").spare_first(),
    ];
    let mut by_time: Vec<&CommunicatorProfile> = traffic.communicators.iter().collect();
    by_time.retain(|communicator| communicator.amounts.calls > 0);
    let by = options.by.unwrap_or(By::Time);
    by_time.sort_by_key(|communicator| Reverse((by.of_amounts(&communicator.amounts), communicator.amounts.calls)));
    let (shown, rest) = by_time.split_at_checked(options.rows(SHOWN)).unwrap_or((&by_time, &[]));
    let row = |communicator: &CommunicatorProfile| {
        let mut row = vec![communicator.name.clone(), size(communicator)];
        row.extend(amounts(&communicator.amounts));
        row.push(communicator.functions.first().map_or("", |most| most.function).into());
        row
    };
    let mut rows: Vec<Vec<String>> = shown.iter().map(|communicator| row(communicator)).collect();
    let mut others = traffic.other_communicators.unwrap_or_default();
    others.communicators = others.communicators.saturating_add(rest.len() as u64);
    for communicator in rest {
        others.amounts.add(&communicator.amounts);
    }
    if others.communicators > 0 {
        let mut row = vec![format!("{} others", count(others.communicators)), String::new()];
        row.extend(amounts(&others.amounts));
        rows.push(row);
    }
    if rows.is_empty() { String::new() } else { section("Communicators, all ranks", &table(options, &columns, rows)) }
}

fn size(communicator: &CommunicatorProfile) -> String {
    let size = or_unknown(communicator.size);
    communicator.remote_size.map_or(size.clone(), |remote| format!("{size}+{remote}"))
}

/// Calls, time, bytes sent and received.
pub(super) fn amounts(amounts: &Amounts) -> [String; 4] {
    let unless_zero = |amount: u64, at_most: bool| match amount {
        0 => String::new(),
        amount => format!("{}{}", if at_most { "<= " } else { "" }, bytes(amount)),
    };
    [
        count(amounts.calls),
        ns(amounts.time_ns),
        unless_zero(amounts.sent_bytes, false),
        unless_zero(amounts.received_bytes, amounts.received_at_most_bytes > 0),
    ]
}

/// Rows against columns of a process grid: worth a table only if there are different sizes in use.
fn communicator_sizes(options: &TextOptions, traffic: &TrafficProfile) -> String {
    let columns = [
        right("size"),
        right("communicators"),
        right("calls"),
        right("time"),
        right("sent"),
        right("received").spare(),
    ];
    let used: Vec<_> = traffic.communicator_sizes.iter().filter(|row| row.amounts.calls > 0).collect();
    if used.len() < 2 {
        return String::new();
    }
    let rows = used.into_iter().map(|row| {
        let mut cells = vec![row.size.to_string(), count(row.communicators)];
        cells.extend(amounts(&row.amounts));
        cells
    });
    section("Communicators by size", &table(options, &columns, rows))
}

/// Messages of one size, over functions.
#[derive(Clone, Copy, Debug, Default)]
struct OfSize<'a> {
    sent: u64,
    received: u64,
    /// The function with most of both, and how many.
    most: (u64, &'a str),
}

/// Messages by powers of two of their sizes.
fn sizes(options: &TextOptions, functions: &[FunctionProfile]) -> String {
    let mut sizes: Vec<OfSize<'_>> = Vec::new();
    for function in functions {
        let Some(traffic) = &function.all.traffic else { continue };
        let (sent, received) = (&traffic.sent.sizes, &traffic.received.sizes);
        sizes.resize(sizes.len().max(sent.len()).max(received.len()), OfSize::default());
        for (place, row) in sizes.iter_mut().enumerate() {
            let of = |messages: &[u64]| messages.get(place).copied().unwrap_or(0);
            let own = (of(sent), of(received));
            (row.sent, row.received) = (row.sent.saturating_add(own.0), row.received.saturating_add(own.1));
            row.most = row.most.max((own.0.saturating_add(own.1), function.all.name));
        }
    }
    let all = |of: fn(&OfSize<'_>) -> u64| sizes.iter().map(of).saturating_sum();
    let (sent, received) = (all(|row| row.sent), all(|row| row.received));
    if sent == 0 && received == 0 {
        return String::new();
    }
    let columns = [
        right("size"),
        right("sent"),
        right("%"),
        right("received"),
        right("%").spare(),
        left("most of them by").spare_first(),
    ];
    let part = |number: u64, whole: u64| match (number, whole) {
        (0, _) | (_, 0) => [String::new(), String::new()],
        _ => [count(number), percent(100.0 * number as f64 / whole as f64)],
    };
    let used = (0_u32..).zip(&sizes).filter(|(_, row)| row.sent > 0 || row.received > 0);
    let rows = used.map(|(bits, row)| {
        let mut cells = vec![range(bits)];
        cells.extend(part(row.sent, sent));
        cells.extend(part(row.received, received));
        cells.push(row.most.1.to_owned());
        cells
    });
    section("Messages by size", &table(options, &columns, rows))
}

/// "0 B", "1 B", "8 to 15 B", "from 4 KiB"
fn range(bits: u32) -> String {
    let Some(low) = bits.checked_sub(1).map(|shift| 1_u64.checked_shl(shift).unwrap_or(u64::MAX)) else {
        return "0 B".into();
    };
    match low {
        1 => "1 B".into(),
        low if low < 1024 => format!("{low} to {} B", low.saturating_mul(2) - 1),
        low => format!("{} to < {}", binary(low), binary(low.saturating_mul(2))),
    }
}

fn partners(options: &TextOptions, profile: &Profile, partners: &[PartnerRow]) -> String {
    if partners.is_empty() {
        return String::new();
    }
    let ranks = partners.iter().map(|pair| pair.rank.max(pair.peer)).max().unwrap_or(0) as usize + 1;
    match RANKS.get(..ranks) {
        Some(ranks) if profile.jobs.len() == 1 && options.top.is_none() && options.by.is_none() => {
            matrix(options, ranks, partners)
        }
        _ => pairs(options, partners),
    }
}

fn matrix(options: &TextOptions, ranks: &[&'static str], partners: &[PartnerRow]) -> String {
    let mut columns = vec![right("from")];
    columns.extend(ranks.iter().map(|number| right(number).spare()));
    let rows = (0..).zip(ranks).map(|(rank, number)| {
        let cell = |peer: u32| {
            let pair = partners.iter().find(|pair| (pair.rank, pair.peer) == (rank, peer));
            pair.map_or_else(String::new, |pair| bytes(pair.amounts.sent_bytes))
        };
        let mut row = vec![(*number).to_owned()];
        row.extend((0..).zip(ranks).map(|(peer, _)| cell(peer)));
        row
    });
    section("Sent from rank to rank, collectives left out", &table(options, &columns, rows))
}

fn pairs(options: &TextOptions, partners: &[PartnerRow]) -> String {
    let columns =
        [right("rank"), right("partner"), right("calls"), right("time"), right("sent"), right("received").spare()];
    let shown = options.rows(SHOWN);
    let mut sorted: Vec<&PartnerRow> = partners.iter().collect();
    if let Some(by) = options.by {
        sorted.sort_by_key(|pair| Reverse(by.of_amounts(&pair.amounts)));
    }
    let rows = sorted.into_iter().take(shown).map(|pair| {
        let mut row = vec![pair.rank.to_string(), pair.peer.to_string()];
        row.extend(amounts(&pair.amounts));
        row
    });
    let text = table(options, &columns, rows) + &options.more(shown, partners.len(), "pairs");
    section("Pairs of ranks, collectives left out", &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_sizes_are_read_at_a_glance() {
        let shown = [0, 1, 2, 4, 10, 11, 21, 64].map(range);
        assert_eq!(
            shown,
            [
                "0 B",
                "1 B",
                "2 to 3 B",
                "8 to 15 B",
                "512 to 1023 B",
                "1 KiB to < 2 KiB",
                "1 MiB to < 2 MiB",
                "8 EiB to < 16 EiB"
            ]
        );
    }
}
