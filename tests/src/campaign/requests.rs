//! Requests of every kind to a node service, by somebody of whom another user's job is no business.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{CampaignError, complete};
use crate::{
    Job, Mpi, Profiler,
    proc::peak_kib,
    program,
    second_user::{FIRST, SECOND},
    service::NodeService,
};

/// What asks: needs Python alone, for it runs without rights, and in namespaces.
const SCRIPT: &str = include_str!("requests.py");
/// The system's.
pub const PYTHON: &str = "/usr/bin/python3";
/// What the half of the service that answers may take in the end, KiB.
const MEMORY_KIB: u64 = 100 << 10;
const ITERATIONS: u64 = 10;

/// Where the other user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// Where everybody is.
    Here,
    /// Root of user and pid namespaces of its own.
    InNamespaces,
}

/// What was answered.
#[derive(Debug, Default)]
pub struct RequestsReport {
    /// By status; what is no request at all may be answered by the end of the connection.
    pub answers: BTreeMap<String, u64>,
    pub connections: u64,
    /// What the half of the service that answers took, at most, KiB.
    pub peak_kib: u64,
}

impl fmt::Display for RequestsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers: Vec<String> =
            self.answers.iter().map(|(status, number)| format!("{number} by {status}")).collect();
        let (connections, peak) = (self.connections, self.peak_kib);
        write!(f, "answered {}; {connections} connections; the service took {peak} KiB at most", answers.join(", "))
    }
}

/// What one of them prints.
#[derive(Debug, Deserialize)]
struct Asked {
    answers: BTreeMap<String, u64>,
    connections: u64,
    /// Requests and answers that say something of the job.
    told: Vec<Value>,
}

/// So many requests, half of them from namespaces, while another user's job is observed: no answer says anything of the job or tells it
/// from one that does not exist, and the job and its observation go on.
pub fn requests(mpi: Mpi, count: u64, seed: u64) -> Result<RequestsReport, CampaignError> {
    let wrong = |what: String| CampaignError::wrong(0, what);
    let service = NodeService::start("")?;
    let worker = service.worker()?;
    let job = Job::builder(mpi, program::RING).ranks(2).args([ITERATIONS.to_string()]).gates(&["start"]);
    let mut job = job.own_name().user(FIRST).spawn()?;
    job.wait_for_gate("start")?;
    let name = job.called().to_owned();
    let arguments = ["--json", "--interval", "1h", "--pid-of", &name];
    let mut observed = Profiler::spawn(service.client(FIRST, arguments))?;
    observed.wait_for("mpiprobe: observing ")?;
    let belongs = what_belongs(&service, &mut job)?;
    let asking = [Client::Here, Client::InNamespaces].map(|one| {
        let mut command = client(one);
        command.arg(service.socket()).args([count / 2, seed + one as u64].map(|number| number.to_string()));
        command.arg(&belongs).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    });
    let mut report = RequestsReport::default();
    for asking in asking {
        // Longer than anything else takes, but what asks gives up if it is not answered.
        let ended = asking.and_then(Child::wait_with_output).map_err(|error| wrong(error.to_string()))?;
        let asked: Asked = serde_json::from_slice(&ended.stdout)
            .map_err(|error| wrong(format!("{error}: {}", String::from_utf8_lossy(&ended.stderr))))?;
        if !asked.told.is_empty() {
            return Err(wrong(format!("somebody else is told of a job: {:#?}", asked.told)));
        }
        report.connections += asked.connections;
        for (status, number) in asked.answers {
            *report.answers.entry(status).or_default() += number;
        }
    }
    report.peak_kib = peak_kib(worker).ok_or_else(|| wrong("the service has ended".into()))?;
    if report.peak_kib > MEMORY_KIB || service.worker()? != worker {
        return Err(wrong(format!("the service is not what it was: {report}")));
    }
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&observed.wait()?, 0)?;
    let is_whole = profile.ranks.iter().all(|row| row.completed().get("MPI_Allreduce") == Some(&ITERATIONS));
    if is_whole && profile.ranks.len() == 2 { Ok(report) } else { Err(wrong(format!("{profile:?}"))) }
}

/// Words that requests may hold, and words that nobody says.
fn what_belongs(service: &NodeService, job: &mut Job) -> Result<String, CampaignError> {
    let wrong = |what: String| CampaignError::wrong(0, what);
    let mut named = vec![job.called().to_owned()];
    let pids: Vec<u32> = job.ranks()?.into_values().collect();
    named.extend(pids.iter().map(ToString::to_string));
    let listed = Profiler::spawn(service.client(FIRST, ["ps", "--json"]))?.wait()?;
    let list: Value = serde_json::from_str(&listed.stdout.join("\n")).map_err(|error| wrong(error.to_string()))?;
    let key = list.pointer("/jobs/0/id").and_then(Value::as_str);
    named.push(key.ok_or_else(|| wrong(format!("no job: {list}")))?.to_owned());
    let program = pids.first().and_then(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
    let folder = program.as_deref().and_then(Path::parent).and_then(Path::file_name).map(|name| name.to_string_lossy());
    let folder = folder.ok_or_else(|| wrong("the job's program is nowhere".into()))?;
    Ok(json!({ "named": named, "hidden": [folder] }).to_string())
}

fn client(one: Client) -> Command {
    let user = SECOND.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).current_dir("/");
    if one == Client::InNamespaces {
        command.args(["unshare", "--user", "--map-root-user", "--pid", "--fork"]);
    }
    // Not one of root's own, which nobody else may execute.
    command.args([PYTHON, "-c", SCRIPT]);
    command
}
