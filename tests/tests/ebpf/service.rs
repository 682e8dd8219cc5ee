//! The node service: what it does for users, what it does not tell, and what its end does to jobs.
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{fs::MetadataExt as _, net::UnixStream},
    panic::Location,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use mpiprobe_functions::Group;
use mpiprobe_tests::{
    Ended, Job, Language, Mpi, Profiler, Requirement,
    campaign::{PYTHON, requests},
    changed_bytes,
    openmetrics::Exposition,
    program, requirement,
    second_user::{home_of, nobody_else},
    service::NodeService,
    wheel,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::check::{complete, completed, expect_counts, functions};

const NEEDS: [Requirement; 3] = [Requirement::Bpf, Requirement::Root, Requirement::Command("unshare")];
const COMMANDS: [&str; 3] = ["nsenter", "setpriv", PYTHON];
/// A client that is not mpiprobe.
const ASKING: &str = r#"my $service = IO::Socket::UNIX->new(Peer => shift) or die;
print $service "GET " . shift() . " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
print while <$service>;"#;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let trial = |name: &str, test: fn(Mpi) -> Result<(), Failed>| {
        let needs = [
            &NEEDS[..],
            &COMMANDS.map(Requirement::Command),
            &[Requirement::Mpi(mpi), Requirement::Language(mpi, Language::Cxx), Requirement::Readers],
        ]
        .concat();
        requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
    };
    vec![
        trial("the_service_gives_each_user_their_own_jobs", two_users),
        trial("the_end_of_the_service_or_its_worker_harms_no_job", endings),
        trial("a_service_that_is_stopped_leaves_no_breakpoint", stopped),
        trial("the_service_tells_monitoring_what_jobs_do", metrics),
        trial("whatever_is_asked_for_tells_nothing_of_others", asked_for_anything),
    ]
}

pub(crate) fn general_tests() -> Vec<Trial> {
    let needs = [&NEEDS[..], &[Requirement::Command("perl"), Requirement::Command("setpriv")]].concat();
    vec![requirement::trial("the_service_is_confined_and_takes_anything", &needs, anything)]
}

fn job(mpi: Mpi, user: u32) -> Result<Job, Failed> {
    let job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["start"]).truth(true).own_name();
    let mut job = job.user(user).spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

pub(crate) fn finish(job: &mut Job) -> Result<(), Failed> {
    job.open_gate("start")?;
    job.wait()?.success()?;
    Ok(())
}

pub(crate) fn ended(command: Command) -> Result<Ended, Failed> {
    Ok(Profiler::spawn(command)?.wait()?)
}

/// The names of the jobs' programs that a client is told of, and all that it is told.
fn listed(command: Command) -> Result<(Vec<String>, Value), Failed> {
    list_of(&ended(command)?)
}

fn list_of(listed: &Ended) -> Result<(Vec<String>, Value), Failed> {
    assert_eq!(listed.status.code(), Some(0), "{}", listed.printed());
    let list: Value = serde_json::from_str(&listed.stdout.join("\n"))?;
    let ranks = list["jobs"].as_array().ok_or("no jobs")?.iter().filter_map(|job| job["ranks"].as_array());
    let programs = ranks.flatten().filter_map(|rank| Some(rank["executable"].as_str()?.rsplit('/').next()?.to_owned()));
    Ok((programs.collect(), list))
}

