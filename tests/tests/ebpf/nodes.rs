//! A job over several nodes. They are nodes by name: each has host name and agent of its own, and the ranks that it is told.
#![expect(clippy::indexing_slicing, reason = "profiles in JSON, where what is missing is null")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::traffic::{differences, seen, told};
use mpiprobe_tests::{
    Ended, Job, Language, Mpi, Profiler, Requirement,
    hang::{CASES, PATIENCE, answer, is_there, lines, misplaced, parsed},
    program, requirement,
    terminal::{FAST, Terminal},
    waits::wait_states,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    check::{complete, expect_counts, expect_row, expect_rows, functions},
    hang::expect_documented,
    view,
    waits::expect_what_is_sure,
};

/// What starts a command on a node. A node's ranks are in a file of its name; of what the agent there is asked for, they take the place of
/// the program's name, or of another node's ranks. The command's pid is left in another file. From some nodes there may be no way.
const LAUNCHER: &str = r#"#!/bin/bash
folder=${0%/*} host=$1
shift
case $host in
dead) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255;;
asks) printf "alice@%s's password: " "$host" >&2; while read -r answer; do :; done; exit 255;;
talks) echo "Welcome to $host"; exec cat >/dev/null;;
late) read -r request; sleep 1; : >"$folder/late.begun"; echo '{"begun":true}'; read -r end; echo '{"failed":"it was late"}'; exit;;
watches) read -r request; echo '{"begun":true}'; read -r end
[ -e "$folder/late.begun" ] && echo '{"failed":"all had looked"}' || echo '{"failed":"too early"}'; exit;;
esac
[ -e "$folder/no-way-from-$(hostname)" ] && { echo "alice@$host: Permission denied (publickey)." >&2; exit 255; }
exec 3<&0
exec unshare --uts sh -c '
hostname "$0" && echo $$ >"$1.new" && mv "$1.new" "$1.agent" && shift && exec "$@"' \
"$host" "$folder/$host" "$@" < <(exec 2>/dev/null
IFS= read -r request <&3 || exit
printf '%s\n' "$request" | sed "s/\(pid-of\|job\|pid\)=[^&\"]*\(&pid=[^&\"]*\)*/$(cat "$folder/$host.ranks")/"
exec cat <&3) 3<&-
"#;

/// What of Slurm is asked, beside the launcher. It knows one job.
const SLURM: [(&str, &str); 3] = [
    ("squeue", "#!/bin/sh\ncase $* in *--jobs\\ 4711) echo 'n[1-2]';; *) echo 'Invalid job id' >&2; exit 1;; esac\n"),
    ("scontrol", "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-2]' ] && printf 'n1\\nn2\\n'\n"),
    (
        "srun",
        r#"#!/bin/sh
job= node=
while [ "$1" != -- ]; do
case $1 in --jobid=*) job=${1#*=};; --nodelist=*) node=${1#*=};; esac
shift
done
shift
[ "$job" = 4711 ] && exec "${0%/*}/launcher" "$node" "$@"
"#,
    ),
];

/// What is said of `other-partner`, whose first two ranks are on the first node.
pub(crate) const TOLD: [&str; 4] = [
    "Deadlock: 0 → 1 → 2 → 0",
    "Rank 0 (n1) in MPI_Recv from 1 tag 5 4 B @other_partner waits for 1",
    "Rank 1 (n1) in MPI_Ssend to 2 tag 5 4 B @other_partner waits for 2",
    "Rank 2 (n2) in MPI_Barrier @other_partner waits for 0, 1 to call MPI_Barrier",
];

