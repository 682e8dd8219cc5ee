//! What the kernel tells of: new process images, calls that were cut short, requests of programs.

use mpiprobe_attach::{Notice, NoticeKind, Passed};
use mpiprobe_discover::Process;
use mpiprobe_model::RankState;

use super::{coverage::Coverage, kernel::Kernel, targets::Targets};

/// What was told and not dealt with yet.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// A program wants results now.
    flush_asked: bool,
    /// How many notices nobody has taken in time.
    dropped: u64,
}

impl Notices {
    /// Deals with what was told since the last time.
    pub(super) fn handle(&mut self, kernel: &mut Kernel, targets: &mut Targets, coverage: &mut Coverage) {
        for mut notice in kernel.observer.notices() {
            match &mut notice.kind {
                NoticeKind::Exec(passed) => {
                    let passed = passed.take();
                    handle_exec(&notice, passed, kernel, targets, coverage);
                }
                NoticeKind::Flush => self.flush_asked = true,
                NoticeKind::ExecAway => {
                    targets.process_table.end(notice.process, RankState::Execed, notice.time_ns);
                    coverage.release(kernel, &targets.process_table, &[notice.process]);
                }
                NoticeKind::Newcomer => {
                    if let Ok(process) = Process::open(targets.scanner.root(), notice.tgid) {
                        coverage.spare_newcomer(kernel, &process);
                    }
                }
                NoticeKind::EndedInCall { tid, started_ns, .. } => {
                    let user = coverage.was_behind_layers(notice.process, *tid, *started_ns);
                    targets.process_table.note_ended_call(&notice, user);
                }
            }
        }
        self.find_untold(kernel, targets, coverage);
    }

    /// Processes that have become targets, of which the kernel could not tell because nobody took its notices in time.
    fn find_untold(&mut self, kernel: &mut Kernel, targets: &mut Targets, coverage: &mut Coverage) {
        let dropped = kernel.observer.dropped_notices();
        if dropped == self.dropped {
            return;
        }
        self.dropped = dropped;
        for (slot, counters) in kernel.observer.executed() {
            if !targets.knows(slot) && !targets.is_dismissed(slot) {
                let kind = NoticeKind::Exec(None);
                let notice = Notice { kind, tgid: counters.tgid, process: slot, time_ns: counters.exec_ns };
                handle_exec(&notice, None, kernel, targets, coverage);
            }
        }
    }

    /// Whether a program has asked since the last time for what was counted to be written out.
    pub(super) fn take_flush(&mut self) -> bool {
        std::mem::take(&mut self.flush_asked)
    }
}

fn handle_exec(
    notice: &Notice,
    passed: Option<Passed>,
    kernel: &mut Kernel,
    targets: &mut Targets,
    coverage: &mut Coverage,
) {
    if targets.knows(notice.process) {
        return;
    }
    if let Some(old) = targets.add_image(notice.process, notice.tgid, passed, notice.time_ns) {
        coverage.release(kernel, &targets.process_table, &[old]);
    }
}
