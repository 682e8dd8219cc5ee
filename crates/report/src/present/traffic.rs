//! Communicators and partners as text.

use std::cmp::Reverse;

use mpiprobe_model::{Amounts, CommunicatorProfile, PartnerRow, Profile, TrafficProfile};

use super::{
    pending::pending,
    table::{
        Column::{Left, Right},
        RANKS, section, table,
    },
    units::{bytes, count, ns, or_unknown},
};

/// Communicators and pairs of ranks shown, of those with most in them.
const SHOWN: usize = 20;

/// What `--traffic` has found out beyond functions.
pub(super) fn traffic(profile: &Profile) -> String {
    let Some(traffic) = &profile.traffic else { return String::new() };
    let sections = [communicators(traffic), sizes(traffic), partners(profile, &traffic.partners), pending(profile)];
    let shown: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    shown.join("\n")
}

fn communicators(traffic: &TrafficProfile) -> String {
    let columns = [
        Left("communicator"),
        Right("size"),
        Right("calls"),
        Right("time"),
        Right("sent"),
        Right("received"),
        Left("most time in"),
    ];
    let mut by_time: Vec<&CommunicatorProfile> = traffic.communicators.iter().collect();
    by_time.retain(|communicator| communicator.amounts.calls > 0);
    by_time.sort_by_key(|communicator| Reverse((communicator.amounts.time_ns, communicator.amounts.calls)));
    let (shown, rest) = by_time.split_at_checked(SHOWN).unwrap_or((&by_time, &[]));
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
    if rows.is_empty() { String::new() } else { section("Communicators, all ranks", &table(&columns, rows)) }
}

fn size(communicator: &CommunicatorProfile) -> String {
    let size = or_unknown(communicator.size);
    communicator.remote_size.map_or(size.clone(), |remote| format!("{size}+{remote}"))
}

/// Calls, time, bytes sent and received.
fn amounts(amounts: &Amounts) -> [String; 4] {
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
fn sizes(traffic: &TrafficProfile) -> String {
    let columns =
        [Right("size"), Right("communicators"), Right("calls"), Right("time"), Right("sent"), Right("received")];
    let used: Vec<_> = traffic.communicator_sizes.iter().filter(|row| row.amounts.calls > 0).collect();
    if used.len() < 2 {
        return String::new();
    }
    let rows = used.into_iter().map(|row| {
        let mut cells = vec![row.size.to_string(), count(row.communicators)];
        cells.extend(amounts(&row.amounts));
        cells
    });
    section("Communicators by size", &table(&columns, rows))
}

fn partners(profile: &Profile, partners: &[PartnerRow]) -> String {
    if partners.is_empty() {
        return String::new();
    }
    let ranks = partners.iter().map(|pair| pair.rank.max(pair.peer)).max().unwrap_or(0) as usize + 1;
    match RANKS.get(..ranks) {
        Some(ranks) if profile.jobs.len() == 1 => matrix(ranks, partners),
        _ => pairs(partners),
    }
}

fn matrix(ranks: &[&'static str], partners: &[PartnerRow]) -> String {
    let mut columns = vec![Right("from")];
    columns.extend(ranks.iter().map(|number| Right(number)));
    let rows = (0..).zip(ranks).map(|(rank, number)| {
        let cell = |peer: u32| {
            let pair = partners.iter().find(|pair| (pair.rank, pair.peer) == (rank, peer));
            pair.map_or_else(String::new, |pair| bytes(pair.amounts.sent_bytes))
        };
        let mut row = vec![(*number).to_owned()];
        row.extend((0..).zip(ranks).map(|(peer, _)| cell(peer)));
        row
    });
    section("Sent from rank to rank, collectives left out", &table(&columns, rows))
}

fn pairs(partners: &[PartnerRow]) -> String {
    let columns = [Right("rank"), Right("partner"), Right("calls"), Right("time"), Right("sent"), Right("received")];
    let rows = partners.iter().take(SHOWN).map(|pair| {
        let mut row = vec![pair.rank.to_string(), pair.peer.to_string()];
        row.extend(amounts(&pair.amounts));
        row
    });
    let table = table(&columns, rows);
    let rest = partners.len().saturating_sub(SHOWN);
    let more = if rest == 0 { String::new() } else { format!("{} more pairs: see --json\n", count(rest as u64)) };
    section("Partners, collectives left out", &(table + &more))
}
