//! General active target synchronisation (MPI-4.0, section 12.5.2): which access epochs belong to which exposure epochs.
//!
//! Whom a process opens an epoch for is a group, which is not recorded: it is known by the accesses. A process exposes a window to several
//! epochs one after the other, and each origin has one epoch in each of those that are for it; the exposure has not ended before all of
//! them were completed. So an epoch belongs to the first exposure of its target that its origin has not had one in, and that had not ended
//! when the epoch was completed.

use std::collections::{HashMap, HashSet, VecDeque};

use mpiprobe_trace::ProcessId;

use super::{
    call::{CallAt, Unmatched},
    meaning::{Known, Step, Stream},
};

/// Exposures of a process that may wait for others.
const MOST_EXPOSURES: usize = 1 << 16;
/// Accesses to a process's part of a window that are told apart.
const MOST_ACCESSES: usize = 1 << 10;
/// Epochs of a window that may.
const MOST_WAITING: usize = 1 << 12;

/// A call in an epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct EpochCall {
    /// As its process calls it.
    pub(super) window: Stream,
    pub(super) step: Step,
    pub(super) call: CallAt,
    /// Of how many gaps in the process's calls it comes after.
    pub(super) gaps: u32,
}

/// Whom a call of an epoch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EpochNeed {
    /// The target's `MPI_Win_post`.
    Post,
    /// The last `MPI_Win_complete` of those that have accessed the window, the last access of whom was over then, ns.
    Complete { accessed_ns: u64 },
}

/// A call of an epoch that another one was needed for, which was entered while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochWait {
    pub(crate) need: EpochNeed,
    pub(crate) call: CallAt,
    pub(crate) other: CallAt,
}

#[derive(Debug)]
struct Exposure {
    /// Counts those of its process.
    number: u64,
    post: CallAt,
    wait: Option<CallAt>,
    /// Until when it had ended.
    end_ns: Option<u64>,
    /// The epoch of those that belong to it that was completed last.
    last: Option<CallAt>,
    /// When the last access of those was over, ns.
    accessed_ns: u64,
}

#[derive(Debug)]
struct Access {
    target: ProcessId,
    /// The first one.
    call: CallAt,
    /// When the last one was over, ns.
    last_ns: u64,
    exposed: Exposed,
}

/// The exposure that an epoch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exposed {
    NotYet,
    /// By that `MPI_Win_post`.
    By(CallAt),
    /// By a process whose clock nothing compares with the own one.
    Apart,
}

impl Exposed {
    fn post(self) -> Option<CallAt> {
        if let Self::By(post) = self { Some(post) } else { None }
    }
}

#[derive(Debug)]
struct Epoch {
    start: CallAt,
    accesses: Vec<Access>,
    gaps: u32,
    complete: Option<CallAt>,
}

#[derive(Debug, Default)]
struct Window {
    exposures: HashMap<ProcessId, VecDeque<Exposure>>,
    posts: HashMap<ProcessId, u64>,
    open: HashMap<ProcessId, Epoch>,
    /// That some of the targets have not posted yet.
    waiting: VecDeque<(ProcessId, Epoch)>,
    /// By origin and target: the number plus one of the exposure that the last epoch belongs to.
    had: HashMap<(ProcessId, ProcessId), u64>,
    /// Those that others have accessed of whose clocks nothing is known.
    apart: HashSet<ProcessId>,
    /// By target: when accesses began, and when those up to then were over, ns.
    accessed: HashMap<ProcessId, VecDeque<(u64, u64)>>,
}

/// Of all windows.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// By what all together call them.
    windows: HashMap<Stream, Window>,
    /// Since the last slice.
    pub(super) waits: Vec<EpochWait>,
    /// Epochs and exposures of processes whose clocks nothing compares.
    pub(super) between_clocks: u64,
    pub(super) counts: Unmatched,
}

impl Epochs {
    /// These are no more.
    pub(super) fn forget(&mut self, gone: &[Stream], known: &Known) {
        for common in gone {
            if let Some(mut window) = self.windows.remove(common) {
                self.settle_window(&mut window, u64::MAX, known);
                self.counts.epochs += window.left();
            }
        }
    }

