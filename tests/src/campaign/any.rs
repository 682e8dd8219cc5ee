//! Any program that somebody has: what both engines say of it, against what the truth library counts in the same run. It may do
//! anything, so differences are printed, not asserted: whoever runs it judges them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    process::{self, ExitCode},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use mpiprobe_functions::FunctionSet;

use super::CampaignError;
use crate::{
    Job, Mpi, Profile, Profiler, Program, Rank, check,
    job::JobBuilder,
    traffic::{Sums, bounded, differences, seen, take_sums, told},
    truth::{Image, Snapshot},
};

/// Tells apart what this process runs.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// How it is observed.
pub const WAYS: [&str; 3] = ["run --engine wrapper", "run --engine ebpf", "attached before main"];
/// The program's own time, not that of a test.
const DEADLINE: Duration = Duration::from_mins(30);

/// Figures of one run that were compared.
#[derive(Debug, Default)]
pub struct AnyReport {
    /// Calls of a function by a rank, and calls, bytes sent and received, and what is unknown, of a function with a partner.
    pub equal: usize,
    pub different: Vec<String>,
    /// Why the profile is incomplete, as it says itself.
    pub incomplete: Vec<String>,
}

impl fmt::Display for AnyReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} equal, {} different", self.equal, self.different.len())?;
        self.incomplete.iter().try_for_each(|why| write!(formatter, "\n    incomplete: {why}"))?;
        self.different.iter().take(SHOWN).try_for_each(|line| write!(formatter, "\n    {line}"))
    }
}

/// Differences printed of one run.
const SHOWN: usize = 40;

