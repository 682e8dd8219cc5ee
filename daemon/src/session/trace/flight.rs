//! A trace that stays in memory: when the last part of it becomes a file.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use mpiprobe_discover::Failure;
use mpiprobe_report::present::say;
use mpiprobe_trace::{
    Process,
    store::{Dump, FlightSpan, WriteError},
};

use super::{
    dumps::{Asked, Dumps, reasons, refuse},
    elsewhere::Elsewhere,
    options::FlightOptions,
};

/// How long after a rank's death the others are waited for: what they come to because of it belongs to the same file.
const SETTLING: Duration = Duration::from_secs(1);
/// How often it is looked at what is too old, at least and at most.
const TRIM_INTERVALS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Who keeps what is recorded, and writes it down.
#[derive(Debug)]
pub(super) enum Keeper {
    Here(Dumps),
    Elsewhere(Elsewhere),
}

/// When a recording in memory is written down.
#[derive(Debug)]
pub(super) struct Flight {
    options: FlightOptions,
    keeper: Keeper,
    /// Whether whoever ends without `MPI_Finalize` is known by that.
    judges_ends: bool,
    /// Why it is to be written as soon as possible.
    asked: Vec<Asked>,
    /// What has gone wrong, until it is written down.
    failure: Option<Wrong>,
    /// Jobs of which a rank has died: one file of each.
    failed: BTreeSet<Option<String>>,
    is_short_told: bool,
    quiet: Quiet,
}

/// Something has gone wrong that ends a job.
#[derive(Debug)]
struct Wrong {
    /// When it is written down.
    due: Instant,
    /// When it has happened, ns.
    at_ns: u64,
    job: Option<String>,
    why: String,
}

/// For how long no call has returned.
#[derive(Debug)]
struct Quiet {
    returns: u64,
    since: Instant,
    next_look: Instant,
    is_told: bool,
}

impl Quiet {
    fn new(returns: u64) -> Self {
        let now = Instant::now();
        Self { returns, since: now, next_look: now, is_told: false }
    }
}

impl Flight {
    pub(super) fn new(options: FlightOptions, keeper: Keeper, judges_ends: bool) -> Self {
        Self {
            options,
            keeper,
            judges_ends,
            asked: Vec::new(),
            failure: None,
            failed: BTreeSet::new(),
            is_short_told: false,
            quiet: Quiet::new(0),
        }
    }

    /// How often the buffer is to be trimmed.
    pub(super) fn trim_interval(&self) -> Duration {
        match self.options.span {
            FlightSpan::Time(ns) => (Duration::from_nanos(ns) / 16).clamp(TRIM_INTERVALS.0, TRIM_INTERVALS.1),
            FlightSpan::Calls(_) => TRIM_INTERVALS.1,
        }
    }

    /// Somebody wants it.
    pub(super) fn ask(&mut self, asked: Asked) {
        self.asked.push(asked);
    }

    fn ask_because(&mut self, why: String) {
        self.ask(Asked::because(why));
    }

    /// Something has gone wrong at that time, ns, that ends a job. Only the first is of interest: what follows is because of that. Which it was may
    /// be seen last.
    pub(super) fn fail(&mut self, job: Option<&str>, at_ns: u64, why: String) {
        let job = job.map(str::to_owned);
        if self.failed.insert(job.clone()) {
            say(&why);
            self.failure.get_or_insert_with(|| Wrong { due: Instant::now() + SETTLING, at_ns, job, why });
        } else if let Some(known) = self.failure.as_mut().filter(|known| known.job == job && at_ns < known.at_ns) {
            say(format_args!("before that, {why}"));
            (known.at_ns, known.why) = (at_ns, why);
        }
    }

    /// Whether something has gone wrong that is not written down yet.
    pub(super) fn has_failure(&self) -> bool {
        self.failure.is_some()
    }

