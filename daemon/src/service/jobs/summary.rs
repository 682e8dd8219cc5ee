//! What is kept of a job when it has ended: one line of JSON, as long for a thousand ranks as for one.

use jiff::Timestamp;
use mpiprobe_discover::{Job, users::User};
use mpiprobe_model::{
    Efficiency, EndReason, GroupRow, Losses, OwnCost, Profile, RankProfile, Spread, analyse::first_failure,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::figures::key_of;
use crate::service::summaries::is_plain;

/// Programs, MPI libraries and reasons that are named.
const MOST_NAMED: usize = 16;
/// Characters of each.
const LONGEST: usize = 256;

/// What is written of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::service) struct Written {
    /// JSON.
    pub(in crate::service) line: String,
    /// The same as a file of Parquet, with a name that no other one of this node has.
    pub(in crate::service) table: Option<(String, Vec<u8>)>,
}

/// One job on this node, from when it was found until its end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobSummary {
    pub schema: &'static str,
    pub mpiprobe_version: &'static str,
    pub host: String,
    /// As `ps` names it.
    pub job: String,
    pub slurm_job: Option<String>,
    pub user: User,
    /// Names of its programs, without their folders.
    pub programs: Vec<String>,
    /// MPI implementations.
    pub mpi: Vec<String>,
    /// When it was found, and when it had ended or was not observed any more; UTC, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub began: String,
    #[schemars(extend("format" = "date-time"))]
    pub ended: String,
    /// Between these, ns.
    pub observed_ns: u64,
    /// How long its oldest process had been there when counting began, ns: what was called until then is in none of the figures; `null`: unknown.
    pub before_ns: Option<u64>,
    pub end: Option<EndReason>,
    /// Ranks of the whole job, on all nodes; `null`: unknown.
    pub size: Option<u32>,
    /// Ranks on this node that were observed.
    pub ranks: u64,
    /// Nothing was lost, and nobody missed, since it was found.
    pub complete: bool,
    pub incomplete_because: Vec<String>,
    pub calls: u64,
    /// Per rank, ns.
    pub wall_ns: Spread,
    /// Per rank, ns. Its `imbalance` is that of the time in MPI.
    pub mpi_ns: Spread,
    /// Wall time of all threads in MPI, over all ranks, ns: what `mpi_ns` is a part of.
    pub thread_wall_ns: u64,
    /// Time in MPI of all ranks over wall time of all their threads, per cent; `null`: not known.
    pub mpi_percent: Option<f64>,
    pub groups: Vec<GroupSummary>,
    /// `null`: not known.
    pub efficiency: Option<Efficiency>,
    /// The call that was seen open for the longest time, by a look or at a rank's end; `null`: none.
    pub longest_open_call: Option<OpenCall>,
    /// Ranks on this node that have ended with a signal, or with an exit status other than 0, as far as that is known.
    pub failed_ranks: u64,
    /// Of these, the first; `null`: there is none.
    pub first_failure: Option<FailedRank>,
    pub losses: Losses,
    pub own_cost: OwnCost,
}

/// A rank that has ended without success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedRank {
    /// `null`: unknown.
    pub rank: Option<u32>,
    /// Such as `signal 11 (SIGSEGV)` or `exit status 1`.
    pub with: String,
}

/// One group of functions over all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupSummary {
    pub group: &'static str,
    pub calls: u64,
    /// `null`: not known of some calls.
    pub time_ns: Option<u64>,
    /// Of the time in MPI, per cent; `null`: not known.
    pub mpi_percent: Option<f64>,
    /// `null` without `traffic`.
    pub sent_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
    pub calls_of_unknown_bytes: Option<u64>,
}

/// A call that had not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenCall {
    pub function: &'static str,
    /// `null`: unknown.
    pub rank: Option<u32>,
    pub open_ns: u64,
    /// The thread has ended in it.
    pub ended_inside: bool,
}

impl OpenCall {
    /// The one that was open longest.
    pub(super) fn longest<'a>(ranks: impl Iterator<Item = &'a RankProfile>) -> Option<Self> {
        let open = ranks.flat_map(|rank| rank.open_calls.iter().map(|call| (rank.rank, call)));
        let longest = open.max_by_key(|(_, call)| call.open_ns);
        longest.map(|(rank, call)| Self {
            function: call.function,
            rank,
            open_ns: call.open_ns,
            ended_inside: call.ended_inside,
        })
    }
}