    /// The next call, in the order of their entries. `window`: what all together call it, if that is known.
    pub(super) fn take(&mut self, process: ProcessId, window: Option<Stream>, one: EpochCall, known: &Known) {
        let EpochCall { step, call, gaps, .. } = one;
        let Some(common) = window else {
            let begins = matches!(step, Step::Start | Step::Post | Step::Lock { .. } | Step::LockOfUnknown);
            self.counts.epochs += u64::from(begins);
            return;
        };
        let Self { windows, waits, counts, between_clocks, .. } = self;
        let window = windows.entry(common).or_default();
        match step {
            Step::Start => {
                let epoch = Epoch { start: call, accesses: Vec::new(), gaps, complete: None };
                counts.epochs += u64::from(window.open.insert(process, epoch).is_some());
            }
            Step::Access(target) => {
                window.accessed(target, &call);
                if let Some(epoch) = window.open.get_mut(&process) {
                    if let Some(access) = epoch.accesses.iter_mut().find(|access| access.target == target) {
                        access.last_ns = access.last_ns.max(call.return_ns);
                    } else {
                        let (last_ns, exposed) = (call.return_ns, Exposed::NotYet);
                        epoch.accesses.push(Access { target, call, last_ns, exposed });
                    }
                }
            }
            Step::Complete => {
                let Some(epoch) = window.open.remove(&process) else { return };
                if epoch.gaps != gaps || epoch.accesses.is_empty() {
                    counts.epochs += 1;
                    return;
                }
                let mut epoch = Epoch { complete: Some(call), ..epoch };
                for access in &mut epoch.accesses {
                    access.exposed = window.belongs(process, access, &call, known);
                }
                *between_clocks += u64::from(epoch.accesses.iter().any(|access| access.exposed == Exposed::Apart));
                if epoch.is_settled() {
                    epoch.tell(waits);
                } else {
                    window.waiting.push_back((process, epoch));
                }
                if window.waiting.len() > MOST_WAITING {
                    window.waiting.pop_front();
                    counts.epochs += 1;
                }
            }
            Step::Post => window.post(process, call, known, waits),
            Step::LockOfUnknown => counts.epochs += 1,
            Step::Lock { .. } | Step::Unlock(_) | Step::Flush { .. } => {}
            Step::Wait => {
                let exposures = window.exposures.get_mut(&process);
                if let Some(last) = exposures.and_then(VecDeque::back_mut).filter(|last| last.end_ns.is_none()) {
                    (last.wait, last.end_ns) = (Some(call), Some(call.return_ns));
                }
            }
        }
    }

    /// When the last access to each member's part of a window was over, of those that began until then, ns; 0: there was none. They are taken
    /// away.
    pub(super) fn take_accessed(
        &mut self,
        window: Stream,
        members: impl Iterator<Item = ProcessId>,
        until_ns: u64,
    ) -> Vec<u64> {
        let Some(window) = self.windows.get_mut(&window) else { return Vec::new() };
        let last = |member: ProcessId| {
            let Some(accessed) = window.accessed.get_mut(&member) else { return 0 };
            let mut last_ns = 0;
            accessed.retain(|&(entry_ns, return_ns)| {
                let is_later = entry_ns > until_ns;
                last_ns = if is_later { last_ns } else { return_ns.max(last_ns) };
                is_later
            });
            last_ns
        };
        members.map(last).collect()
    }

    /// All calls that begin before that time have been taken.
    pub(super) fn settle(&mut self, until_ns: u64, known: &Known) {
        let mut windows = std::mem::take(&mut self.windows);
        for window in windows.values_mut() {
            self.settle_window(window, until_ns, known);
        }
        self.windows = windows;
    }

    fn settle_window(&mut self, window: &mut Window, until_ns: u64, known: &Known) {
        let Window { exposures, apart, .. } = window;
        for (&process, exposures) in exposures {
            // Clocks of others may be behind.
            let slack_ns = known.most_apart_ns(process);
            while let Some(first) = exposures.front() {
                let has_ended = first.end_ns.is_some_and(|end_ns| end_ns.saturating_add(slack_ns) < until_ns);
                if !has_ended && exposures.len() <= MOST_EXPOSURES {
                    break;
                }
                match (first.wait, first.last) {
                    (Some(call), Some(other)) => {
                        let accessed_ns = first.accessed_ns;
                        self.waits.push(EpochWait { need: EpochNeed::Complete { accessed_ns }, call, other });
                    }
                    (_, None) if apart.contains(&process) => self.between_clocks += 1,
                    (_, None) => self.counts.epochs += 1,
                    (None, Some(_)) => {}
                }
                exposures.pop_front();
            }
        }
    }

    /// Since when something waits for others.
    pub(super) fn waiting_since_ns(&self) -> Option<u64> {
        let windows = || self.windows.values();
        let epochs = windows().flat_map(|window| &window.waiting).map(|(_, epoch)| epoch.start.entry_ns);
        let exposures = windows().flat_map(|window| window.exposures.values().flatten());
        let exposures = exposures.filter_map(|exposure| exposure.wait).map(|wait| wait.entry_ns);
        epochs.chain(exposures).min()
    }

