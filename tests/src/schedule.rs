//! When trials run: several at a time, as far as the machine has cores and they leave each other alone.
//!
//! Probes are on a file, and concern every process that has mapped it. So of those that attach probes, two of one MPI never run at
//! once. What a trial claims follows from its [requirements](crate::Requirement).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};

use crate::mpi::Mpi;
use crate::requirement::Requirement;

/// Trials that wait until it is their turn, besides those that run: a number of threads that do nothing.
const WAITING: usize = 16;

/// What nobody else may use meanwhile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claim {
    /// The whole machine.
    alone: bool,
    /// Files of this MPI, on which probes are.
    libraries: Option<Mpi>,
}

impl Claim {
    /// Of a trial of this name.
    pub(crate) fn of(name: &str, requirements: &[Requirement]) -> Self {
        let mpi = requirements.iter().find_map(|needed| match needed {
            Requirement::Mpi(mpi) => Some(*mpi),
            _ => None,
        });
        let alone = requirements.contains(&Requirement::QuietMachine);
        if alone {
            ALONE.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
        Self { alone, libraries: mpi.filter(|_| requirements.contains(&Requirement::Bpf)) }
    }

    /// Runs the trial when it is its turn, and remembers how long it took.
    pub(crate) fn run<T>(&self, name: &str, trial: impl FnOnce() -> T) -> T {
        let _turn = Turn::wait(&MACHINE, self.clone());
        let start = Instant::now();
        let result = trial();
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).push((start.elapsed(), name.to_owned()));
        result
    }
}

static MACHINE: Machine = Machine {
    state: Mutex::new(State { most: 1, running: 0, is_taken: false, libraries: BTreeSet::new() }),
    changed: Condvar::new(),
};

/// Names of trials that claim the whole machine.
static ALONE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

struct Machine {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Trials at a time.
    most: usize,
    running: usize,
    /// By one that has to be alone.
    is_taken: bool,
    libraries: BTreeSet<Mpi>,
}

impl State {
    fn is_free_for(&self, claim: &Claim) -> bool {
        let is_free = !self.is_taken && self.running < self.most && (!claim.alone || self.running == 0);
        is_free && claim.libraries.is_none_or(|mpi| !self.libraries.contains(&mpi))
    }
}

/// The claim of a trial that runs. Given up when dropped, also by a trial that panics.
struct Turn<'a> {
    machine: &'a Machine,
    claim: Claim,
}

impl<'a> Turn<'a> {
    fn wait(machine: &'a Machine, claim: Claim) -> Self {
        let state = machine.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = machine.changed.wait_while(state, |state| !state.is_free_for(&claim));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.running += 1;
        state.is_taken = claim.alone;
        state.libraries.extend(claim.libraries);
        drop(state);
        Self { machine, claim }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.machine.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running -= 1;
        state.is_taken &= !self.claim.alone;
        if let Some(mpi) = self.claim.libraries {
            state.libraries.remove(&mpi);
        }
        drop(state);
        self.machine.changed.notify_all();
    }
}

/// Runs the trials of a test program and ends it. Last it prints how long each has taken. `--test-threads` is the number that may run at a time.
pub fn run(mut arguments: Arguments, trials: Vec<Trial>) -> ! {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let most = arguments.test_threads.unwrap_or(cores).max(1);
    MACHINE.state.lock().unwrap_or_else(PoisonError::into_inner).most = most;
    if most > 1 {
        arguments.test_threads = Some(most + WAITING);
    }
    let conclusion = libtest_mimic::run(&arguments, interleaved(trials));
    if !arguments.list {
        print_times();
    }
    conclusion.exit();
}

/// In turns of all MPIs, so that there are trials at any time that leave each other alone; the order within one MPI stays. Those that
/// claim the whole machine are the last: nobody has to wait for them to begin.
fn interleaved(trials: Vec<Trial>) -> Vec<Trial> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut place = |trial: &Trial| {
        let group = trial.name().split("::").next().unwrap_or_default();
        let number = numbers.entry(group.to_owned()).or_default();
        *number += 1;
        (alone.contains(trial.name()), *number)
    };
    let mut placed: Vec<_> = trials.into_iter().map(|trial| (place(&trial), trial)).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, trial)| trial).collect()
}