/// What nodes by name take.
pub(crate) fn needs(mpi: Mpi) -> [Requirement; 6] {
    [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Mpi(mpi),
        Requirement::Language(mpi, Language::C),
        Requirement::Command("unshare"),
        Requirement::Command("bash"),
    ]
}

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let needs = needs(mpi);
    let named = |name: &str| format!("{}::{name}", mpi.id());
    vec![
        requirement::trial(named("a_job_over_several_nodes_is_one"), &needs, move || several(mpi)),
        requirement::trial(named("agents_talk_to_agents_where_nodes_are_many"), &needs, move || tree(mpi)),
        requirement::trial(named("a_job_that_hangs_over_several_nodes_is_explained"), &needs, move || hung(mpi)),
        requirement::trial(named("who_waits_for_whom_over_several_nodes"), &needs, move || waits(mpi)),
        view::trial(mpi, "the_view_over_nodes_has_stacks_and_the_last_calls", viewed),
    ]
}

/// Two nodes, the first with two ranks.
pub(crate) struct Nodes(TempDir);

impl Nodes {
    pub(crate) fn of(job: &mut Job) -> Result<Self, Failed> {
        let pids = job.ranks()?;
        let (first, second): (Vec<_>, Vec<_>) = pids.into_iter().partition(|(rank, _)| *rank < 2);
        let pids = |ranks: Vec<(u32, u32)>| ranks.into_iter().map(|(_, pid)| pid).collect();
        Self::with([pids(first), pids(second)])
    }

    /// With these processes on the first and on the second one.
    pub(crate) fn with(pids: [Vec<u32>; 2]) -> Result<Self, Failed> {
        let nodes = Self(tempfile::tempdir()?);
        for (name, script) in SLURM.into_iter().chain([("launcher", LAUNCHER)]) {
            let path = nodes.0.path().join(name);
            fs::write(&path, script)?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        for (name, pids) in ["n1", "n2"].into_iter().zip(pids) {
            // For sed.
            let words = pids.iter().map(|pid| format!("pid={pid}")).collect::<Vec<_>>().join("\\&");
            fs::write(nodes.0.path().join(format!("{name}.ranks")), words)?;
        }
        Ok(nodes)
    }

    pub(crate) fn launcher(&self) -> String {
        format!("{} {{host}}", self.0.path().join("launcher").display())
    }

    fn observe(&self, job: &Job, hosts: &str, arguments: &[&str]) -> Result<Profiler, Failed> {
        let launcher = self.launcher();
        let named = ["--pid-of", job.called(), "--hosts", hosts, "--launcher", &launcher];
        let mut command = Command::new(binary()?);
        command.args(["-v", "--json"].iter().chain(&named).chain(arguments));
        // However late an agent is, others are started by it.
        command.env("MPIPROBE_FIRST_WORD_MS", "600000");
        Ok(Profiler::spawn(command)?)
    }

    /// The Slurm job of this number.
    fn observe_slurm_job(&self, job: &str) -> Result<Profiler, Failed> {
        let mut command = Command::new(binary()?);
        let path = std::env::var("PATH")?;
        command.env("PATH", format!("{}:{path}", self.0.path().display()));
        command.args(["--json", "--interval", "1h", "--launcher", "srun", "--job", job]);
        Ok(Profiler::spawn(command)?)
    }

    pub(crate) fn agent(&self, node: &str) -> Result<Pid, Failed> {
        let pid = fs::read_to_string(self.0.path().join(format!("{node}.agent")))?.trim().parse()?;
        Ok(Pid::from_raw(pid).ok_or("no pid")?)
    }
}

/// Invariant AGENTS-END.
/// Invariant EVERYBODY-OR-SAID.
fn several(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(4).args(["20"]).gates(&["start", "1"]).semantics().own_name();
    let mut job = job.spawn()?;
    job.wait_for_gate("start")?;
    let (whole, lacking, killed) = (Nodes::of(&mut job)?, Nodes::of(&mut job)?, Nodes::of(&mut job)?);
    let mut all = whole.observe(&job, "n1,n2", &["--traffic", "--interval", "1h"])?;
    all.wait_for_processes(4)?;
    job.open_gate("start")?;
    job.wait_for_gate("1")?;
    all.wait_for_meaning(4)?;
    // One of which nothing comes, as if it had lost its power, however long it is until the next profile.
    kill_process(whole.agent("n2")?, Signal::STOP)?;
    all.wait_for("mpiprobe: n2: silent: nothing has come from there for ")?;
    kill_process(whole.agent("n2")?, Signal::CONT)?;
    all.wait_for("mpiprobe: n2: it answers again")?;
    let before = job.snapshot()?;

    // Nodes that do not answer, each in a way of its own: they are named, and the others are observed.
    let mut some = lacking.observe(&job, "dead,n1,asks,n2,talks", &["--interval", "100ms"])?;
    some.wait_for("mpiprobe: asks: it has not begun within 5 s")?;
    some.wait_for_output_with("\"host\":\"n2\"")?;
    // An agent that dies is one node less.
    kill_process(lacking.agent("n2")?, Signal::KILL)?;
    some.wait_for("mpiprobe: n2: lost: ")?;
    // Agents end with whom they work for, whatever ends it.
    let mut front = killed.observe_slurm_job("4711")?;
    front.wait_for_processes(4)?;
    let agents = [killed.agent("n1")?, killed.agent("n2")?];
    front.signal(Signal::KILL)?;
    for agent in agents {
        // Nobody may look after it when it has ended.
        while fs::read_link(format!("/proc/{}/exe", agent.as_raw_nonzero())).is_ok() {
            sleep(Duration::from_millis(20));
        }
    }

    let refused = killed.observe_slurm_job("4712")?.wait()?;
    assert!(
        refused.printed().contains("squeue does not tell the nodes of job 4712: Invalid job id"),
        "{}",
        refused.printed()
    );

    job.open_gate("1")?;
    job.wait()?.success()?;
    let truth = job.snapshot()?;
    let ended = all.wait()?;
    let profile = complete(&ended)?;
    expect_counts(&profile, &truth, None, &functions("default")?)?;
    for (rank, image) in &truth.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let compared = image.traffic.functions().into_keys().map(str::to_owned).collect();
        assert_eq!(differences(&told(image, None), &seen(row, &compared)), Vec::<String>::new(), "rank {rank}");
    }
    let last = last(&ended)?;
    assert_eq!((&last["host"], &last["jobs"][0]["ranks"]), (&"n1, n2".into(), &4.into()), "{last}");
    let hosts: Vec<_> = last["ranks"].as_array().ok_or("no ranks")?.iter().map(|row| &row["host"]).collect();
    assert_eq!(hosts, ["n1", "n1", "n2", "n2"]);

