//! Files that are read or written in small pieces.

use mpiprobe_functions::Group;
use mpiprobe_model::Profile;

use super::Diagnosis;
use crate::units::{bytes, count};

/// Calls, of all ranks together.
const MANY: u64 = 1000;
/// On average, bytes.
const TINY: u64 = 4096;

#[derive(Debug)]
pub(super) struct TinyIo;

impl Diagnosis for TinyIo {
    fn name(&self) -> &'static str {
        "tiny I/O"
    }

    fn meaning(&self) -> &'static str {
        "A parallel file system needs about as long for some bytes as for a megabyte."
    }

    fn advice(&self) -> &'static str {
        "Read and write larger pieces, or use collective calls with a file view, which put pieces together."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let of_files = profile.functions.iter().filter(|function| function.all.group == Group::Io.title());
        let tiny = of_files.filter_map(|function| {
            let traffic = function.all.traffic.as_ref()?;
            let volume = if traffic.sent.messages > 0 { &traffic.sent } else { &traffic.received };
            let mean = volume.bytes.checked_div(volume.messages)?;
            (mean < TINY && volume.messages >= MANY).then_some((function.all.name, volume.messages, mean))
        });
        let (name, calls, mean) = tiny.max_by_key(|(_, calls, _)| *calls)?;
        Some(format!("{name}: {} calls for {} on average", count(calls), bytes(mean)))
    }
}