/// `cargo xtask soak any MPI RANKS PROGRAM [ARGUMENT…]`.
pub fn main(arguments: &[String]) -> ExitCode {
    let [mpi, ranks, executable, arguments @ ..] = arguments else { return usage() };
    let mpi = Mpi::EVERY.into_iter().find(|known| known.id() == mpi);
    let (Some(mpi), Ok(ranks)) = (mpi, ranks.parse()) else { return usage() };
    let program = Program::installed(executable);
    let wanted = match check::functions("default") {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("{}", error.message().unwrap_or("no functions"));
            return ExitCode::FAILURE;
        }
    };
    let mut failed = false;
    for way in WAYS {
        let name = Path::new(executable).file_name().unwrap_or_default().to_string_lossy();
        match observe(mpi, program, ranks, arguments, way, &wanted) {
            Ok(report) => {
                println!("{mpi}: {name}: {way}: {report}");
                failed |= !report.is_right();
            }
            Err(error) => {
                println!("{mpi}: {name}: {way}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn usage() -> ExitCode {
    let known: Vec<&str> = Mpi::EVERY.into_iter().map(Mpi::id).collect();
    eprintln!("usage: soak any MPI RANKS PROGRAM [ARGUMENT...], of MPI one of {}", known.join(", "));
    ExitCode::from(2)
}

pub(super) fn observe(
    mpi: Mpi,
    program: Program,
    ranks: u32,
    arguments: &[String],
    way: &str,
    wanted: &FunctionSet,
) -> Result<AnyReport, CampaignError> {
    let builder = || -> JobBuilder {
        // Names are in the kernel's process table, with fifteen bytes each. Several programs may run at once.
        let called = format!("any-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed) % 100);
        Job::builder(mpi, program).ranks(ranks).args(arguments).called(called).semantics().deadline(DEADLINE)
    };
    let (profile, truth) = if let Some(engine) = way.strip_prefix("run --engine ") {
        let mut job = builder().run_by(engine, [] as [&str; 0])?.spawn()?;
        job.wait()?.success()?;
        (job.profile()?, job.snapshot()?)
    } else {
        let mut job = builder().gates(&["start"]).spawn()?;
        job.wait_for_gate("start")?;
        let profiler = Profiler::observe(["-v", "--traffic", "--pid-of", job.called()])?;
        job.open_gate("start")?;
        job.wait()?.success()?;
        (profiler.wait()?.profile()?, job.snapshot()?)
    };
    Ok(compare(&profile, &truth, wanted, !way.contains("wrapper")))
}

/// Whether those that the truth library makes itself are seen, too: of the wrapper it is no caller.
fn compare(profile: &Profile, truth: &Snapshot, wanted: &FunctionSet, sees_questions: bool) -> AnyReport {
    let mut report = AnyReport { incomplete: profile.incomplete_because.clone(), ..AnyReport::default() };
    for (rank, image) in &truth.ranks {
        let rows: Vec<&Rank> = profile.ranks.iter().filter(|row| row.pid == image.pid).collect();
        let [row] = rows.as_slice() else {
            report.different.push(format!("rank {rank}: {} rows", rows.len()));
            continue;
        };
        let counted = check::completed(image, None, wanted);
        let seen: BTreeMap<String, u64> =
            row.completed().into_iter().map(|(name, calls)| (name.into(), calls)).collect();
        for name in counted.keys().chain(seen.keys()).collect::<BTreeSet<_>>() {
            let asked = if sees_questions { image.calls(name).asked } else { 0 };
            let (counted, seen) =
                (counted.get(name).copied().unwrap_or(0) + asked, seen.get(name).copied().unwrap_or(0));
            report.note(counted == seen, || format!("rank {rank}: {name}: {counted} calls, seen {seen}"));
        }
        compare_traffic(&mut report, *rank, row, image);
    }
    report
}

/// A call that has failed moves nothing, and the truth library does not say with whom it would have: an observer counts it somewhere.
fn compare_traffic(report: &mut AnyReport, rank: u32, row: &Rank, image: &Image) {
    let functions: BTreeSet<String> = image.traffic.functions().into_keys().map(str::to_owned).collect();
    let (mut told, mut seen): (Sums, Sums) = (told(image, None), seen(row, &functions));
    let mut failed: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, calls) in image.functions.iter().filter(|(name, calls)| calls.failed > 0 && functions.contains(*name)) {
        failed.insert(name, calls.failed);
    }
    let bounded = bounded(row);
    let (sums, mut bounds) = (take_sums(&mut told, &bounded), take_sums(&mut seen, &bounded));
    seen.retain(|key, amounts| {
        if let Some(left) = failed.get_mut(key.0.as_str()) {
            let too_many = amounts[0].saturating_sub(told.get(key).map_or(0, |told| told[0])).min(*left);
            *left -= too_many;
            amounts[0] -= too_many;
        }
        *amounts != [0; 4]
    });
    for (name, [calls, ..]) in &mut bounds {
        *calls -= failed.remove(name.as_str()).unwrap_or(0).min(*calls);
    }
    for (name, left) in failed {
        report.note(left == 0, || format!("rank {rank}: {name}: {left} calls that failed are not seen"));
    }
    let different = differences(&told, &seen);
    let of_either = told.keys().chain(seen.keys()).collect::<BTreeSet<_>>().len();
    report.equal += of_either - different.len();
    report.different.extend(different.into_iter().map(|line| format!("rank {rank}: {line}")));
    for name in sums.keys().chain(bounds.keys()).collect::<BTreeSet<_>>() {
        let [calls, sent, received, unknown] = sums.get(name).copied().unwrap_or_default();
        let [seen_calls, seen_sent, most, seen_unknown] = bounds.get(name).copied().unwrap_or_default();
        let least = most.saturating_sub(bounded.get(name).copied().unwrap_or(0));
        let is_equal =
            (calls, sent, unknown) == (seen_calls, seen_sent, seen_unknown) && (least..=most).contains(&received);
        report.note(is_equal, || {
            format!("rank {rank}: {name}: {:?}, seen {:?}, at least {least} received", sums.get(name), bounds.get(name))
        });
    }
}

impl AnyReport {
    pub fn is_right(&self) -> bool {
        self.different.is_empty() && self.incomplete.is_empty()
    }

    fn note(&mut self, is_equal: bool, what: impl FnOnce() -> String) {
        if is_equal {
            self.equal += 1;
        } else {
            self.different.push(what());
        }
    }
}