    let ended = some.wait()?;
    let profile = ended.profile()?;
    assert!(!profile.complete && ended.status.code() == Some(3), "{}", ended.printed());
    for rank in [0, 1] {
        let row = profile.rank(rank).ok_or_else(|| ended.printed())?;
        expect_row(row, &truth.ranks[&rank], before.ranks.get(&rank), &functions("default")?);
    }
    assert_eq!(profile.ranks.len(), 4, "{}", ended.printed());
    let whys = profile.incomplete_because.join("\n");
    for why in [
        "node dead is not observed: ssh: connect to host dead port 22: No route to host",
        "node n2 has been lost (",
        "node asks has not answered",
        "node talks is not observed: it says what no agent of version",
    ] {
        assert!(whys.contains(why), "{why}: {whys}");
    }
    Ok(())
}

/// Ends of messages and collectives are on different nodes.
fn waits(mpi: Mpi) -> Result<(), Failed> {
    const RANKS: u32 = 4;
    const ITERATIONS: u64 = 300;
    let arguments = [ITERATIONS.to_string(), "--pause-us".into(), "300".into()];
    let builder = Job::builder(mpi, program::RING).ranks(RANKS).args(arguments).gates(&["start", "3"]).truth(true);
    let mut job = builder.own_name().spawn()?;
    job.wait_for_gate("start")?;
    let nodes = Nodes::of(&mut job)?;
    let mut profiler =
        nodes.observe(&job, "n1,n2", &["--waits", "--functions", "all", "--interval", "200ms", "--fan-out", "1"])?;
    profiler.wait_for_processes(RANKS as usize)?;
    job.open_gate("start")?;
    job.wait_for_gate("3")?;
    // While it goes on.
    profiler.wait_for_output_with("\"matched_messages\":")?;
    job.open_gate("3")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    complete(&ended)?;
    expect_what_is_sure(&wait_states(&ended.stdout.join("\n"))?, RANKS.into(), ITERATIONS)
}

