//! What `programs/layouts.c` has written down.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A communicator, as MPI describes it to one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comm {
    pub(crate) handle: u64,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) remote_size: u32,
    pub(crate) is_inter: bool,
    /// World ranks.
    pub(crate) members: Vec<u32>,
    pub(crate) others: Vec<u32>,
    pub(crate) name: String,
}

/// A status, or what a request would have put into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Its address, or the request's handle.
    pub(crate) place: u64,
    pub(crate) source: i32,
    pub(crate) tag: i32,
    pub(crate) bytes: u64,
}

/// One rank's facts.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) constants: BTreeMap<String, u64>,
    /// Handle, size, name.
    pub(crate) types: Vec<(u64, u64, String)>,
    pub(crate) comms: Vec<Comm>,
    pub(crate) freed: Vec<u64>,
    pub(crate) statuses: Vec<Status>,
    pub(crate) cancelled: Vec<u64>,
    pub(crate) requests: Vec<Status>,
    pub(crate) complete: Vec<u64>,
}

pub(crate) fn read(directory: &Path, rank: u32) -> Facts {
    let text = fs::read_to_string(directory.join(format!("facts-{rank}"))).unwrap();
    let mut facts = Facts::default();
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        let words: Vec<&str> = rest.split(' ').collect();
        match kind {
            "constant" => drop(facts.constants.insert(words[0].to_owned(), hexadecimal(words[1]))),
            "type" => facts.types.push((hexadecimal(words[0]), words[1].parse().unwrap(), words[2..].join(" "))),
            "comm" => facts.comms.push(comm(rest)),
            "freed" => facts.freed.push(hexadecimal(words[0])),
            "status" => {
                assert_eq!(words[4], "0", "of a message that was not cancelled");
                facts.statuses.push(status(&words));
            }
            "cancelled" => facts.cancelled.push(hexadecimal(words[0])),
            "request" => facts.requests.push(status(&words)),
            "complete" => facts.complete.push(hexadecimal(words[0])),
            _ => panic!("{line}"),
        }
    }
    facts
}

fn comm(text: &str) -> Comm {
    let parts: Vec<&str> = text.splitn(4, " :").collect();
    let head: Vec<&str> = parts[0].split(' ').collect();
    let ranks = |text: &str| text.split_whitespace().map(|rank| rank.parse().unwrap()).collect();
    Comm {
        handle: hexadecimal(head[0]),
        rank: head[1].parse().unwrap(),
        size: head[2].parse().unwrap(),
        remote_size: head[3].parse().unwrap(),
        is_inter: head[4] == "1",
        members: ranks(parts[1]),
        others: ranks(parts[2]),
        name: parts[3].trim_start().to_owned(),
    }
}

fn status(words: &[&str]) -> Status {
    Status {
        place: hexadecimal(words[0]),
        source: words[1].parse().unwrap(),
        tag: words[2].parse().unwrap(),
        bytes: words[3].parse().unwrap(),
    }
}

fn hexadecimal(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).unwrap()
}
