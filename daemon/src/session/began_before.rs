//! Calls that had begun when the observation of their process did. No probe sees them begin, so their threads' stacks are looked at: at
//! once, and then as long as they are open, less and less often. What is certain of such a call is the time from the beginning of the
//! observation to the last look that found it open, or, where the place that it returns to could be probed ([`EarlierReturns`]), to its
//! return.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use mpiprobe_discover::Process;
use mpiprobe_functions::{FunctionId, FunctionSet};
use mpiprobe_model::analyse::Observed;
use mpiprobe_observe::{After, BeganBefore, CallBefore, ProcessSnapshot, Snapshot};
use mpiprobe_stacks::{CallNow, Capture, Limits, Looker, Member, Target, WhereNow, Word, values};

use super::{
    earlier_returns::{Confirmed, EarlierReturns},
    kernel::Kernel,
    process_table::ProcessTable,
};

/// The next look comes after this part of the time since the first one: so much of it at most is not known when the call returns.
const PART: u32 = 20;
const SOONEST: Duration = Duration::from_millis(20);
/// Looks that are taken at once until the calls are confirmed that are watched since just now: of a thread that runs in between a look may say
/// nothing.
const CONFIRMING: usize = 3;
/// When the first call of a thread was seen, ns, by process slot and thread: 0 or nothing if none was.
type Entries = HashMap<(u32, u32), u64>;

/// Of all processes that ran already when they were found.
#[derive(Debug)]
pub(super) struct EarlierCalls {
    /// Functions whose calls are counted.
    counted: FunctionSet,
    /// By process slot.
    processes: BTreeMap<u32, Earlier>,
    returns: EarlierReturns,
    /// As long as somebody has to be looked at; `None`, too, if the kernel permits no looks that stop nobody.
    looker: Option<Looker>,
    first: Instant,
    next: Instant,
}

/// Of one process.
#[derive(Debug, Default)]
struct Earlier {
    pid: u32,
    since_ns: u64,
    /// Whether it was looked at.
    is_known: bool,
    /// By thread id, of those that were there at the first look.
    threads: BTreeMap<u32, Thread>,
}

/// One thread, from the beginning of the observation to its first call that was seen.
#[derive(Debug)]
struct Thread {
    call: Option<Call>,
    /// What was told of that to whoever asks for news.
    told: Option<After>,
    /// Until then it is known what it did, ns.
    known_ns: u64,
    state: State,
}

#[derive(Debug)]
struct Call {
    function: FunctionId,
    return_address: Option<u64>,
    words: Vec<Option<Word>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may be in a call that had begun before, and if there is a [`Call`], it was when it was last looked at.
    Followed,
    /// It is not: what it did is not known until this moment, ns.
    Outside(u64),
    /// The same, and it has ended.
    Ended(u64),
}

impl State {
    /// What has become of the call. `known_ns`: its thread was last known to be in it.
    fn after(self, known_ns: u64) -> After {
        match self {
            Self::Followed => After::Open,
            Self::Outside(_) => After::Returned(known_ns),
            Self::Ended(_) => After::ThreadEnded(known_ns),
        }
    }
}

impl Call {
    fn of(found: &WhereNow) -> Option<Self> {
        match found {
            WhereNow::InCall { function, call_site, words, .. } => {
                Some(Self { function: *function, return_address: *call_site, words: words.clone() })
            }
            WhereNow::Outside | WhereNow::NotKnown => None,
        }
    }

    fn told(&self, tid: u32, since_ns: u64, now: After, handle_width: u32) -> CallBefore {
        CallBefore {
            tid,
            function: self.function.number().into(),
            call_site: self.return_address,
            words: values(self.function.function(), &self.words, handle_width),
            since_ns,
            now,
        }
    }
}

impl EarlierCalls {
    pub(super) fn new(counted: FunctionSet) -> Self {
        let now = Instant::now();
        let (processes, returns) = (BTreeMap::new(), EarlierReturns::default());
        Self { counted, processes, returns, looker: None, first: now, next: now }
    }