    /// A process has ended, at that time, ns. `is_in_mpi`: it had called MPI, and was not seen to finalise it. `failure`: with what it has ended, if that is
    /// known and no success.
    pub(super) fn note_end(&mut self, process: &Process, at_ns: u64, is_in_mpi: bool, failure: Option<Failure>) {
        let is_early = self.judges_ends && is_in_mpi;
        if is_early || failure.is_some() {
            let who = process.rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
            let early = if is_early { " without MPI_Finalize" } else { "" };
            let with = failure.map(|failure| format!(" with {failure}")).unwrap_or_default();
            self.fail(process.job.as_deref(), at_ns, format!("{who} (process {}) has ended{early}{with}", process.pid));
        }
    }

    /// Notes how many calls have returned by now; tells whether it is time to look whether the job hangs.
    pub(super) fn looks_quiet(&mut self, returns: u64) -> bool {
        let Some(patience) = self.options.hang else { return false };
        if returns != self.quiet.returns {
            self.quiet = Quiet::new(returns);
        }
        let now = Instant::now();
        let looks = !self.quiet.is_told && now - self.quiet.since >= patience && now >= self.quiet.next_look;
        if looks {
            self.quiet.next_look = now + SETTLING;
        }
        looks
    }

    /// No call has returned for that time. `inside`: how many calls are open for as long; where all compute, nobody hangs.
    pub(super) fn note_quiet(&mut self, inside: usize) {
        let Some(patience) = self.options.hang.filter(|_| inside > 0) else { return };
        self.quiet.is_told = true;
        let calls = if inside == 1 { "one is".to_owned() } else { format!("{inside} are") };
        let patience = humantime::format_duration(patience);
        self.ask_because(format!("no call has returned for {patience}, and {calls} open for longer"));
    }

    /// How long a call has to be open to be part of a hang.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.options.hang
    }

    /// Less than the span is kept.
    pub(super) fn note_short(&mut self) {
        if !std::mem::replace(&mut self.is_short_told, true) {
            say_short(&self.options);
        }
    }

    /// Why what is recorded does not come to whoever keeps it.
    pub(super) fn trouble(&self) -> Option<String> {
        match &self.keeper {
            Keeper::Here(_) => None,
            Keeper::Elsewhere(elsewhere) => elsewhere.trouble(),
        }
    }

    /// Whether it is to be written down now. `is_last`: there will be no later time.
    pub(super) fn is_due(&mut self, is_last: bool) -> bool {
        if let Keeper::Here(dumps) = &self.keeper
            && !is_last
            && dumps.is_writing()
        {
            return false;
        }
        if let Some(wrong) = self.failure.take_if(|wrong| is_last || wrong.due <= Instant::now()) {
            self.ask_because(wrong.why);
        }
        !self.asked.is_empty()
    }

    /// It is written down; `dump`: all that is kept here, if it is.
    pub(super) fn write(&mut self, dump: Option<Result<Dump, WriteError>>) {
        let asked = std::mem::take(&mut self.asked);
        match (&mut self.keeper, dump) {
            (Keeper::Here(dumps), Some(dump)) => dumps.write(dump, asked),
            (Keeper::Here(_), None) => refuse(asked, "nothing is kept".into()),
            (Keeper::Elsewhere(elsewhere), _) => elsewhere.want(&reasons(&asked)),
        }
    }

    /// All has been written, or given to whoever writes it. Gives how many files there are, if they are here.
    pub(super) fn finish(self) -> Option<u32> {
        match self.keeper {
            Keeper::Here(dumps) => Some(dumps.finish()),
            Keeper::Elsewhere(elsewhere) => {
                elsewhere.finish();
                None
            }
        }
    }
}

/// As it is typed.
pub(super) fn shown(span: FlightSpan) -> String {
    match span {
        FlightSpan::Time(ns) => format!("the last {}", humantime::format_duration(Duration::from_nanos(ns))),
        FlightSpan::Calls(calls) => format!("the last {calls} calls of each process"),
    }
}

/// Says that less than the span is kept.
pub(super) fn say_short(options: &FlightOptions) {
    say(format_args!(
        "the calls of {} take more memory than they may have: less is kept (--flight-memory {})",
        shown(options.span),
        mpiprobe_report::present::units::binary(options.memory)
    ));
}
