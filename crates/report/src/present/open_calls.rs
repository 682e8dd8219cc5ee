//! Single calls as text: open ones, ones that began before attach, and those inside others.

use mpiprobe_model::{BeganBeforeRow, OpenCallInfo, Profile, RankProfile};

use super::{
    doing::called,
    table::{Column, TextOptions, left, right, section, table},
    units::{count, ns, or_unknown},
};

/// Calls shown.
const SHOWN: usize = 32;

fn listed(options: &TextOptions, title: &str, columns: &[Column], mut rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let more = options.more(options.rows(SHOWN), rows.len(), "calls");
    rows.truncate(options.rows(SHOWN));
    section(title, &(table(options, columns, rows) + &more))
}

/// Those that MPI has made inside others (`--nested`).
pub(super) fn inner_calls(options: &TextOptions, profile: &Profile) -> String {
    let Some(inner) = &profile.inner_calls else { return String::new() };
    let columns = [left("inside"), left("function"), right("calls"), right("time")];
    let rows = inner
        .iter()
        .take(options.rows(SHOWN))
        .map(|calls| vec![calls.outer.into(), calls.inner.into(), count(calls.calls), ns(calls.time_ns)]);
    section(
        "Calls made by MPI inside MPI (not in the tables above)",
        &(table(options, &columns, rows) + &options.more(options.rows(SHOWN), inner.len(), "of them")),
    )
}

/// Calls that have not returned, and those of which nobody has seen the beginning.
pub(super) fn open_calls(options: &TextOptions, profile: &Profile) -> String {
    let columns = [
        right("rank"),
        right("pid").spare_first(),
        left("function"),
        right("open for"),
        left("called at"),
        left("").spare(),
    ];
    let row = |rank: &RankProfile, call: &OpenCallInfo| {
        let remark = match (call.ended_inside, call.began_before) {
            (true, _) => "ended inside",
            (false, true) => "began before attach",
            (false, false) => "",
        };
        let site = call.site.as_deref().unwrap_or("?");
        vec![or_unknown(rank.rank), rank.pid.to_string(), called(call), ns(call.open_ns), site.into(), remark.into()]
    };
    let rows: Vec<_> =
        profile.ranks.iter().flat_map(|rank| rank.open_calls.iter().map(move |call| row(rank, call))).collect();
    listed(options, "Calls still open", &columns, rows)
}

/// Of those that are still open it is said there.
pub(super) fn began_before(options: &TextOptions, profile: &Profile) -> String {
    let columns = [right("rank"), right("pid"), left("function"), right("since attach"), left("called at")];
    let row = |rank: &RankProfile, call: &BeganBeforeRow| {
        let site = call.site.as_deref().unwrap_or("?");
        vec![or_unknown(rank.rank), rank.pid.to_string(), call.function.into(), ns(call.time_ns), site.into()]
    };
    let of_rank = |rank: &'_ RankProfile| -> Vec<Vec<String>> {
        rank.began_before.iter().filter(|call| !call.is_open).map(|call| row(rank, call)).collect()
    };
    let rows: Vec<_> = profile.ranks.iter().flat_map(of_rank).collect();
    listed(options, "Calls that began before attach", &columns, rows)
}
