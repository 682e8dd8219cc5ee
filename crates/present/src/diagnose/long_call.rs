//! Calls that last unusually long.

use mpiprobe_model::{OpenCallInfo, Profile, RankState, analyse::is_unusually_long};

use super::Diagnosis;
use crate::{doing, units::or_unknown};

#[derive(Debug)]
pub(super) struct LongCall;

impl Diagnosis for LongCall {
    fn name(&self) -> &'static str {
        "unusually long call"
    }

    fn meaning(&self) -> &'static str {
        "These calls last longer than a second, and four times longer than 99 % of the calls of their function."
    }

    fn advice(&self) -> &'static str {
        "Look at whom they wait for: another rank may be slow, stopped or stuck."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let is_long = |call: &OpenCallInfo| {
            let function = profile.functions.iter().find(|function| function.all.name == call.function);
            !call.ended_inside && is_unusually_long(call, function.map(|function| &function.all))
        };
        let running = profile.ranks.iter().filter(|rank| rank.state == RankState::Running);
        let long: Vec<_> =
            running.filter_map(|rank| Some((rank, rank.open_calls.iter().find(|call| is_long(call))?))).collect();
        let (rank, call) = long.iter().max_by_key(|(_, call)| call.open_ns)?;
        Some(format!(
            "{} of {} ranks, such as rank {} {}",
            long.len(),
            profile.ranks.len(),
            or_unknown(rank.rank),
            doing(call)
        ))
    }
}