/// One connection is all that is permitted: the first node that answers starts the agents of the others.
///
/// Invariant EVERYBODY-OR-SAID.
fn tree(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(4).args(["20"]).gates(&["start", "1"]).truth(true).own_name();
    let mut job = job.spawn()?;
    job.wait_for_gate("start")?;
    let (whole, scattered, killed) = (Nodes::of(&mut job)?, Nodes::of(&mut job)?, Nodes::of(&mut job)?);
    let observe = |nodes: &Nodes, hosts: &str, interval: &str| {
        nodes.observe(&job, hosts, &["--fan-out", "1", "--interval", interval])
    };
    let mut by_others = observe(&whole, "dead,n1,n2", "1h")?;
    by_others.wait_for_processes(4)?;
    assert_eq!(parent(whole.agent("n2")?)?, whole.agent("n1")?);
    // A node that another one cannot reach is reached from here.
    fs::write(scattered.0.path().join("no-way-from-n1"), "")?;
    let mut by_itself = observe(&scattered, "n1,n2", "1h")?;
    by_itself.wait_for_processes(4)?;
    assert_eq!(Some(parent(scattered.agent("n2")?)?), Pid::from_raw(by_itself.pid().try_into()?));
    // Who had begun is lost with the one by which it was reached.
    let mut less = observe(&killed, "n1,n2", "100ms")?;
    less.wait_for_output_with("\"host\":\"n2\"")?;
    kill_process(killed.agent("n1")?, Signal::KILL)?;
    less.wait_for("mpiprobe: n2: lost: it was reached by n1, which has been lost")?;
    let before = job.snapshot()?;
    for gate in ["start", "1"] {
        job.open_gate(gate)?;
    }
    job.wait()?.success()?;
    let truth = job.snapshot()?;
    let profile = complete(&by_itself.wait()?)?;
    expect_counts(&profile, &truth, None, &functions("default")?)?;
    let profile = by_others.wait()?.profile()?;
    expect_rows(&profile, &truth, None, &functions("default")?)?;
    let why = "node dead is not observed: ssh: connect to host dead port 22: No route to host";
    assert_eq!((profile.ranks.len(), profile.incomplete_because), (4, vec![why.to_owned()]));
    let profile = less.wait()?.profile()?;
    expect_rows(&profile, &before, None, &functions("default")?)?;
    assert!(!profile.complete && profile.incomplete_because.iter().any(|why| why.contains("node n2 has been lost (")));
    Ok(())
}

/// What a view shows besides profiles, all nodes tell of, those too that are reached by another.
fn viewed(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(4).args(["--forever"]).gates(&["1"]).own_name();
    let mut job = job.spawn()?;
    job.wait_for_gate("1")?;
    let nodes = Nodes::of(&mut job)?;
    let launcher = nodes.launcher();
    let named = ["--pid-of", job.called(), "--hosts", "n1,n2", "--launcher", &launcher, "--fan-out", "1"];
    let mut terminal = Terminal::start((120, 40), [FAST, &["--traffic"], &named].concat())?;
    terminal.wait_for(&["4/4 ranks", "LIVE"])?;
    job.open_gate("1")?;
    for (key, texts) in [
        ("0", ["Stacks of ", " threads of 4 ranks; a look takes ", " main ", " MPI_"].as_slice()),
        ("8", &["Last ", " calls of rank 0", "MPI_Sendrecv(sendcount=1024, sendtype=MPI_INT, "]),
        ("h", &["Last ", " calls of rank 3", "MPI_Sendrecv(sendcount=1024, sendtype=MPI_INT, "]),
        ("T", &["Single calls are kept with --waits only"]),
        ("0", &["Stacks of ", " threads of 4 ranks; a look takes "]),
    ] {
        terminal.press(key)?;
        terminal.wait_for(texts)?;
    }
    terminal.press("q")?;
    assert_eq!(terminal.left()?.not_restored, Vec::<String>::new());
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

pub(crate) fn parent(of: Pid) -> Result<Pid, Failed> {
    let status = fs::read_to_string(format!("/proc/{}/status", of.as_raw_nonzero()))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).ok_or("no parent")?;
    Ok(Pid::from_raw(parent.trim().parse()?).ok_or("no parent")?)
}

