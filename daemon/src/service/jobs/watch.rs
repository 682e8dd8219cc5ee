//! Looks which jobs there are, and has each of them observed from then until its end.

use std::{io, sync::Arc, thread, time::Instant};

use mpiprobe_discover::{Caller, Job, ProcRoot, Scanner};
use mpiprobe_model::Profile;
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::divert_thread;
use mpiprobe_stacks::callsites::caught;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{
    board::Board,
    metrics::most_own,
    summary::{JobSummary, OpenCall, Written},
};
use crate::{
    memory::give_back_memory,
    service::configuration::{Configuration, Jobs},
    session::{Audience, Options, Served, observe_for},
};

/// The observation of a job of this name.
pub(super) type OptionsOf = Arc<dyn Fn(&str, &Jobs) -> Result<Options, String> + Send + Sync>;

/// Who is told of jobs that have ended.
#[derive(Clone)]
struct Ended {
    to: UnboundedSender<Written>,
    as_table: bool,
}

/// Begins to watch, for as long as this process lives. What is set is asked for again each time.
pub(in crate::service) fn watch(
    board: Arc<Board>,
    set: impl Fn() -> Configuration + Send + 'static,
    options_of: OptionsOf,
    ended: UnboundedSender<Written>,
) -> io::Result<()> {
    let watching = move || {
        let mut scanner = None;
        loop {
            let Configuration { jobs, metrics, summaries: kept, .. } = set();
            let summaries = kept.are_kept().then(|| Ended { to: ended.clone(), as_table: kept.parquet.is_some() });
            let began = Instant::now();
            if jobs.observe {
                // Whatever is found wrong with somebody's processes, those of others go on to be looked for.
                let looked =
                    caught(|| look(&board, &jobs, metrics.series, (&options_of, summaries.as_ref()), &mut scanner));
                if looked.is_none() {
                    tracing::error!(
                        "a look for jobs has failed, which is a defect of mpiprobe's; the next one begins anew"
                    );
                    scanner = None;
                }
            } else {
                board.end_missing(true);
                scanner = None;
            }
            // Of a node with very many processes, at most an eleventh of a processor.
            thread::sleep(jobs.look_every.max(began.elapsed().saturating_mul(10)));
        }
    };
    thread::Builder::new().name("jobs".into()).spawn(watching).map(drop)
}

fn look(
    board: &Arc<Board>,
    jobs: &Jobs,
    series: u32,
    (options_of, summaries): (&OptionsOf, Option<&Ended>),
    scanner: &mut Option<Scanner<ImplementationRecogniser>>,
) {
    // It remembers which files are MPI libraries, and which processes have them.
    let scanner = match (&mut *scanner, ProcRoot::system()) {
        (Some(scanner), _) => scanner,
        (none, Ok(root)) => {
            none.insert(Scanner::new(root, Caller::other(0, 0, None), ImplementationRecogniser::default()))
        }
        (None, Err(error)) => return tracing::warn!("no jobs can be looked for: {error}"),
    };
    let snapshot = match scanner.scan_jobs() {
        Ok(snapshot) => snapshot,
        Err(error) => return tracing::warn!("no jobs can be looked for: {error}"),
    };
    let Ok(functions) = mpiprobe_functions::select(&jobs.functions) else { return };
    let is_wanted = |job: &Job| {
        let is_of = |user: &String| *user == job.user.name || *user == job.user.id.to_string();
        jobs.users.is_empty() || jobs.users.iter().any(is_of)
    };
    let there = snapshot.jobs.len();
    let wanted: Vec<Job> = snapshot.jobs.into_iter().filter(is_wanted).collect();
    for job in board.look(there, &wanted, most_own(series, &functions, jobs.traffic)) {
        let (asked, wishes) = mpsc::unbounded_channel();
        let number = board.admit(job, asked);
        let options = options_of(job.id.as_str(), jobs);
        let begun = if board.running() > jobs.most as usize {
            Err(format!("{} jobs are observed already, which is as many as may be (`most` in [jobs])", jobs.most))
        } else {
            options
                .and_then(|options| observe(board, (number, job), options, jobs.tables, (wishes, summaries.cloned())))
        };
        if let Err(why) = begun {
            tracing::warn!("{}", not_observed(job.id.as_str(), &why));
            board.end(number, Err(why));
        }
    }
    board.end_missing(false);
}

fn not_observed(job: &str, why: &str) -> String {
    format!("job {job} is not observed: {why}")
}

/// On a thread of its own.
fn observe(
    board: &Arc<Board>,
    (number, job): (u64, &Job),
    options: Options,
    most_bytes: u64,
    (wishes, summaries): (UnboundedReceiver<mpiprobe_view::Asked>, Option<Ended>),
) -> Result<(), String> {
    let (board, job) = (Arc::clone(board), job.clone());
    let before_ns = age_ns(&job);
    let observing = move || {
        // What would be said to a user is nothing that an administrator has to be told of every job.
        let _diverted = divert_thread(Arc::new(|text| tracing::debug!("{text}")));
        let name = job.id.to_string();
        let audience =
            ForBoard { board: Arc::clone(&board), number, job, before_ns, most_bytes, longest: None, summaries };
        let served = Served { audience: Box::new(audience), asked: wishes };
        let observed = caught(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let observed = runtime.block_on(observe_for(&options, Caller::other(0, 0, None), served));
            runtime.shutdown_background();
            io::Result::Ok(observed)
        });
        let ended = match observed {
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("a defect of mpiprobe's".to_owned()),
        };
        if let Err(why) = &ended {
            tracing::info!("{}", not_observed(&name, why));
        }
        board.end(number, ended);
        give_back_memory();
    };
    let thread = thread::Builder::new().name("job".into()).spawn(observing);
    thread.map(drop).map_err(|error| format!("its observation could not be begun: {error}"))
}

/// How long a job's oldest process has been there; `None`: it is not known, or none is there any more.
fn age_ns(job: &Job) -> Option<u64> {
    let age = ProcRoot::system().ok().and_then(|root| job.age(&root))?;
    Some(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX))
}

/// Keeps figures of a job.
struct ForBoard {
    board: Arc<Board>,
    number: u64,
    /// As it was when it was found.
    job: Job,
    /// How long it had been there when its calls began to be counted.
    before_ns: Option<u64>,
    /// Tables that all jobs may have.
    most_bytes: u64,
    /// The call that was open longest.
    longest: Option<OpenCall>,
    /// Who is told of the end; `None`: nobody wants to know.
    summaries: Option<Ended>,
}

impl Audience for ForBoard {
    fn permit(&mut self, bytes: u64) -> Result<(), String> {
        self.board.take_room(self.number, bytes, self.most_bytes)
    }

    fn begun(&mut self) {
        // Programs have been verified and attached since it was found.
        self.before_ns = age_ns(&self.job).or(self.before_ns);
    }

    /// Of a job that nobody has asked for nobody's stacks are looked at.
    fn wants_causes(&self) -> bool {
        false
    }

    fn look(&mut self, profile: &Arc<Profile>) {
        let longest = OpenCall::longest(profile.ranks.iter());
        self.longest = self.longest.into_iter().chain(longest).max_by_key(|call| call.open_ns);
        self.board.update(self.number, self.job.id.as_str(), profile);
        if profile.end.is_some()
            && let Some(summaries) = &self.summaries
        {
            match JobSummary::of(&self.job, self.before_ns, profile, self.longest).written(summaries.as_table) {
                Ok(written) => drop(summaries.to.send(written)),
                Err(error) => tracing::warn!("there is no summary of job {}: {error}", self.job.id),
            }
        }
    }
}