    /// A process is observed since then (ns) that ran already, whether it was waited for or not: it may have come too far by then.
    pub(super) fn follow(&mut self, (slot, pid): (u32, u32), since_ns: u64) {
        self.processes.insert(slot, Earlier { pid, since_ns, ..Earlier::default() });
    }

    /// When to look again; `None`: there is nobody to look at.
    pub(super) fn next_look(&self) -> Option<Instant> {
        (self.looker.is_some() && self.processes.values().any(Earlier::is_followed)).then_some(self.next)
    }

    /// To be called before these processes are observed. What has to be known of their files is read, so that little time passes between
    /// the beginning of their observation and the first look at them, in which nobody knows what they do; and calls that threads are in by
    /// then are watched, so that what is called in them is known to be from the beginning on.
    pub(super) fn prepare<'a>(&mut self, kernel: &mut Kernel, processes: impl Iterator<Item = &'a Process>) {
        if self.looker.is_none() {
            match Capture::without_stopping(Limits::default()) {
                Ok(capture) => self.looker = Some(Looker::new(capture)),
                Err(error) => tracing::debug!("calls that began before are not known: {error}"),
            }
        }
        let processes: Vec<&Process> = processes.collect();
        let Some((found, _)) = self.find(kernel, &processes) else { return };
        if !self.watch(kernel, &processes, &found, |_| true) {
            return;
        }
        for _ in 0..CONFIRMING {
            let Some((found, entries)) = self.find(kernel, &processes) else { return };
            self.confirm(kernel, &found, &entries);
            if self.returns.are_all_confirmed() {
                return;
            }
        }
    }

    /// Looks at the processes that were added, for the first time.
    pub(super) fn begin(&mut self, kernel: &mut Kernel, process_table: &ProcessTable) {
        self.first = Instant::now();
        self.look(kernel, process_table);
    }

    /// Looks at whoever may still be in a call that had begun before.
    pub(super) fn look(&mut self, kernel: &mut Kernel, process_table: &ProcessTable) {
        // Also of those who have ended since.
        self.note_returns(kernel);
        let followed = self.processes.iter().filter(|(_, earlier)| earlier.is_followed());
        let slots: Vec<(u32, u32)> = followed.map(|(slot, earlier)| (*slot, earlier.pid)).collect();
        let processes: Vec<_> = slots.iter().filter_map(|(slot, _)| process_table.process(*slot)).collect();
        if processes.is_empty() {
            // Its tables take some memory.
            self.looker = None;
            self.returns.keep(kernel, |_| false);
            return;
        }
        if let Some(found) = self.look_at(kernel, &slots, &processes) {
            let followed: HashSet<(u32, u32)> = self.followed().collect();
            if self.watch(kernel, &processes, &found, |thread| followed.contains(&thread)) {
                for _ in 0..CONFIRMING {
                    self.look_at(kernel, &slots, &processes);
                    if self.returns.are_all_confirmed() {
                        break;
                    }
                }
            }
        }
        let alive: HashSet<u32> = processes.iter().map(|process| process.pid()).collect();
        let followed: HashSet<(u32, u32)> = self.followed().filter(|(pid, _)| alive.contains(pid)).collect();
        self.returns.keep(kernel, |thread| followed.contains(&thread));
        self.next = Instant::now() + (self.first.elapsed() / PART).max(SOONEST);
    }

    /// Those of which a thread was in a call.
    pub(super) fn callers(&self) -> impl Iterator<Item = u32> {
        let is_caller = |earlier: &Earlier| earlier.threads.values().any(|thread| thread.call.is_some());
        self.processes.iter().filter(move |(_, earlier)| is_caller(earlier)).map(|(&slot, _)| slot)
    }

    /// Whether a thread is in such a call, as far as is known.
    pub(super) fn is_any_open(&self) -> bool {
        let is_open = |thread: &Thread| thread.call.is_some() && thread.state == State::Followed;
        self.processes.values().any(|earlier| earlier.threads.values().any(is_open))
    }

    /// Calls of which more is known than when this was asked last, by process slot. `handle_width`: bytes of the handles of a process's library.
    pub(super) fn take_news(&mut self, handle_width: impl Fn(u32) -> u32) -> BTreeMap<u32, Vec<CallBefore>> {
        let mut news: BTreeMap<u32, Vec<CallBefore>> = BTreeMap::new();
        for (&slot, earlier) in &mut self.processes {
            let since_ns = earlier.since_ns;
            for (&tid, thread) in &mut earlier.threads {
                let now = thread.state.after(thread.known_ns);
                let Some(call) = thread.call.as_ref().filter(|_| thread.told != Some(now)) else { continue };
                let told = call.told(tid, since_ns, now, handle_width(slot));
                thread.told = Some(now);
                news.entry(slot).or_default().push(told);
            }
        }
        news
    }

    /// Process and thread of all that may be in a call that had begun before.
    fn followed(&self) -> impl Iterator<Item = (u32, u32)> {
        self.processes.values().flat_map(|earlier| {
            let threads = earlier.threads.iter().filter(|(_, thread)| thread.state == State::Followed);
            threads.map(|(tid, _)| (earlier.pid, *tid))
        })
    }

    /// One look at processes by slot and number, and what follows from it.
    fn look_at(&mut self, kernel: &mut Kernel, slots: &[(u32, u32)], processes: &[&Process]) -> Option<Vec<CallNow>> {
        let (found, entries) = self.find(kernel, processes)?;
        self.confirm(kernel, &found, &entries);
        for (slot, pid) in slots {
            let own: Vec<&CallNow> = found.iter().filter(|call| call.pid == *pid).collect();
            if let Some(earlier) = self.processes.get_mut(slot).filter(|_| !own.is_empty()) {
                earlier.take_in(*slot, &own, (&entries, &self.returns), self.counted);
            }
        }
        Some(found)
    }

    /// Where threads are, and when the first call of each was seen, which is read after the look: of whoever has no entry by then the call
    /// that was seen had begun before.
    fn find(&mut self, kernel: &Kernel, processes: &[&Process]) -> Option<(Vec<CallNow>, Entries)> {
        let looker = self.looker.as_mut()?;
        let targets: Vec<Target<'_>> = processes.iter().map(|process| target(process)).collect();
        let found = looker.look_for_calls(&targets);
        let found = found
            .inspect_err(|error| tracing::debug!("calls that began before could not be looked at: {error}"))
            .ok()?;
        let entries = kernel.observer.first_entries(&kernel.engine);
        let entries = entries
            .inspect_err(|error| tracing::debug!("calls that began before could not be told from later ones: {error}"))
            .ok()?;
        Some((found, entries))
    }

    fn confirm(&mut self, kernel: &mut Kernel, found: &[CallNow], entries: &Entries) {
        let called: HashSet<u32> = entries.keys().map(|(_, tid)| *tid).collect();
        self.returns.confirm(kernel, found, &called);
    }

    /// Watches the calls that threads were found in; gives whether one of them was not watched before.
    fn watch(
        &mut self,
        kernel: &mut Kernel,
        processes: &[&Process],
        found: &[CallNow],
        is_wanted: impl Fn((u32, u32)) -> bool,
    ) -> bool {
        let is_counted = |now: &CallNow| match now.found {
            WhereNow::InCall { function, .. } => self.counted.contains(function),
            WhereNow::Outside | WhereNow::NotKnown => false,
        };
        let mut is_new = false;
        for process in processes {
            let own = found.iter().filter(|now| now.pid == process.pid());
            let own: Vec<_> = own.filter(|now| is_counted(now) && is_wanted((now.pid, now.tid))).collect();
            is_new |= self.returns.watch(kernel, process, &own);
        }
        is_new
    }

    /// Takes in which calls have returned. To be called after what the tables say was read: whatever was seen to be called after such a call
    /// is no news to the latter then.
    pub(super) fn note_returns(&mut self, kernel: &mut Kernel) {
        self.returns.read(kernel);
        for earlier in self.processes.values_mut() {
            earlier.take_in_returns(&self.returns);
        }
    }

    /// Adds what was found to what the tables say.
    pub(super) fn complete(&self, observed: &[Observed], snapshot: &mut Snapshot) {
        let now_ns = snapshot.taken_ns;
        for process in &mut snapshot.processes {
            let Some(earlier) = self.processes.get(&process.process).filter(|earlier| earlier.is_known) else {
                continue;
            };
            let Some(observed) = observed.iter().find(|one| one.process == process.process) else { continue };
            let found = earlier.found(process, observed.until_ns, now_ns);
            process.add_began_before(found);
        }
    }
}

