//! The ways of attaching, best first.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::kernel::bpf::AttachType;

/// One way of attaching probes to functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AttachMethod {
    /// One program for entry and return, one link per file (kernel 6.13).
    Session,
    /// An entry and a return program, one link each per file (kernel 6.6).
    Multi,
    /// Two perf events per function (kernel 5.15; needs CAP_SYS_ADMIN; slow to detach).
    PerfEvent,
}

impl AttachMethod {
    /// Best first.
    pub const ALL: [Self; 3] = [Self::Session, Self::Multi, Self::PerfEvent];

    /// Programs of the object that this method uses: return programs first, because they are attached first.
    ///
    /// Were entries attached before returns, a call that begins in between would look like one that never returns.
    /// `is_traced`: those that write calls down as well.
    pub(super) fn programs(self, is_traced: bool) -> Vec<ProgramUse> {
        let [session, leave, entry] =
            if is_traced { ["traced_session", "traced_leave", "traced_entry"] } else { ["session", "leave", "entry"] };
        match self {
            Self::Session => vec![program(session, AttachType::UprobeSession, false)],
            Self::Multi => {
                vec![program(leave, AttachType::UprobeMulti, true), program(entry, AttachType::UprobeMulti, false)]
            }
            Self::PerfEvent => vec![program(leave, AttachType::Any, true), program(entry, AttachType::Any, false)],
        }
    }

    /// The same for functions of tools.
    pub(super) const fn tool_programs(self) -> &'static [ProgramUse] {
        match self {
            Self::Session => const { &[program("tool_session", AttachType::UprobeSession, false)] },
            Self::Multi => {
                const {
                    &[
                        program("tool_leave", AttachType::UprobeMulti, true),
                        program("tool_entry", AttachType::UprobeMulti, false),
                    ]
                }
            }
            Self::PerfEvent => {
                const { &[program("tool_leave", AttachType::Any, true), program("tool_entry", AttachType::Any, false)] }
            }
        }
    }

    /// The program that has the name of a phase brought into memory.
    pub(super) const fn resident_program(self) -> ProgramUse {
        let attach_type = match self {
            Self::Session | Self::Multi => AttachType::UprobeMulti,
            Self::PerfEvent => AttachType::Any,
        };
        program("make_resident", attach_type, false)
    }

    /// The program that tells of others who begin to use MPI. Where the kernel asks whether a return probe is wanted, they have none.
    pub(super) const fn newcomer_program(self) -> Option<ProgramUse> {
        match self {
            Self::Session => None,
            Self::Multi => Some(program("tell_of_newcomer", AttachType::UprobeMulti, false)),
            Self::PerfEvent => Some(program("tell_of_newcomer", AttachType::Any, false)),
        }
    }

    /// The program that notes when calls return that had begun before: at places in files of all kinds, by an entry probe.
    pub(super) const fn note_return_program(self) -> ProgramUse {
        let attach_type = match self {
            Self::Session | Self::Multi => AttachType::UprobeMulti,
            Self::PerfEvent => AttachType::Any,
        };
        program("note_return", attach_type, false)
    }

    /// How the program is attached that runs at returns.
    pub(super) const fn return_attach_type(self) -> AttachType {
        match self {
            Self::Session => AttachType::UprobeSession,
            Self::Multi => AttachType::UprobeMulti,
            Self::PerfEvent => AttachType::Any,
        }
    }

    /// The same with the program that does nothing, to measure what the kernel alone costs.
    pub(super) const fn empty_programs(self) -> &'static [ProgramUse] {
        const fn empty(attach_type: AttachType, returns: bool) -> ProgramUse {
            program("empty", attach_type, returns)
        }
        match self {
            Self::Session => const { &[empty(AttachType::UprobeSession, false)] },
            Self::Multi => const { &[empty(AttachType::UprobeMulti, true), empty(AttachType::UprobeMulti, false)] },
            Self::PerfEvent => const { &[empty(AttachType::Any, true), empty(AttachType::Any, false)] },
        }
    }
}

/// A method that did not work, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub method: AttachMethod,
    pub reason: String,
}

/// What one probed call costs on this machine. All in ns per call, of the fastest of several batches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Added to the call: probes, programs and return.
    pub per_call_ns: f64,
    /// The same of a call that is counted at its entry alone.
    pub entry_ns: f64,
    /// The part of [`Self::per_call_ns`] that lies between the two time stamps and so is contained in measured durations.
    pub inside_ns: f64,
}

/// One program and how it is attached.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramUse {
    pub(super) name: &'static str,
    pub(super) attach_type: AttachType,
    pub(super) returns: bool,
}

const fn program(name: &'static str, attach_type: AttachType, returns: bool) -> ProgramUse {
    ProgramUse { name, attach_type, returns }
}

impl fmt::Display for AttachMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "uprobe session link",
            Self::Multi => "uprobe multi links",
            Self::PerfEvent => "perf-event uprobes",
        })
    }
}
