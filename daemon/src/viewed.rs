//! A view elsewhere, in the words that the node service and agents have for it: what it asks for besides profiles, and what it is told.

use std::{collections::HashMap, sync::Arc};

use mpiprobe_model::{Profile, RecentCalls};
use mpiprobe_view::{Asked, Stacks};
use serde::Serialize;
use serde_json::json;

use crate::chunks::{self, line_of};

/// What it is told.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    Stacks(&'a Stacks),
    /// The next message of what single calls are kept by ([`mpiprobe_trace::store::Replica`]).
    Calls(&'a [u8]),
    NoCalls(&'a str),
}

/// What somebody asks for who says this; `None`: nobody does.
pub(crate) fn asked(word: &str) -> Option<Asked> {
    match word {
        "end" => Some(Asked::End),
        "recent" => Some(Asked::RecentCalls(true)),
        "no-recent" => Some(Asked::RecentCalls(false)),
        "stacks" => Some(Asked::Stacks(true)),
        "no-stacks" => Some(Asked::Stacks(false)),
        "calls" => Some(Asked::Calls),
        "dump" => Some(Asked::Dump),
        _ => None,
    }
}

/// How that is said.
pub(crate) fn word(asked: Asked) -> &'static str {
    match asked {
        Asked::End => "end",
        Asked::RecentCalls(true) => "recent",
        Asked::RecentCalls(false) => "no-recent",
        Asked::Stacks(true) => "stacks",
        Asked::Stacks(false) => "no-stacks",
        Asked::Calls => "calls",
        Asked::Dump => "dump",
    }
}

/// How it is told that, and whether it misses something if it does not take it.
pub(crate) fn told(shown: Shown<'_>) -> (Vec<u8>, bool) {
    match shown {
        Shown::Stacks(stacks) => (line(&json!({ "stacks": stacks })), false),
        Shown::Calls(message) => (line_of(chunks::Bytes::Calls, message), true),
        Shown::NoCalls(why) => (line(&json!({ "no_calls": why })), false),
    }
}

/// The last calls of each process, which are not in the profile's JSON; `None`: it has none.
pub(crate) fn recent_calls(profile: &Profile) -> Option<Vec<u8>> {
    let recent = profile.ranks.iter().filter_map(|rank| Some((rank.pid, rank.recent.as_deref()?)));
    let recent: Vec<(u32, &RecentCalls)> = recent.collect();
    (!recent.is_empty()).then(|| line(&json!({ "recent": recent })))
}

/// Those that were told last, by process, for whoever shows them.
#[derive(Debug, Default)]
pub(crate) struct LastCalls(HashMap<u32, Arc<RecentCalls>>);

impl LastCalls {
    pub(crate) fn of(told: Vec<(u32, RecentCalls)>) -> Self {
        Self(told.into_iter().map(|(pid, calls)| (pid, Arc::new(calls))).collect())
    }

    /// Each rank of a profile has its own, and no others.
    pub(crate) fn add_to(&self, profile: &mut Profile) {
        for rank in &mut profile.ranks {
            rank.recent = self.0.get(&rank.pid).cloned();
        }
    }
}

/// A value as a line of JSON, with its end.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_else(|error| {
        json!({ "failed": format!("the profile cannot be written as JSON: {error}") }).to_string().into_bytes()
    });
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wish_has_a_word() {
        let bools = [false, true];
        let wishes = bools.map(Asked::RecentCalls).into_iter().chain(bools.map(Asked::Stacks));
        for wish in wishes.chain([Asked::End, Asked::Calls, Asked::Dump]) {
            assert_eq!(asked(word(wish)), Some(wish));
        }
        assert_eq!(asked(""), None);
        assert_eq!(asked("Stacks"), None);
    }
}