fn target(process: &Process) -> Target<'_> {
    Target { member: Member::Pid(process.pid()), process, executable: "", element: &|_| None }
}

impl Earlier {
    /// Whether there is something left to be found out.
    fn is_followed(&self) -> bool {
        !self.is_known || self.threads.values().any(|thread| thread.state == State::Followed)
    }

    /// Takes in which calls of its threads have returned.
    fn take_in_returns(&mut self, returns: &EarlierReturns) {
        for (&tid, thread) in &mut self.threads {
            if let Some(confirmed) = returns.confirmed((self.pid, tid)) {
                thread.take_in_return(confirmed, self.since_ns);
            }
        }
    }

    /// One look at all threads of the process. `entries`: the first call of each that was seen; `returns`: whose calls have returned. Both
    /// were read after the look.
    fn take_in(
        &mut self,
        slot: u32,
        seen: &[&CallNow],
        (entries, returns): (&Entries, &EarlierReturns),
        counted: FunctionSet,
    ) {
        if !self.is_known {
            self.is_known = true;
            let since_ns = self.since_ns;
            let new = || Thread { call: None, told: None, known_ns: since_ns, state: State::Followed };
            self.threads = seen.iter().map(|call| (call.tid, new())).collect();
        }
        self.take_in_returns(returns);
        let last_ns = seen.iter().map(|call| call.at_ns).max().unwrap_or(0);
        for now in seen {
            let Some(thread) = self.threads.get_mut(&now.tid) else { continue };
            let entry_ns = entries.get(&(slot, now.tid)).copied().unwrap_or(0);
            thread.take_in(now, entry_ns, counted);
        }
        let there: BTreeSet<u32> = seen.iter().map(|call| call.tid).collect();
        for (_, thread) in self.threads.iter_mut().filter(|(tid, _)| !there.contains(tid)) {
            match thread.state {
                State::Followed => thread.state = State::Ended(last_ns.max(thread.known_ns)),
                State::Outside(until_ns) => thread.state = State::Ended(until_ns),
                State::Ended(_) => {}
            }
        }
    }

