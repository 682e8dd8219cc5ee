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

    /// Why return probes may harm a process. Where there are none anyway, nothing needs to be known.
    pub(super) fn risk(&mut self, process: &Process) -> Option<ReturnRisk> {
        if self.asked == Returns::Off { None } else { self.risks.of(process) }
    }

    /// Why return probes that others have armed may harm a process, unless it was said that they may.
    pub(super) fn risk_by_others(&mut self, process: &Process) -> Option<ReturnRisk> {
        if self.asked == Returns::On {
            return None;
        }
        self.risks.of(process).filter(|risk| risk.way.forbids_returns(false))
    }

    /// Whether a risk forbids return probes. `arming`: who has them armed.
    pub(super) fn forbids(&self, risk: &ReturnRisk, arming: Arming) -> bool {
        self.asked == Returns::Auto && risk.way.forbids_returns(arming == Arming::Asked)
    }

    /// The same, and it is said.
    pub(super) fn judge(&mut self, risk: &ReturnRisk, arming: Arming) -> bool {
        let is_asked = arming == Arming::Asked;
        let forbids = self.forbids(risk, arming);
        let is_harmless = is_asked && !risk.way.is_risky_if_asked();
        let others =
            if arming == Arming::AskedAmongOthers { ", and others have probes in its MPI library" } else { "" };
        let what = if forbids {
            format!(
                "{risk}{others}: calls are counted at their entry, without times and bytes, because return probes may be the end of it; \
                 `mpiprobe run --engine wrapper` times them without, `--returns on` times them all the same"
            )
        } else {
            format!(
                "{risk}{others}: a call that is left like that while it is observed ends the program; `--returns off` is safe"
            )
        };
        if self.asked != Returns::Off && !is_harmless && self.told.insert(what.clone()) {
            say(what);
        }
        forbids
    }
}

/// Who has return probes armed in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arming {
    /// mpiprobe, which is asked for each call.
    Asked,
    /// The same, and perhaps others.
    AskedAmongOthers,
    /// The kernel, for each call.
    Always,
}
