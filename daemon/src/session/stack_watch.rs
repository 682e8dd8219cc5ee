//! Stacks of the same processes, time and again, for somebody who looks at them.

use mpiprobe_discover::{
    Caller, JobChoice, MpiProcess, ProcRoot, ProcRootError, ProcessError, Scanner, SelectError, Target, printable,
    select,
};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_stacks::{Capture, CaptureError, Limits, Looker, Member, Seen, Stacked, Target as Looked};
use thiserror::Error;

/// Why there is nothing to be seen.
#[derive(Debug, Error)]
pub(super) enum WatchError {
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// Looks that stop nobody: where that is not permitted, there are none.
pub(super) struct Watch {
    scanner: Scanner<ImplementationRecogniser>,
    looker: Looker,
    /// Those that were asked for the last time.
    pids: Vec<u32>,
    /// Those of them that were there then.
    processes: Vec<MpiProcess>,
}

impl Watch {
    /// Of what `caller` may see; `None`: who has started this program.
    pub(super) fn begin(caller: Option<Caller>) -> Result<Self, WatchError> {
        let caller = caller.map_or_else(Caller::current, Ok)?;
        let scanner = Scanner::new(ProcRoot::system()?, caller, ImplementationRecogniser::default());
        let looker = Looker::new(Capture::without_stopping(Limits::default())?);
        Ok(Self { scanner, looker, pids: Vec::new(), processes: Vec::new() })
    }

    /// Looks at all threads of these processes once; of those of MPI's own making only if they call MPI themselves.
    pub(super) fn look(&mut self, pids: &[u32]) -> Result<Vec<Stacked>, WatchError> {
        if self.pids != pids {
            self.processes.clear();
            if !pids.is_empty() {
                let selected = select(&mut self.scanner, &Target::Pids(pids.to_vec()), &JobChoice::All)?;
                self.processes = selected.processes;
            }
            self.processes.sort_by_key(|process| (process.rank.rank, process.pid()));
            self.pids = pids.to_vec();
        }
        let executables: Vec<String> =
            self.processes.iter().map(|process| printable(&process.executable.path)).collect();
        let targets: Vec<Looked<'_>> = self
            .processes
            .iter()
            .zip(&executables)
            .map(|(process, executable)| Looked {
                member: process.rank.rank.map_or(Member::Pid(process.pid()), Member::Rank),
                process: &process.process,
                executable,
                element: &|_| None,
            })
            .collect();
        let look = self.looker.look(&targets)?;
        Ok(Seen::of(&[look], false, false).stacks)
    }
}