    /// What is known by now. `until_ns`: when the process has ended.
    fn found(&self, process: &ProcessSnapshot, until_ns: Option<u64>, now_ns: u64) -> BeganBefore {
        let mut found = BeganBefore::default();
        let width = process.layout.handle_width();
        for (&tid, thread) in &self.threads {
            let living = process.threads.iter().find(|known| known.tid == tid);
            let entry_ns = living.map(|known| known.state.first_entry_ns).filter(|&ns| ns > 0);
            // The first of its id: one that came later has got the id only.
            let ended = process.ended_threads.iter().find(|known| known.tid == tid && known.first_entry_ns > 0);
            let state = match (thread.state, until_ns, entry_ns) {
                (State::Followed, ..) if let Some(ended) = ended => {
                    State::Ended(ended.first_entry_ns.max(thread.known_ns))
                }
                (State::Followed, Some(end_ns), _) => State::Ended(end_ns.max(thread.known_ns)),
                (State::Followed, None, Some(entry_ns)) => State::Outside(entry_ns.max(thread.known_ns)),
                (State::Outside(until_ns), Some(_), _) => State::Ended(until_ns),
                (state, ..) => state,
            };
            // It may have been noted after what else the tables say was read.
            let now = state.after(thread.known_ns.min(now_ns));
            let unknown_ns = match (state, &thread.call) {
                (State::Followed, Some(_)) => None,
                (State::Followed, None) => Some(now_ns),
                (State::Outside(until_ns) | State::Ended(until_ns), _) => Some(until_ns),
            };
            found.unknown.extend(unknown_ns.map(|until_ns| (thread.known_ns, until_ns)));
            found.calls.extend(thread.call.as_ref().map(|call| call.told(tid, self.since_ns, now, width)));
        }
        found
    }
}

