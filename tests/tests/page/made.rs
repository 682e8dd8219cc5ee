//! Reports of jobs that never ran, and the JSON of the same profiles.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use mpiprobe_model::{EndReason, Profile};
use mpiprobe_report::compare::{self, Comparison, Run};
use mpiprobe_report::page::html::{Finding, Page, Series, Sources};
use mpiprobe_report::present::recording::Sums;
use mpiprobe_tests::synthetic::{Synthetic, earlier};
use serde::Serialize;

/// Two files.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) page: PathBuf,
    pub(crate) json: PathBuf,
}

/// What somebody may have called a program, a node, a communicator or a source file.
const HOSTILE: &str = "</script><script>window.broken=1</script><img src=x onerror=window.broken=1>\"'><svg/onload=window.broken=1>javascript:alert(1)--><!--${7*7}{{7*7}}";

impl Made {
    /// Of a job with a moment a second.
    pub(crate) fn recording(name: &str, job: Synthetic, seconds: u64) -> Result<Self, Failed> {
        let mut series = Series::new(usize::try_from(seconds)?, false);
        for second in 1..seconds {
            series.add(&Sums::of(&job.profile(second, None)));
        }
        let profile = job.profile(seconds, Some(EndReason::TargetsEnded));
        series.add(&Sums::of(&profile));
        Self::of(name, &profile, Some(&series), &Sources::default())
    }

    /// The same of a large job; of moments before the last, nothing is made that a page does not show.
    pub(crate) fn long(name: &str, job: Synthetic, seconds: u64) -> Result<Self, Failed> {
        let profile = job.profile(seconds, Some(EndReason::TargetsEnded));
        let mut series = Series::new(usize::try_from(seconds)?, false);
        for second in 1..seconds {
            series.add(&Sums::of(&earlier(&profile, second, seconds)));
        }
        series.add(&Sums::of(&profile));
        Self::of(name, &profile, Some(&series), &Sources::default())
    }

    /// Of a profile that stands alone.
    pub(crate) fn moment(name: &str, job: Synthetic) -> Result<Self, Failed> {
        Self::of(name, &job.profile(20, None), None, &Sources::default())
    }

    /// Every string in it is hostile.
    pub(crate) fn hostile(name: &str) -> Result<Self, Failed> {
        let mut profile = Synthetic::HYBRID.profile(20, None);
        make_hostile(&mut profile);
        Self::of(name, &profile, None, &Sources::default())
    }

    /// With a source file at its call sites, which is hostile too.
    pub(crate) fn with_source(name: &str) -> Result<Self, Failed> {
        let profile = Synthetic::SMALL.profile(20, None);
        let directory = directory().join("solve");
        fs::create_dir_all(&directory)?;
        let line = |number: usize| format!("    step({number}); /* {HOSTILE} */");
        fs::write(directory.join("solve.c"), (1..=5000).map(line).collect::<Vec<_>>().join("\n"))?;
        let sources = Sources::find(&profile, &[directory])?;
        Self::of(name, &profile, None, &sources)
    }

    /// Five runs a side, in which one function takes longer in one rank; all names of them may be hostile.
    pub(crate) fn comparison(name: &str, is_hostile: bool) -> Result<Self, Failed> {
        let run = |number: u64, is_after: bool| {
            let mut profile = Synthetic::SMALL.profile(20, Some(EndReason::TargetsEnded));
            vary(&mut profile, number, is_after);
            let (mut named, side) = (format!("run{number}.rec"), if is_after { "after" } else { "before" });
            if is_hostile {
                make_hostile(&mut profile);
                named = format!("{HOSTILE}{named}");
            }
            Run::new(&format!("{side}/{named}"), &profile)
        };
        let side = |is_after| (1..=5).map(|number| run(number + 5 * u64::from(is_after), is_after)).collect::<Vec<_>>();
        let comparison = Comparison::of(&side(false), &side(true), &compare::Options::default())?;
        Self::written(name, &compare::html(&comparison)?, &comparison)
    }

    /// Runs of two sizes.
    pub(crate) fn scaling(name: &str) -> Result<Self, Failed> {
        let run = |ranks: u32| {
            Run::new(
                &format!("{ranks}.rec"),
                &Synthetic { ranks, ..Synthetic::SMALL }.profile(20, Some(EndReason::TargetsEnded)),
            )
        };
        let comparison = Comparison::of(&[run(4)], &[run(8)], &compare::Options::default())?;
        Self::written(name, &compare::html(&comparison)?, &comparison)
    }

    fn of(name: &str, profile: &Profile, series: Option<&Series>, sources: &Sources) -> Result<Self, Failed> {
        let findings: Vec<Finding> =
            mpiprobe_report::present::findings(profile).into_iter().map(Finding::from).collect();
        let page = Page { profile, findings: &findings, notes: sources.notes(), series, sources };
        Self::written(name, &page.html()?, profile)
    }

    fn written(name: &str, page: &str, told: &impl Serialize) -> Result<Self, Failed> {
        let made =
            Self { page: directory().join(format!("{name}.html")), json: directory().join(format!("{name}.json")) };
        fs::create_dir_all(directory())?;
        fs::write(&made.page, page)?;
        fs::write(&made.json, serde_json::to_vec(told)?)?;
        Ok(made)
    }
}

/// Times of a run, by its number: some thousandths more or less, and of one function of rank 1 a third more.
fn vary(profile: &mut Profile, number: u64, is_after: bool) {
    let scaled = |ns: u64, place: usize| ns / 1000 * (997 + (number * 7 + place as u64 * 3) % 5);
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for (place, rank) in profile.ranks.iter_mut().enumerate() {
        rank.mpi_ns = 0;
        for (index, function) in rank.functions.iter_mut().enumerate() {
            function.time_ns = scaled(function.time_ns, place + index);
            if is_after && (place, index) == (1, 0) {
                function.time_ns = function.time_ns / 3 * 4;
            }
            rank.mpi_ns += function.time_ns;
            *all.entry(function.name).or_default() += function.time_ns;
        }
        for (index, flow) in rank.traffic.iter_mut().flat_map(|traffic| &mut traffic.flows).enumerate() {
            flow.amounts.time_ns = scaled(flow.amounts.time_ns, place + index);
        }
    }
    for function in &mut profile.functions {
        function.all.time_ns = all.get(function.all.name).copied().unwrap_or_default();
    }
}

fn make_hostile(profile: &mut Profile) {
    HOSTILE.clone_into(&mut profile.host);
    profile.began = HOSTILE.into();
    profile.complete = false;
    profile.incomplete_because = vec![HOSTILE.into()];
    profile.engine.attached_by = HOSTILE.into();
    for library in &mut profile.engine.libraries {
        (library.path, library.implementation) = (HOSTILE.into(), HOSTILE.into());
    }
    for job in &mut profile.jobs {
        job.id = HOSTILE.into();
    }
    for communicator in profile.traffic.iter_mut().flat_map(|traffic| &mut traffic.communicators) {
        communicator.name = HOSTILE.into();
    }
    for rank in &mut profile.ranks {
        (rank.host, rank.executable, rank.job) = (HOSTILE.into(), format!("/bin/{HOSTILE}"), Some(HOSTILE.into()));
        for flow in rank.traffic.iter_mut().flat_map(|traffic| &mut traffic.flows) {
            flow.site = Some(HOSTILE.into());
        }
        for call in &mut rank.open_calls {
            call.site = Some(HOSTILE.into());
        }
    }
}

/// Kept, so that one can look at them.
fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/pages"))
}