/// `cargo xtask test` reads these lines.
fn print_times() {
    let mut times = std::mem::take(&mut *TIMES.lock().unwrap_or_else(PoisonError::into_inner));
    times.sort_by(|one, other| other.cmp(one));
    let program = std::env::args().next().unwrap_or_default();
    let name = Path::new(&program).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    // Without the hash that cargo puts behind it.
    let name = name.rsplit_once('-').map_or(name, |(name, _)| name);
    println!("times of {} trials of {name}, the slowest first:", times.len());
    for (time, name) in times {
        println!("{:9.2} s  {name}", time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn machine(most: usize) -> Machine {
        let state = State { most, running: 0, is_taken: false, libraries: BTreeSet::new() };
        Machine { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn is_free(machine: &Machine, needs: &[Requirement]) -> bool {
        machine.state.lock().unwrap().is_free_for(&Claim::of("trial", needs))
    }

    fn begin<'a>(machine: &'a Machine, needs: &[Requirement]) -> Turn<'a> {
        assert!(is_free(machine, needs));
        Turn::wait(machine, Claim::of("trial", needs))
    }

    const PROBES: [Requirement; 2] = [Requirement::Bpf, Requirement::Mpi(Mpi::Mpich)];
    const OTHER_PROBES: [Requirement; 2] = [Requirement::Bpf, Requirement::Mpi(Mpi::OpenMpi)];

    /// Invariant TRIALS-APART.
    #[test]
    fn probes_on_one_library_are_never_of_two_trials() {
        let machine = machine(8);
        let first = begin(&machine, &PROBES);
        assert!(!is_free(&machine, &PROBES));
        // Without probes, nobody is concerned.
        let _job = begin(&machine, &[Requirement::Mpi(Mpi::Mpich)]);
        let _other = begin(&machine, &OTHER_PROBES);
        drop(first);
        assert!(is_free(&machine, &PROBES) && !is_free(&machine, &OTHER_PROBES));
    }

    #[test]
    fn no_more_run_at_a_time_than_the_machine_has_cores() {
        let machine = machine(2);
        let turns = [begin(&machine, &[]), begin(&machine, &PROBES)];
        assert!(!is_free(&machine, &[]));
        drop(turns);
        assert!(is_free(&machine, &[]));
    }

    /// Invariant TRIALS-APART.
    #[test]
    fn who_needs_a_quiet_machine_is_alone() {
        let machine = machine(8);
        let quiet = [Requirement::QuietMachine];
        let other = begin(&machine, &[]);
        assert!(!is_free(&machine, &quiet));
        drop(other);
        let turn = begin(&machine, &quiet);
        assert!(!is_free(&machine, &[]) && !is_free(&machine, &PROBES));
        drop(turn);
        assert!(is_free(&machine, &PROBES));
    }

    #[test]
    fn trials_that_fail_give_up_what_they_had() {
        let machine = machine(1);
        let failed = std::panic::catch_unwind(|| {
            let _turn = begin(&machine, &PROBES);
            assert_eq!(1, 2, "a trial that fails");
        });
        assert!(failed.is_err() && is_free(&machine, &PROBES));
    }

    #[test]
    fn mpis_take_turns_and_who_is_alone_is_last() {
        Claim::of("mpich::alone", &[Requirement::QuietMachine]);
        let names = ["openmpi::a", "openmpi::b", "mpich::alone", "mpich::a", "mpich::b", "general"];
        let trials = names.map(|name| Trial::test(name, || Ok(())));
        let order: Vec<String> = interleaved(trials.into()).iter().map(|trial| trial.name().to_owned()).collect();
        assert_eq!(order, ["openmpi::a", "general", "openmpi::b", "mpich::a", "mpich::b", "mpich::alone"]);
    }
}
