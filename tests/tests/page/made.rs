//! Reports of jobs that never ran, and the JSON of the same profiles.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use mpiprobe_model::{EndReason, Profile};
use mpiprobe_report::page::html::{Finding, Page, Series, Sources};
use mpiprobe_report::present::recording::Sums;
use mpiprobe_tests::synthetic::{Synthetic, earlier};

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

    fn of(name: &str, profile: &Profile, series: Option<&Series>, sources: &Sources) -> Result<Self, Failed> {
        let findings: Vec<Finding> =
            mpiprobe_report::present::findings(profile).into_iter().map(Finding::from).collect();
        let page = Page { profile, findings: &findings, notes: sources.notes(), series, sources };
        let made =
            Self { page: directory().join(format!("{name}.html")), json: directory().join(format!("{name}.json")) };
        fs::create_dir_all(directory())?;
        fs::write(&made.page, page.html()?)?;
        fs::write(&made.json, serde_json::to_vec(profile)?)?;
        Ok(made)
    }
}

/// Kept, so that one can look at them.
fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/pages"))
}