/// Invariant CALLERS-RIGHTS.
/// Invariant OWN-PROCESSES.
fn two_users(mpi: Mpi) -> Result<(), Failed> {
    let service = NodeService::start("")?;
    let [alice, bob] = [nobody_else(), nobody_else()];
    let (mut own, mut other) = (job(mpi, alice)?, job(mpi, bob)?);
    let names = [own.called().to_owned(), other.called().to_owned()];
    for (user, seen) in [(alice, &names[..1]), (bob, &names[1..])] {
        let (programs, list) = listed(service.client(user, ["ps", "--json"]))?;
        assert!(programs.len() == 2 && programs.iter().all(|program| seen.contains(program)), "{user}: {list}");
        assert_eq!(list["not_looked_at"], 0, "{user}: how many processes others have is nobody else's business");
    }
    let (programs, list) = listed(service.client(0, ["ps", "--json"]))?;
    assert!(names.iter().all(|name| programs.contains(name)), "{list}");
    // Nobody else's job is there, whatever it is named by.
    let (theirs, pid) = (other.called().to_owned(), other.ranks()?[&0].to_string());
    for (arguments, said) in [
        (&["--pid", &pid][..], "there is no process"),
        (&["hang", "--pid", &pid], "there is no process"),
        (&["--pid-of", &theirs], "no process is called"),
        (&["--job", "ompi:1", "--pid-of", &theirs], "no process is called"),
    ] {
        let refused = ended(service.client(alice, arguments))?;
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{}", refused.printed());
        let told = refused.printed();
        assert!(told.contains(said) && told.matches(&theirs).count() <= 1, "{arguments:?}: {told}");
    }
    // One's own is observed exactly, nobody else gets return probes, and what is written is the user's.
    let home = home_of(alice)?;
    let file = home.path().join("job.rec");
    let recorded = file.display().to_string();
    let arguments = ["--json", "--traffic", "--interval", "50ms", "--record", &recorded, "--pid-of", &names[0]];
    let mut alices = Profiler::spawn(service.client(alice, arguments))?;
    alices.wait_for_output(1)?;
    for pid in own.ranks()?.into_values() {
        assert!(changed_bytes(pid, Path::new(&library_of(pid)?))? > 0, "process {pid}");
    }
    let key = key_of(&service, bob, &mut other)?;
    let mut bobs = Profiler::spawn(service.client(bob, ["--json", "--interval", "1h", "--job", &key]))?;
    bobs.wait_for("mpiprobe: observing ")?;
    let observing_theirs = ["--json", "--interval", "1h", "--pid-of", &names[1]];
    let mut roots = Profiler::spawn(service.client(0, observing_theirs))?;
    roots.wait_for("mpiprobe: observing ")?;
    // Return probes of anybody's would be the end of it.
    let mut of_root = Job::builder(mpi, program::THROWS).ranks(2).args(["10"]).spawn()?;
    let finished = of_root.wait()?.success()?;
    assert!(finished.stdout.contains("10 exceptions caught"), "{finished:?}");
    let looked = ended(service.client(alice, ["hang", "--pid-of", &names[0]]))?;
    assert!(looked.status.success() && looked.stdout.join("\n").contains("gate"), "{}", looked.printed());
    for (job, profilers) in [(&mut own, vec![alices]), (&mut other, vec![bobs, roots])] {
        finish(job)?;
        for profiler in profilers {
            expect_counts(&complete(&profiler.wait()?)?, &job.snapshot()?, None, &functions("default")?)?;
        }
    }
    let state = file.metadata()?;
    assert_eq!((state.uid(), state.mode() & 0o777), (alice, 0o600));
    let replayed = ended(service.client(alice, ["view", "--json", &recorded]))?;
    assert!(replayed.stdout.join("").contains("\"end\":\"targets-ended\""), "{}", replayed.printed());
    Ok(())
}

/// A job of a user's, as the service names it. A list may be as old as the service keeps one.
pub(crate) fn key_of(service: &NodeService, user: u32, job: &mut Job) -> Result<String, Failed> {
    let pids: Vec<u32> = job.ranks()?.into_values().collect();
    let is_its = |rank: &Value| rank["pid"].as_u64().is_some_and(|pid| pids.iter().any(|own| u64::from(*own) == pid));
    let mut key = None;
    let found = wait_until(|| {
        let (_, list) = listed(service.client(user, ["ps", "--json"]))?;
        let mut jobs = list["jobs"].as_array().into_iter().flatten();
        let found = jobs.find(|job| job["ranks"].as_array().is_some_and(|ranks| ranks.iter().any(is_its)));
        key = found.and_then(|job| job["id"].as_str()).map(str::to_owned);
        Ok(key.is_some())
    });
    found.map_err(|_| format!("the service does not list the job of {pids:?}"))?;
    Ok(key.ok_or("no key")?)
}

