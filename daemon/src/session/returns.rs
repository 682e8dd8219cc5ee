//! Which processes get return probes, and what is said of that.

use std::collections::BTreeSet;

use mpiprobe_discover::{Process, ReturnRisk, ReturnRisks};
use mpiprobe_report::present::say;

use super::options::Returns;

/// What was asked for, and what is known of programs.
#[derive(Debug)]
pub(super) struct ReturnChoice {
    asked: Returns,
    risks: ReturnRisks,
    /// What has been said: all ranks of a job have the same files.
    told: BTreeSet<String>,
}

impl ReturnChoice {
    pub(super) fn new(asked: Returns) -> Self {
        Self { asked, risks: ReturnRisks::default(), told: BTreeSet::new() }
    }

    /// Why the calls of a process get no return probes; `None`: they may have them. `is_asked`: the kernel asks at each entry.
    pub(super) fn of(&mut self, process: &Process, is_asked: bool) -> Option<ReturnRisk> {
        // Where there are none anyway, nothing needs to be known.
        let risk = if self.asked == Returns::Off { None } else { self.risks.of(process) }?;
        self.judge(&risk, is_asked).then_some(risk)
    }

    /// Whether a risk forbids return probes. It is told of either way.
    pub(super) fn judge(&mut self, risk: &ReturnRisk, is_asked: bool) -> bool {
        let forbids = self.asked == Returns::Auto && risk.way.forbids_returns(is_asked);
        let is_harmless = is_asked && !risk.way.is_risky_if_asked();
        let what = if forbids {
            format!(
                "{risk}: calls are counted at their entry, without times and bytes, because return probes may be the end of it; \
                 `mpiprobe run --engine wrapper` times them without, `--returns on` times them all the same"
            )
        } else {
            format!(
                "{risk}: a call that is left like that while it is observed ends the program; `--returns off` is safe"
            )
        };
        if self.asked != Returns::Off && !is_harmless && self.told.insert(what.clone()) {
            say(what);
        }
        forbids
    }
}
