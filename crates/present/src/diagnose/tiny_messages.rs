//! Many small messages.

use mpiprobe_functions::Group;
use mpiprobe_model::Profile;

use super::{Diagnosis, per_second};
use crate::units::{bytes, rate};

/// Messages a second, of all ranks together.
const MANY: f64 = 10_000.0;
/// On average, bytes: far below what hides the cost of a message.
const TINY: u64 = 256;

#[derive(Debug)]
pub(super) struct TinyMessages;

impl Diagnosis for TinyMessages {
    fn name(&self) -> &'static str {
        "tiny messages"
    }

    fn meaning(&self) -> &'static str {
        "Each message costs about the same however small it is: many small ones cost much more than few large ones."
    }

    fn advice(&self) -> &'static str {
        "Collect data and send it at once, by derived datatypes or larger buffers."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let sends = profile.functions.iter().filter(|function| function.all.group == Group::PointToPoint.title());
        let tiny = sends.filter_map(|function| {
            let sent = &function.all.traffic.as_ref()?.sent;
            let mean = sent.bytes.checked_div(sent.messages)?;
            (mean <= TINY).then_some((function.all.name, per_second(profile, sent.messages), mean))
        });
        let (name, messages, mean) = tiny.max_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
        (messages >= MANY).then(|| format!("{name}: {} messages/s of {} on average", rate(messages), bytes(mean)))
    }
}