fn library_of(pid: u32) -> Result<String, Failed> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let is_library = |path: &&str| path.contains("/libmpi.so") || path.contains("/libmpich.so");
    Ok(maps.split_whitespace().find(is_library).ok_or("no library")?.to_owned())
}

/// Invariant DETACHED-AT-EXIT.
/// It exits while it takes out what its worker had put in.
fn stopped(mpi: Mpi) -> Result<(), Failed> {
    const TIMES: usize = 3;
    let alice = nobody_else();
    let job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["start"]).own_name().own_library();
    let mut job = job.user(alice).spawn()?;
    job.wait_for_gate("start")?;
    let library = job.library().ok_or("no library of its own")?.to_owned();
    for _ in 0..TIMES {
        let service = NodeService::start("")?;
        let arguments = ["--json", "--interval", "1h", "--functions", "all", "--pid-of", job.called()];
        let mut observed = Profiler::spawn(service.client(alice, arguments))?;
        observed.wait_for("mpiprobe: observing ")?;
        let pids: Vec<u32> = job.ranks()?.into_values().collect();
        for &pid in &pids {
            assert_ne!(changed_bytes(pid, &library)?, 0, "process {pid}");
        }
        let stopped = service.stop()?;
        assert!(stopped.status.success(), "{}", stopped.printed());
        for &pid in &pids {
            assert_eq!(changed_bytes(pid, &library)?, 0, "a probe was left in process {pid}");
        }
        assert_eq!(observed.wait()?.status.code(), Some(1));
    }
    finish(&mut job)
}

/// Invariant NOBODY-NEEDS-THE-SERVICE.
fn endings(mpi: Mpi) -> Result<(), Failed> {
    let mut service = NodeService::start("")?;
    let alice = nobody_else();
    let mut job = job(mpi, alice)?;
    let pid = job.ranks()?[&0];
    let library = library_of(pid)?;
    let observe = |service: &NodeService, name: &str| -> Result<Profiler, Failed> {
        let mut profiler = Profiler::spawn(service.client(alice, ["--json", "--interval", "1h", "--pid-of", name]))?;
        profiler.wait_for("mpiprobe: observing ")?;
        Ok(profiler)
    };
    let probed = || changed_bytes(pid, Path::new(&library));
    let name = job.called().to_owned();
    // The worker is killed: its client is told so, the probes are gone, and it is started again.
    let observed = observe(&service, &name)?;
    assert!(probed()? > 0);
    let worker = service.worker()?;
    kill_process(Pid::from_raw(worker.cast_signed()).ok_or("no pid")?, Signal::KILL)?;
    let told = observed.wait()?;
    assert!(told.status.code() == Some(1) && told.printed().contains("the service has ended"), "{}", told.printed());
    service.profiler().wait_for("is started again")?;
    service.profiler().wait_for("the service is ready")?;
    wait_until(|| Ok(probed()? == 0))?;
    // Other settings, without a restart.
    let quota = "[quota]\nobservations = 1\n";
    fs::write(service.configuration(), quota)?;
    service.profiler().signal(Signal::HUP)?;
    service.profiler().wait_for("has read its configuration again")?;
    let observed = observe(&service, &name)?;
    let refused = ended(service.client(alice, ["--json", "--pid-of", &name]))?;
    assert!(refused.printed().contains("as many as one user may have"), "{}", refused.printed());
    drop(observed);
    // Who has gone away has none any more.
    let mut last = None;
    wait_until(|| Ok(observe(&service, &name).map(|profiler| last = Some(profiler)).is_ok()))?;
    // All of it is killed.
    service.profiler().signal(Signal::KILL)?;
    let told = last.ok_or("no observation")?.wait()?;
    assert_eq!(told.status.code(), Some(1), "{}", told.printed());
    wait_until(|| Ok(probed()? == 0))?;
    finish(&mut job)?;
    Ok(())
}