/// Ranks wait for each other across nodes; of a node that is not looked at nothing is said but that.
///
/// Invariant NO-WRONG-CAUSE.
/// Invariant AT-ONE-TIME.
fn hung(mpi: Mpi) -> Result<(), Failed> {
    let case = CASES.iter().find(|case| case.name == "other-partner").ok_or("no such case")?;
    // Otherwise a function that ends in a call is not on the stack any more.
    let program = case.program.compiled(&["-fno-optimize-sibling-calls"]);
    let job = Job::builder(mpi, program).ranks(case.ranks()).args([case.name]).own_name();
    let mut job = job.spawn()?;
    let nodes = Nodes::of(&mut job)?;
    let launcher = nodes.launcher();
    let first = answer(&job, &[], |answer| is_there(case, answer))?;
    assert!(is_there(case, &first), "{first}");
    let named = ["hang", "--pid-of", job.called(), "--launcher", &launcher];
    let until = Instant::now() + PATIENCE;
    // A node that is too busy to look in time is left out, as it is to be.
    let told = |more: &[&str]| loop {
        let ended = Profiler::start([&named[..], &["--hosts", "n1,n2", "--json"], more].concat())?.wait()?;
        let answer = if ended.status.code() == Some(0) { parsed(&ended)? } else { Value::Null };
        if lines(case, &answer)? == TOLD || Instant::now() >= until {
            assert_eq!(lines(case, &answer)?, TOLD, "{more:?}: {answer}");
            return Ok::<_, Failed>(answer);
        }
    };
    let answer = told(&[])?;
    told(&["--fan-out", "1"])?;
    assert_eq!(misplaced(case, program, &answer), Vec::<String>::new(), "{answer}");
    let of_nodes: Vec<_> = answer["threads"].as_array().into_iter().flatten().map(|thread| &thread["node"]).collect();
    assert_eq!(of_nodes, ["n1", "n1", "n2"], "{answer}");
    expect_documented(&answer);

    let expected = [
        "Rank 0 waits for rank 1 (n1), which is in MPI_Ssend to 2 tag 5 4 B at ",
        "No rank that was looked at has gone on for ",
        "  node dead was not looked at: ssh: connect to host dead port 22: No route to host",
        "  node talks was not looked at: it says what no agent of version",
        "  node watches was not looked at: all had looked",
        "  node late was not looked at: it was late",
        "  Rank 2 was not looked at",
    ];
    let text = loop {
        let ended = Profiler::start([&named[..], &["--hosts", "dead,watches,n1,talks,late"]].concat())?.wait()?;
        let text = ended.stdout.join("\n");
        if expected.iter().all(|told| text.contains(told)) || Instant::now() >= until {
            assert_eq!(ended.status.code(), Some(3), "{}", ended.printed());
            break text;
        }
    };
    for told in expected {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("Deadlock") && !text.contains("to call"), "{text}");
    Ok(())
}

fn last(ended: &Ended) -> Result<Value, Failed> {
    Ok(serde_json::from_str(ended.stdout.last().ok_or("no profile")?)?)
}
