//! The communication matrix, as pictures need it.

use std::collections::{BTreeMap, HashMap};

use mpiprobe_model::{Amounts, Profile};
use serde::Serialize;

/// Ranks are what somebody has written; nobody counts up to more blocks of them.
const MOST_BLOCKS: u64 = 1 << 20;

/// What went from ranks to partners over communicators.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Matrix {
    /// One more than the highest rank there is.
    pub(crate) ranks: u64,
    /// Ranks in a block; numbers of ranks and peers below are those of blocks.
    pub(crate) block: u64,
    /// Names.
    pub(crate) communicators: Vec<String>,
    /// Number among those.
    pub(crate) communicator: Vec<usize>,
    pub(crate) rank: Vec<u64>,
    pub(crate) peer: Vec<u64>,
    pub(crate) calls: Vec<u64>,
    pub(crate) time_ns: Vec<u64>,
    pub(crate) sent_bytes: Vec<u64>,
    pub(crate) received_bytes: Vec<u64>,
}

type Cells = BTreeMap<(usize, u64, u64), Amounts>;

impl Matrix {
    /// Of those pairs of ranks and communicators that are chosen. If there are more cells than these, ranks are put together in blocks.
    pub(crate) fn of(profile: &Profile, most_cells: usize, is_chosen: &dyn Fn(u32, u32, &str) -> bool) -> Self {
        let mut names = Names { known: communicator_names(profile), ..Names::default() };
        let mut cells = Cells::new();
        let mut ranks = profile.ranks.iter().filter_map(|rank| rank.size).max().unwrap_or(0).into();
        for rank in &profile.ranks {
            let (Some(own), Some(traffic)) = (rank.rank, &rank.traffic) else { continue };
            let ids: HashMap<u32, Option<u32>> = traffic.communicators.iter().map(|row| (row.number, row.id)).collect();
            for flow in &traffic.flows {
                let Some(peer) = flow.peer else { continue };
                let id = flow.communicator.and_then(|number| ids.get(&number).copied().flatten());
                let number = names.number(id);
                if !is_chosen(own, peer, names.found.get(number).map_or("", String::as_str)) {
                    continue;
                }
                let cell = (number, u64::from(own), u64::from(peer));
                cells.entry(cell).or_default().add(&flow.amounts);
                ranks = u64::max(ranks, u64::from(own.max(peer)) + 1);
            }
        }
        let mut block = 1;
        while cells.len() > most_cells || ranks / block > MOST_BLOCKS {
            block *= 2;
            cells = halved(cells);
        }
        let mut matrix = Self { ranks, block, communicators: names.found, ..Self::default() };
        for ((communicator, rank, peer), amounts) in cells {
            matrix.communicator.push(communicator);
            matrix.rank.push(rank);
            matrix.peer.push(peer);
            matrix.calls.push(amounts.calls);
            matrix.time_ns.push(amounts.time_ns);
            matrix.sent_bytes.push(amounts.sent_bytes);
            matrix.received_bytes.push(amounts.received_bytes);
        }
        matrix
    }
}

fn halved(cells: Cells) -> Cells {
    let mut fewer = Cells::new();
    for ((communicator, rank, peer), amounts) in cells {
        fewer.entry((communicator, rank / 2, peer / 2)).or_default().add(&amounts);
    }
    fewer
}

/// Communicators of the matrix, numbered as they come.
#[derive(Debug, Default)]
struct Names<'a> {
    known: HashMap<u32, &'a str>,
    numbers: HashMap<Option<u32>, usize>,
    found: Vec<String>,
}

impl Names<'_> {
    fn number(&mut self, id: Option<u32>) -> usize {
        *self.numbers.entry(id).or_insert_with(|| {
            let name = id.and_then(|id| self.known.get(&id).copied()).unwrap_or("others, or not known");
            self.found.push(name.to_owned());
            self.found.len() - 1
        })
    }
}

/// By [`mpiprobe_model::CommunicatorProfile::id`].
pub(crate) fn communicator_names(profile: &Profile) -> HashMap<u32, &str> {
    let known = profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
    known.map(|communicator| (communicator.id, communicator.name.as_str())).collect()
}