    /// There is no more.
    pub(super) fn finish(&mut self, known: &Known) {
        self.settle(u64::MAX, known);
        self.counts.epochs += self.windows.values().map(Window::left).sum::<u64>();
    }
}

impl Window {
    fn accessed(&mut self, target: ProcessId, call: &CallAt) {
        let of_target = self.accessed.entry(target).or_default();
        of_target.push_back((call.entry_ns, call.return_ns));
        // Where there are no fences, nobody takes them.
        if of_target.len() > MOST_ACCESSES
            && let Some((_, first_ns)) = of_target.pop_front()
            && let Some((_, next_ns)) = of_target.front_mut()
        {
            *next_ns = first_ns.max(*next_ns);
        }
    }

    /// Epochs and exposures that nobody has anything to do with.
    fn left(&self) -> u64 {
        let exposures = self.exposures.values().flatten().filter(|exposure| exposure.last.is_none()).count();
        (self.open.len() + self.waiting.len() + exposures) as u64
    }

    /// The exposure of a target that an epoch belongs to which is complete.
    fn belongs(&mut self, origin: ProcessId, access: &Access, complete: &CallAt, known: &Known) -> Exposed {
        let target = access.target;
        let Some(slack_ns) = known.within_ns(&[origin, target]) else {
            self.apart.insert(target);
            return Exposed::Apart;
        };
        let had = self.had.entry((origin, target)).or_default();
        let mut exposures = self.exposures.get_mut(&target).into_iter().flatten();
        let exposure = exposures.find(|exposure| {
            let goes_on = exposure.end_ns.is_none_or(|end_ns| end_ns.saturating_add(slack_ns) >= complete.entry_ns);
            exposure.number >= *had && goes_on
        });
        let Some(exposure) = exposure else { return Exposed::NotYet };
        *had = exposure.number + 1;
        exposure.accessed_ns = exposure.accessed_ns.max(access.last_ns);
        if exposure.last.is_none_or(|last| last.entry_ns < complete.entry_ns) {
            exposure.last = Some(*complete);
        }
        Exposed::By(exposure.post)
    }

    fn post(&mut self, process: ProcessId, call: CallAt, known: &Known, waits: &mut Vec<EpochWait>) {
        let number = self.posts.entry(process).or_default();
        let exposures = self.exposures.entry(process).or_default();
        if let Some(last) = exposures.back_mut() {
            // However it has ended: `MPI_Win_test` may have said so.
            last.end_ns.get_or_insert(call.entry_ns);
        }
        exposures.push_back(Exposure {
            number: *number,
            post: call,
            wait: None,
            end_ns: None,
            last: None,
            accessed_ns: 0,
        });
        *number += 1;
        // Those that were complete, or about to be, and have waited for it.
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain_mut(|(origin, epoch)| {
            let is_left = |access: &&mut Access| access.target == process && access.exposed == Exposed::NotYet;
            let access = epoch.accesses.iter_mut().find(is_left);
            if let Some((access, complete)) = access.zip(epoch.complete) {
                access.exposed = self.belongs(*origin, access, &complete, known);
            }
            let is_settled = epoch.is_settled();
            if is_settled {
                epoch.tell(waits);
            }
            !is_settled
        });
        self.waiting = waiting;
    }
}

impl Epoch {
    /// Whether it is known of all targets which exposure it belongs to.
    fn is_settled(&self) -> bool {
        !self.accesses.iter().any(|access| access.exposed == Exposed::NotYet)
    }

    /// Which of its calls were running when the last one of the targets that each needs posted.
    fn tell(&self, waits: &mut Vec<EpochWait>) {
        let is_in = |call: &CallAt, post: &CallAt| call.entry_ns < post.entry_ns && post.entry_ns < call.return_ns;
        let posts = || self.accesses.iter().filter_map(|access| access.exposed.post());
        let last = |call: &CallAt| posts().filter(|post| is_in(call, post)).max_by_key(|post| post.entry_ns);
        let of_access = |access: &Access| access.exposed.post().filter(|post| is_in(&access.call, post));
        let each = self.accesses.iter().map(|access| (access.call, of_access(access)));
        let whole = [Some(self.start), self.complete].into_iter().flatten().map(|call| (call, last(&call)));
        let waited = each.chain(whole).filter_map(|(call, other)| Some((call, other?)));
        waits.extend(waited.map(|(call, other)| EpochWait { need: EpochNeed::Post, call, other }));
    }
}