/// Completed calls by group of functions, and bytes sent and received by point-to-point calls, all ranks together.
pub(crate) fn truth_of(job: &Job) -> Result<(BTreeMap<&'static str, f64>, [f64; 2]), Failed> {
    let (mut calls, mut bytes) = (BTreeMap::new(), [0.0; 2]);
    for image in job.snapshot()?.ranks.values() {
        for (name, number) in completed(image, None, &functions("default")?) {
            let group = mpiprobe_functions::by_name(&name).ok_or("an unknown function")?.function().group;
            *calls.entry(group.key()).or_insert(0.0) += number as f64;
        }
        for (name, amounts) in image.traffic.functions() {
            if mpiprobe_functions::by_name(name).is_some_and(|id| id.function().group == Group::PointToPoint) {
                bytes[0] += amounts.sent as f64;
                bytes[1] += amounts.received.bytes as f64;
            }
        }
    }
    Ok((calls, bytes))
}

/// What monitoring reads at a port.
fn scraped(address: &str) -> Result<Exposition, Failed> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    exposition(&answer)
}

pub(crate) fn exposition(answer: &str) -> Result<Exposition, Failed> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    assert!(
        head.contains("200 OK") && head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    Ok(Exposition::parse(body).map_err(|wrong| format!("{wrong}\n{body}"))?)
}