impl JobSummary {
    pub const SCHEMA: &'static str = "mpiprobe.job/1";

    /// From the last profile of a job, and what the list of jobs has said of it.
    pub(super) fn of(
        job: &Job,
        before_ns: Option<u64>,
        profile: &Profile,
        longest_open_call: Option<OpenCall>,
    ) -> Self {
        let named = |names: Vec<String>| names.into_iter().take(MOST_NAMED).map(|name| cut(&name)).collect();
        let libraries = profile.engine.libraries.iter().map(|library| library.implementation.clone());
        let mut mpi: Vec<String> = libraries.collect();
        mpi.sort();
        mpi.dedup();
        Self {
            schema: Self::SCHEMA,
            mpiprobe_version: env!("CARGO_PKG_VERSION"),
            host: profile.host.clone(),
            job: job.id.to_string(),
            slurm_job: job.slurm_job.as_deref().map(cut),
            user: job.user.clone(),
            programs: named(job.programs()),
            mpi: named(mpi),
            began: profile.began.clone(),
            ended: Timestamp::now().to_string(),
            observed_ns: profile.observed_ns,
            before_ns,
            end: profile.end,
            size: job.size,
            ranks: profile.ranks.len() as u64,
            complete: profile.complete,
            incomplete_because: named(profile.incomplete_because.clone()),
            calls: profile.totals.calls,
            wall_ns: profile.totals.wall_ns,
            mpi_ns: profile.totals.mpi_ns,
            thread_wall_ns: profile.ranks.iter().map(|rank| rank.thread_wall_ns).fold(0, u64::saturating_add),
            mpi_percent: profile.totals.mpi_percent_of_all,
            groups: profile.groups.iter().map(|group| GroupSummary::of(&group.all)).collect(),
            efficiency: profile.totals.efficiency,
            longest_open_call,
            failed_ranks: profile.ranks.iter().filter(|rank| rank.failure.is_some()).count() as u64,
            first_failure: first_failure(&profile.ranks)
                .map(|(rank, failure)| FailedRank { rank: rank.and_then(|rank| rank.rank), with: failure.to_string() }),
            losses: profile.losses,
            own_cost: profile.own_cost,
        }
    }

    /// As it is written; also as a table, if that is wanted.
    pub(super) fn written(&self, as_table: bool) -> Result<Written, serde_json::Error> {
        let line = serde_json::to_string(self)?;
        // Where that fails, there is the line.
        let unwritten = |error: &String| tracing::warn!("there is no table of job {}: {error}", self.job);
        let table = as_table.then(|| self.table().inspect_err(unwritten).ok()).flatten();
        Ok(Written { line, table: table.map(|table| (self.name(), table)) })
    }

    #[cfg(feature = "parquet")]
    fn table(&self) -> Result<Vec<u8>, String> {
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
        let schema = settings.into_generator().into_root_schema_for::<Self>();
        let record = match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(record)) => record,
            Ok(_) => return Err("it is no record".into()),
            Err(error) => return Err(error.to_string()),
        };
        mpiprobe_export::records::records(schema.as_value(), &[record]).map_err(|error| error.to_string())
    }

    #[cfg(not(feature = "parquet"))]
    #[expect(clippy::unused_self, reason = "as with Parquet")]
    fn table(&self) -> Result<Vec<u8>, String> {
        Err("this mpiprobe was built without Parquet".into())
    }

    /// When, where and which: sorted by name, files of a node are in the order of time.
    fn name(&self) -> String {
        let plain = |text: &str| -> String {
            text.chars().take(64).map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
        };
        let began: String = self.began.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        format!("{began}-{}-{}", plain(&self.host), plain(&self.job))
    }
}

impl GroupSummary {
    fn of(row: &GroupRow) -> Self {
        let is_timed = row.untimed_calls == 0;
        Self {
            group: key_of(row.group),
            calls: row.calls,
            time_ns: is_timed.then_some(row.time_ns),
            mpi_percent: is_timed.then_some(row.mpi_percent),
            sent_bytes: row.traffic.map(|traffic| traffic.sent_bytes),
            received_bytes: row.traffic.map(|traffic| traffic.received_bytes),
            calls_of_unknown_bytes: row.traffic.map(|traffic| traffic.calls_of_unknown_bytes),
        }
    }
}

/// So much of a text as is kept of it.
fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