impl Thread {
    /// Its call is one that no probe has seen begin, whatever was seen since, and may have returned.
    fn take_in_return(&mut self, confirmed: Confirmed<'_>, since_ns: u64) {
        // What was over before the observation began is none of its calls.
        let Some(returned_ns) = confirmed.returned_ns.filter(|&ns| ns > since_ns) else { return };
        if self.state == State::Followed {
            if self.call.is_none() {
                self.call = Call::of(&confirmed.seen.found);
            }
            self.known_ns = returned_ns.max(self.known_ns);
            self.state = State::Outside(self.known_ns);
        }
    }

    /// One look. `entry_ns`: its first call that was seen; 0: none yet.
    fn take_in(&mut self, now: &CallNow, entry_ns: u64, counted: FunctionSet) {
        if self.state != State::Followed {
            return;
        }
        if entry_ns > 0 {
            self.state = State::Outside(entry_ns.max(self.known_ns));
            return;
        }
        match &now.found {
            // One that is not counted is nothing that the profile knows.
            found @ WhereNow::InCall { function, .. } if counted.contains(*function) => {
                if self.call.is_none() {
                    self.call = Call::of(found);
                }
                if self.call.as_ref().is_some_and(|known| known.function == *function) {
                    self.known_ns = self.known_ns.max(now.at_ns);
                } else {
                    self.state = State::Outside(now.at_ns.max(self.known_ns));
                }
            }
            WhereNow::InCall { .. } | WhereNow::Outside => self.state = State::Outside(now.at_ns.max(self.known_ns)),
            WhereNow::NotKnown => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::{EndedThread, ThreadState};
    use mpiprobe_functions::by_name;
    use mpiprobe_observe::ThreadSnapshot;

    use super::*;

    const SLOT: u32 = 1;

    fn at(tid: u32, at_ns: u64, found: WhereNow) -> CallNow {
        CallNow { pid: 7, tid, at_ns, found }
    }

    fn inside(name: &str) -> WhereNow {
        let function = by_name(name).unwrap();
        WhereNow::InCall { function, call_site: Some(0x40), words: Vec::new(), returns: None }
    }

    fn looks(looks: &[(CallNow, u64)]) -> Earlier {
        let mut earlier = Earlier { since_ns: 100, ..Earlier::default() };
        for (now, entry_ns) in looks {
            let entries = [((SLOT, now.tid), *entry_ns)].into();
            earlier.take_in(SLOT, &[now], (&entries, &EarlierReturns::default()), FunctionSet::all());
        }
        earlier
    }

    /// Calls with the time in them, and when it is not known.
    type Found = (Vec<(After, u64)>, Vec<(u64, u64)>);

    fn found(earlier: &Earlier, entry_ns: u64, until_ns: Option<u64>) -> Found {
        let state = ThreadState { id: 7, first_entry_ns: entry_ns, ..ThreadState::ZERO };
        let threads = vec![ThreadSnapshot { tid: 7, slot: 0, state }];
        let found = earlier.found(&ProcessSnapshot { threads, ..ProcessSnapshot::empty(SLOT) }, until_ns, 1000);
        (found.calls.iter().map(|call| (call.now, call.time_ns(1000))).collect(), found.unknown)
    }

    #[test]
    fn a_call_is_open_until_somebody_has_seen_otherwise() {
        let open = looks(&[(at(7, 150, inside("MPI_Recv")), 0), (at(7, 300, inside("MPI_Recv")), 0)]);
        assert!(open.is_followed());
        assert_eq!(found(&open, 0, None), (vec![(After::Open, 900)], vec![]));
        // It has called after the last look: what was between is not known.
        assert_eq!(found(&open, 700, None), (vec![(After::Returned(300), 200)], vec![(300, 700)]));
        assert_eq!(found(&open, 0, Some(800)), (vec![(After::ThreadEnded(300), 200)], vec![(300, 800)]));
    }

    #[test]
    fn whoever_is_seen_outside_is_known_from_then_on() {
        let left = looks(&[(at(7, 150, inside("MPI_Recv")), 0), (at(7, 300, WhereNow::Outside), 0)]);
        assert!(!left.is_followed());
        assert_eq!(found(&left, 0, None), (vec![(After::Returned(150), 50)], vec![(150, 300)]));
        assert_eq!(found(&left, 900, Some(950)), (vec![(After::ThreadEnded(150), 50)], vec![(150, 300)]));
        let never = looks(&[(at(7, 150, WhereNow::Outside), 0)]);
        assert_eq!(found(&never, 0, None), (vec![], vec![(100, 150)]));
    }

    #[test]
    fn a_thread_that_has_called_since_and_ended_is_known_from_its_first_call_on() {
        let unknown = looks(&[(at(7, 150, WhereNow::NotKnown), 0)]);
        let ended = |first_entry_ns| EndedThread { ended_ns: 600, tid: 7, first_entry_ns, ..EndedThread::default() };
        let process = ProcessSnapshot { ended_threads: vec![ended(400), ended(500)], ..ProcessSnapshot::empty(SLOT) };
        let found = unknown.found(&process, Some(800), 1000);
        assert_eq!((found.calls, found.unknown), (vec![], vec![(100, 400)]));
    }

    #[test]
    fn a_call_that_was_seen_to_begin_is_none_that_began_before() {
        let seen = looks(&[(at(7, 150, inside("MPI_Recv")), 120)]);
        assert_eq!(found(&seen, 120, None), (vec![], vec![(100, 120)]));
    }

    /// The same after the return was noted of the call that it was in.
    fn returned(mut earlier: Earlier, returned_ns: u64) -> Earlier {
        let seen = at(7, 90, inside("MPI_Recv"));
        for thread in earlier.threads.values_mut() {
            thread.take_in_return(Confirmed { seen: &seen, returned_ns: Some(returned_ns) }, earlier.since_ns);
        }
        earlier
    }

    #[test]
    fn a_call_whose_return_was_noted_is_known_as_a_whole() {
        let open = || looks(&[(at(7, 150, inside("MPI_Recv")), 0)]);
        let left = returned(open(), 420);
        assert!(!left.is_followed());
        assert_eq!(found(&left, 0, None), (vec![(After::Returned(420), 320)], vec![(420, 420)]));
        // What it has called since tells nothing more.
        assert_eq!(found(&left, 700, None).0, [(After::Returned(420), 320)]);
        assert_eq!(found(&left, 700, Some(900)).0, [(After::ThreadEnded(420), 320)]);
        // Noted after everything else was read that is shown as of 1000.
        assert_eq!(found(&returned(open(), 1100), 0, None).0, [(After::Returned(1000), 900)]);
    }

    #[test]
    fn a_call_that_had_returned_before_is_none_of_the_observation() {
        let unknown = || looks(&[(at(7, 150, WhereNow::NotKnown), 0)]);
        assert!(returned(unknown(), 100).is_followed());
        // Nobody has looked between the beginning of the observation and the return.
        assert_eq!(found(&returned(unknown(), 140), 0, None).0, [(After::Returned(140), 40)]);
    }

    #[test]
    fn of_a_thread_whose_stack_is_not_known_nothing_is() {
        let unknown = looks(&[(at(7, 150, WhereNow::NotKnown), 0)]);
        assert!(unknown.is_followed());
        assert_eq!(found(&unknown, 0, None), (vec![], vec![(100, 1000)]));
        assert_eq!(found(&unknown, 400, None), (vec![], vec![(100, 400)]));
    }

    #[test]
    fn threads_that_have_ended_are_followed_no_longer() {
        let mut ended = looks(&[(at(7, 150, inside("MPI_Recv")), 0)]);
        let nothing = (&Entries::new(), &EarlierReturns::default());
        ended.take_in(SLOT, &[&at(8, 400, WhereNow::Outside)], nothing, FunctionSet::EMPTY);
        assert!(!ended.is_followed());
        assert_eq!(found(&ended, 0, None), (vec![(After::ThreadEnded(150), 50)], vec![(150, 400)]));
    }
}