/// A job with what it really did written down, from its beginning to its end; the job may go on in between.
pub(crate) fn observed_job(mpi: Mpi, user: u32, ranks: u32) -> Result<Job, Failed> {
    let job = Job::builder(mpi, program::RING).ranks(ranks).args(["10"]).gates(&["start"]).semantics().own_name();
    let mut job = job.user(user).spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

/// What the file of summaries holds, line by line.
fn summaries(file: &Path) -> Result<Vec<Value>, Failed> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The only summary says what a job of two ranks has really done.
fn expect_summary(file: &Path, key: &str, user: u32, job: &Job) -> Result<(), Failed> {
    // It is there whole as soon as its line ends.
    wait_until(|| Ok(fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'))))?;
    let all = summaries(file)?;
    let [summary] = all.as_slice() else { return Err(format!("{all:?}").into()) };
    let (calls, [sent, received]) = truth_of(job)?;
    assert_eq!((summary["schema"].as_str(), summary["job"].as_str()), (Some("mpiprobe.job/1"), Some(key)), "{summary}");
    let (owner, end) = (summary["user"]["id"].as_u64(), summary["end"].as_str());
    assert_eq!((owner, end), (Some(u64::from(user)), Some("targets-ended")), "{summary}");
    for (field, expected) in
        [("size", Value::from(2)), ("ranks", 2.into()), ("complete", true.into()), ("failed_ranks", 0.into())]
    {
        assert_eq!(summary[field], expected, "{field}: {summary}");
    }
    assert_eq!(summary["programs"], Value::from(vec![job.called()]));
    assert!(summary["before_ns"].as_u64().is_some_and(|ns| ns > 0), "{summary}");
    let by_group = |field: &str| -> BTreeMap<String, f64> {
        let groups = summary["groups"].as_array().into_iter().flatten();
        groups.filter_map(|group| Some((group["group"].as_str()?.to_owned(), group[field].as_f64()?))).collect()
    };
    let expected: BTreeMap<String, f64> = calls.iter().map(|(group, calls)| ((*group).to_owned(), *calls)).collect();
    assert_eq!(by_group("calls"), expected, "{summary}");
    assert_eq!(summary["calls"].as_f64(), Some(calls.values().sum()));
    let bytes = [by_group("sent_bytes"), by_group("received_bytes")].map(|bytes| bytes.get("p2p").copied());
    assert_eq!(bytes, [Some(sent), Some(received)], "{summary}");
    assert!(by_group("time_ns").values().all(|time_ns| *time_ns > 0.0), "{summary}");
    let state = file.metadata()?;
    assert_eq!((state.mode() & 0o777, state.nlink()), (0o640, 1));
    Ok(())
}

/// The table of a job says what its line says, as another program reads it.
fn expect_table(directory: &Path, file: &Path) -> Result<(), Failed> {
    let tables = || -> Result<Vec<PathBuf>, Failed> {
        let entries = fs::read_dir(directory).into_iter().flatten();
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        // What has this name is whole.
        Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect())
    };
    wait_until(|| Ok(!tables()?.is_empty()))?;
    let tables = tables()?;
    let [table] = tables.as_slice() else { return Err(format!("{tables:?}").into()) };
    assert_eq!(table.metadata()?.mode() & 0o777, 0o640);
    let lines = summaries(file)?;
    let line = lines.first().and_then(Value::as_object).ok_or("no line")?;
    let mut queries = vec![
        "SELECT to_json(t)::VARCHAR FROM (SELECT * EXCLUDE (began, ended) FROM '*.parquet') t".to_owned(),
        "SELECT typeof(began), epoch_us(ended - began) FROM '*.parquet'".to_owned(),
    ];
    let shown = include_str!("../../../docs/service.md").split("```sql\n").skip(1);
    let shown = shown.filter_map(|block| block.split("```").next());
    queries.extend(shown.map(|query| query.replace("/var/log/mpiprobe/jobs/", "")));
    assert!(queries.len() > 2, "docs/service.md shows a query");
    let arguments = [directory.as_os_str()].into_iter().chain(queries.iter().map(AsRef::as_ref));
    let read: Value = serde_json::from_str(&wheel::read("query_parquet.py", arguments)?)?;
    let record: Value = serde_json::from_str(read[0][0][0].as_str().ok_or("no record")?)?;
    let times = ["began", "ended"];
    let others = line.iter().filter(|(name, _)| !times.contains(&name.as_str()));
    assert_eq!(record, Value::Object(others.map(|(name, value)| (name.clone(), value.clone())).collect()));
    assert_eq!(read[1][0][0].as_str(), Some("TIMESTAMP WITH TIME ZONE"), "{read}");
    let [began, ended] = times.map(|name| line[name].as_str().map(str::parse::<jiff::Timestamp>));
    let (began, ended) = (began.ok_or("no beginning")??, ended.ok_or("no end")??);
    assert_eq!(read[1][0][1].as_i64(), Some(ended.as_microsecond() - began.as_microsecond()), "{read}");
    for (query, rows) in queries.iter().zip(read.as_array().into_iter().flatten()).skip(2) {
        assert!(rows.as_array().is_some_and(|rows| !rows.is_empty()), "{query}");
    }
    Ok(())
}

/// Has the service see a file system without room at a path.
fn fill(service: &mut NodeService, path: &Path) -> Result<(), Failed> {
    let script = "mount -t tmpfs -o size=4k,uid=65534,mode=755 none \"$1\" && head -c 4096 /dev/zero >\"$1/filler\"";
    let pid = service.profiler().pid().to_string();
    let mut command = Command::new("nsenter");
    let filled = command.args(["--mount", "--target", &pid, "sh", "-c", script, "sh"]).arg(path).output()?;
    if filled.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&filled.stderr).into_owned().into()) }
}

fn metrics(mpi: Mpi) -> Result<(), Failed> {
    let [alice, bob] = [nobody_else(), nobody_else()];
    let home = home_of(65_534)?;
    let file = home.path().join("jobs.jsonl");
    let tables = home.path().join("jobs");
    let summarised =
        format!("[summaries]\nfile = \"{}\"\nparquet = \"{}\"\nmode = 0o640\n", file.display(), tables.display());
    let settings = |metrics: &str| {
        let jobs = "[jobs]\nobserve = true\ntraffic = true\nlook-every = \"100ms\"\ninterval = \"100ms\"\n";
        // Other jobs of this machine are nobody's business.
        format!("user = \"nobody\"\n{jobs}users = [\"{alice}\"]\n{summarised}[metrics]\n{metrics}")
    };
    let mut service = NodeService::start(&settings("address = \"127.0.0.1:0\"\n"))?;
    let state = service.send(b"GET /v1/service HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)?;
    let state: Value = serde_json::from_str(String::from_utf8(state)?.split("\r\n\r\n").nth(1).ok_or("no answer")?)?;
    let address = state["metrics"]["address"].as_str().ok_or_else(|| state.to_string())?.to_owned();
    let mut other = job(mpi, bob)?;
    let mut own = observed_job(mpi, alice, 2)?;
    let key = key_of(&service, alice, &mut own)?;
    let ranks = |read: &Exposition| read.value("mpiprobe_job_ranks", &[("job_id", &key)]);
    wait_until(|| Ok(ranks(&scraped(&address)?) == Some(2.0)))?;
    finish(&mut own)?;
    // As it was at the end.
    wait_until(|| Ok(ranks(&scraped(&address)?).is_none()))?;
    let read = scraped(&address)?;
    let expect = |read: &Exposition, job: &str, truth: &Job| -> Result<(), Failed> {
        let (calls, [sent, received]) = truth_of(truth)?;
        let of = |group: &'static str| [("job_id", job.to_owned()), ("group", group.to_owned())];
        let value = |name: &str, group| {
            let labels = of(group);
            let labels: Vec<_> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            read.value(name, &labels)
        };
        for (group, number) in &calls {
            assert_eq!(value("mpiprobe_mpi_calls_total", group), Some(*number), "{group}: {read:?}");
            assert!(value("mpiprobe_mpi_seconds_total", group).is_some_and(|seconds| seconds > 0.0), "{group}");
        }
        let all: f64 = read.values("mpiprobe_mpi_calls_total", &[("job_id", job)]).iter().sum();
        assert_eq!(all.to_bits(), calls.values().sum::<f64>().to_bits(), "{read:?}");
        assert!(sent > 0.0 && received > 0.0);
        assert_eq!(value("mpiprobe_mpi_sent_bytes_total", "p2p"), Some(sent));
        assert_eq!(value("mpiprobe_mpi_received_bytes_total", "p2p"), Some(received));
        assert_eq!(value("mpiprobe_mpi_calls_of_unknown_amount_total", "p2p"), Some(0.0));
        let of_job = [("job_id", job)];
        assert_eq!(read.value("mpiprobe_job_losses_total", &of_job), Some(0.0));
        assert_eq!(read.value("mpiprobe_job_complete", &of_job), Some(1.0));
        for name in ["mpiprobe_job_wall_seconds_total", "mpiprobe_job_own_cost_seconds_total"] {
            assert!(read.value(name, &of_job).is_some_and(|seconds| seconds > 0.0), "{name}");
        }
        Ok(())
    };
    expect(&read, &key, &own)?;
    expect_summary(&file, &key, alice, &own)?;
    expect_table(&tables, &file)?;
    fill(&mut service, home.path())?;
    // Nobody's name, and no job of those who are not to be observed, which has no probes either.
    let jobs: BTreeSet<&String> = read.samples.iter().filter_map(|sample| sample.labels.get("job_id")).collect();
    assert_eq!(jobs, [&key].into());
    assert!(read.samples.iter().all(|sample| !sample.labels.contains_key("user")));
    assert!(read.value("mpiprobe_service_jobs", &[]) >= Some(1.0));
    let pid = other.ranks()?[&0];
    wait_until(|| Ok(changed_bytes(pid, Path::new(&library_of(pid)?))? == 0))?;
    // A port that somebody has, and no room for series of single jobs.
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = format!("address = \"{}\"\nseries = 100\nuser = true\n", taken.local_addr()?);
    fs::write(service.configuration(), settings(&port))?;
    service.profiler().signal(Signal::HUP)?;
    service.profiler().wait_for("metrics cannot be had at")?;
    service.profiler().wait_for("has read its configuration again")?;
    // The port from before is closed.
    wait_until(|| Ok(TcpStream::connect(&address).is_err()))?;
    let mut own = observed_job(mpi, alice, 2)?;
    let by_socket = |service: &NodeService| -> Result<Exposition, Failed> {
        let answer = service.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)?;
        exposition(&String::from_utf8(answer)?)
    };
    let ranks = |read: &Exposition| read.value("mpiprobe_job_ranks", &[("job_id", "other")]);
    wait_until(|| Ok(ranks(&by_socket(&service)?) == Some(2.0)))?;
    assert_eq!(by_socket(&service)?.value("mpiprobe_service_jobs_in_other", &[]), Some(1.0));
    finish(&mut own)?;
    wait_until(|| Ok(ranks(&by_socket(&service)?).is_none()))?;
    let read = by_socket(&service)?;
    expect(&read, "other", &own)?;
    service.profiler().wait_for("the summary of a job cannot be written to")?;
    let first = [("job_id", key.as_str()), ("user", &alice.to_string())];
    assert!(read.value("mpiprobe_job_wall_seconds_total", &first).is_some(), "the one from before is told as before");
    finish(&mut other)?;
    Ok(())
}

/// With a patience that a busy machine may need. Who has waited in vain is told by its place.
#[track_caller]
pub(crate) fn wait_until(mut condition: impl FnMut() -> Result<bool, Failed>) -> Result<(), Failed> {
    let place = Location::caller();
    for _ in 0..60_000 {
        if condition()? {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(format!("what {place} waits for has not come to be").into())
}

/// Invariant SERVICE-CONFINED.
/// A short form of `cargo xtask soak requests`.
///
/// Invariant OWN-PROCESSES.
fn asked_for_anything(mpi: Mpi) -> Result<(), Failed> {
    let report = requests(mpi, 1000, 1)?;
    assert!(report.answers.get("200").is_some_and(|number| *number > 100), "{report}");
    Ok(())
}

fn anything() -> Result<(), Failed> {
    let service = NodeService::start("[quota]\nconnections = 4\n")?;
    let status = fs::read_to_string(format!("/proc/{}/status", service.worker()?))?;
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(value(set), Some("0000000000000000"), "{set}");
    }
    assert_eq!((value("Seccomp:"), value("NoNewPrivs:")), (Some("2"), Some("1")));
    assert_ne!(value("Uid:").and_then(|ids| ids.split_whitespace().next()), Some("0"));
    let worker = service.worker()?;
    let get = |path: &str| -> Result<String, Failed> {
        let answer =
            service.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes(), false)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    for (path, said) in [
        ("/v1/service", "200 OK"),
        ("/v1/jobs", "\"schema\":\"mpiprobe.jobs/1\""),
        ("/", "404 Not Found"),
        ("/v1/observe", "what is to be observed"),
        ("/v1/observe?record=/etc/x&pid=1", "cannot be asked for here"),
        ("/v1/observe?pid=none", "invalid value"),
        (&format!("/v1/observe?pid={}", std::process::id()), "422 Unprocessable Entity"),
        ("/v1/trace?output=/etc/x&pid=1", "cannot be asked for here"),
        ("/v1/look?pid=none", "invalid value"),
        ("/v1/look?pid-of=nobody-at-all", "\"absent\":true"),
        ("/v1/observations/0/end", "405 Method Not Allowed"),
    ] {
        let answer = get(path)?;
        assert!(answer.contains(said), "{path}: {answer}");
    }
    let post = service.send(b"POST /v1/observations/7/end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)?;
    assert!(String::from_utf8_lossy(&post).contains("no such observation of yours"));
    // What is no request is answered by an error or the end of the connection, and half a request by nothing.
    let long = [&b"GET /"[..], &"x".repeat(300_000).into_bytes(), b" HTTP/1.1\r\n\r\n"].concat();
    let headers = [&b"GET / HTTP/1.1\r\n"[..], &b"a: b\r\n".repeat(20_000)].concat();
    for bytes in [&b"\0\xff\x80garbage\r\n\r\n"[..], b"GET", b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &long, &headers]
    {
        let answer = service.send(bytes, true)?;
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"), "{answer:?}");
    }
    // Who keeps connections open has as many as are permitted, and others are served.
    let mut kept: Vec<UnixStream> = Vec::new();
    for _ in 0..8 {
        let mut stream = UnixStream::connect(service.socket())?;
        let _ = stream.write_all(b"GET /v1/service HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut answer = [0; 12];
        if stream.read_exact(&mut answer).is_ok() {
            kept.push(stream);
        }
    }
    assert_eq!(kept.len(), 4);
    let nobody = nobody_else();
    let checked = ended(service.client(nobody, ["doctor", "--service", "--json"]))?;
    let report: Value = serde_json::from_str(&checked.stdout.join("\n"))?;
    assert_eq!((checked.status.code(), report["verdict"].as_str()), (Some(0), Some("ok")), "{}", checked.printed());
    let access =
        report["service"].as_array().and_then(|checks| checks.iter().find(|one| one["name"] == "service-access"));
    assert_eq!(access.ok_or("no check")?["data"]["sees_all"], false);
    let (programs, list) = listed(service.client(nobody, ["ps", "--json"]))?;
    assert!(programs.is_empty() && list["looked_at"].as_u64().is_some(), "{list}");
    drop(kept);
    // Root of a container is nobody's administrator.
    let in_pid_namespace = ["unshare", "--pid", "--fork"];
    let mut answered = None;
    // Until the service has noticed that those connections are gone, a further one is refused.
    wait_until(|| {
        let answer = ended(service.client_by(&in_pid_namespace, ["ps", "--json"]))?;
        answered = Some(answer).filter(|answer| answer.status.success());
        Ok(answered.is_some())
    })?;
    let (programs, list) = list_of(&answered.ok_or("no answer")?)?;
    assert!(programs.is_empty() && list["looked_at"] == 0, "{list}");
    // mpiprobe itself does not believe in a socket there, whose owner has no number: any other program may ask.
    let user = nobody.to_string();
    let in_user_namespace =
        ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "unshare", "--user", "--map-root-user"];
    let mut command = Command::new(in_user_namespace[0]);
    command.args(&in_user_namespace[1..]).args(["perl", "-MIO::Socket::UNIX", "-e", ASKING]).arg(service.socket());
    command.current_dir("/");
    let mut metrics = Command::new("setpriv");
    metrics.args(command.get_args()).arg("/metrics").current_dir("/");
    let refused = ended(metrics)?;
    assert!(refused.stdout.first().is_some_and(|head| head.contains("403 Forbidden")), "{}", refused.printed());
    command.arg("/v1/jobs");
    let asked = ended(command)?;
    let (head, body) = (asked.stdout.first().ok_or_else(|| asked.printed())?, asked.stdout.last());
    let list: Value = serde_json::from_str(body.ok_or("no list")?)?;
    assert!(head.contains("200 OK") && list["looked_at"] == 0 && list["jobs"] == Value::Array(Vec::new()), "{list}");
    assert_eq!(service.worker()?, worker, "nothing of this has ended it");
    Ok(())
}
