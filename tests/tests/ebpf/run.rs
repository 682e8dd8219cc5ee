//! `mpiprobe run` by the kernel: jobs that are counted from their first call on, however short they are.
//!
//! Invariant FIRST-CALL.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::campaign::Lacks;
use mpiprobe_tests::check::{expect_counts, functions};
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, program};
use rustix::process::Signal;

use crate::trial;

const WRAPPER: &str = "LD_PRELOAD";

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        trial(mpi, Language::C, "run_counts_every_call", every_call),
        trial(mpi, Language::C, "run_counts_what_was_called_before_an_exec", execs),
        trial(mpi, Language::C, "run_counts_no_forked_child", |mpi| counted(mpi, "fork").map(drop)),
        trial(mpi, Language::C, "run_chooses_the_kernel_where_it_misses_nothing", chosen),
        trial(mpi, Language::Python, "run_chooses_the_wrapper_where_the_kernel_might_miss_calls", not_chosen),
        trial(mpi, Language::C, "run_says_what_it_was_too_late_for", late),
        trial(mpi, Language::C, "run_knows_what_scripts_will_start", scripts),
        trial(mpi, Language::C, "run_knows_that_it_was_in_time_if_mpi_is_initialised_later", seen_to_begin),
        trial(mpi, Language::Python, "run_knows_what_python_will_load", |mpi| {
            complete(&ended(Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["3"]), "ebpf", &[])?).map(drop)
        }),
        trial(mpi, Language::C, "run_needs_no_time_to_understand_calls", unattended),
        trial(mpi, Language::Fortran, "run_judges_early_questions_of_fortran_layers", |mpi| early(mpi, false)),
        trial(mpi, Language::C, "run_hands_on_the_exit_status", status),
        trial(mpi, Language::C, "run_hands_on_signals", signals),
        trial(mpi, Language::C, "run_says_what_the_programs_see", traced),
    ];
    if mpi == Mpi::Mpich {
        // Debian has no static Open MPI.
        let name = "run_judges_early_questions_of_fortran_procedures_in_the_program";
        tests.push(trial(mpi, Language::Fortran, name, |mpi| early(mpi, true)));
    }
    tests
}

fn ended(builder: JobBuilder, engine: &str, arguments: &[&str]) -> Result<Job, Failed> {
    let mut job = builder.truth(true).run_by(engine, arguments)?.spawn()?;
    job.wait()?.success()?;
    Ok(job)
}

fn complete(job: &Job) -> Result<Profile, Failed> {
    let profile = job.profile()?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    assert_eq!(profile.lost(), BTreeMap::new());
    assert_ne!(profile.engine.attached_by, WRAPPER);
    Ok(profile)
}

fn every_call(mpi: Mpi) -> Result<(), Failed> {
    let job = ended(Job::builder(mpi, program::GROUPS), "ebpf", &["--functions", "all"])?;
    let profile = complete(&job)?;
    assert_eq!(profile.end.as_deref(), Some("targets-ended"));
    assert!(profile.ranks.iter().all(|rank| rank.state == "ended" && rank.open_calls.is_empty()), "{profile:?}");
    expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)
}

fn exits(mpi: Mpi, mode: &str) -> JobBuilder {
    Job::builder(mpi, program::EXITS).ranks(2).args([mode])
}

fn counted(mpi: Mpi, mode: &str) -> Result<Profile, Failed> {
    let job = ended(exits(mpi, mode), "ebpf", &[])?;
    let profile = complete(&job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    Ok(profile)
}

/// What is executed before and afterwards calls nothing.
fn execs(mpi: Mpi) -> Result<(), Failed> {
    for mode in ["exec-before", "exec-after"] {
        let job = ended(exits(mpi, mode), "ebpf", &[])?;
        let profile = complete(&job)?;
        for rank in 0..2 {
            let row = profile.ranks.iter().find(|row| row.rank == Some(rank) && !row.completed().is_empty());
            let calls = row.ok_or("no row with calls")?.completed();
            assert_eq!(
                (calls.get("MPI_Allreduce"), calls.get("MPI_Finalize")),
                (Some(&10), Some(&1)),
                "{mode}: {calls:?}"
            );
        }
    }
    Ok(())
}

/// A job that is over at once.
fn chosen(mpi: Mpi) -> Result<(), Failed> {
    // Long enough that its environment, which tells the ranks, can be read before it ends.
    let job = ended(Job::builder(mpi, program::RING).ranks(2).args(["1000"]), "auto", &[])?;
    let profile = complete(&job)?;
    assert!(job.output().1.contains("engine ebpf: "), "{:?}", job.output());
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)
}

fn not_chosen(mpi: Mpi) -> Result<(), Failed> {
    let job = ended(Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["3"]), "auto", &[])?;
    let profile = job.profile()?;
    assert_eq!(profile.engine.attached_by, WRAPPER);
    assert!(job.output().1.contains("engine wrapper: which MPI library"), "{:?}", job.output());
    Ok(())
}

/// The program is named by a script, or to a shell.
fn scripts(mpi: Mpi) -> Result<(), Failed> {
    let ring = || Job::builder(mpi, program::RING).ranks(2).args(["1"]);
    for builder in [ring().through_a_shell(), ring().around(["sh", "-c", r#""$0" "$@"; exit $?"#])] {
        let profile = complete(&ended(builder, "ebpf", &[])?)?;
        for rank in 0..2 {
            // The image of the shell before it has called nothing.
            let row = profile.ranks.iter().find(|row| row.rank == Some(rank) && row.calls > 0).ok_or("no such rank")?;
            let calls = ["MPI_Init", "MPI_Allreduce", "MPI_Finalize"].map(|name| row.completed().get(name).copied());
            assert_eq!(calls, [Some(1); 3], "{profile:?}");
        }
    }
    Ok(())
}

/// Python opens the library itself, and initialises MPI only when that is under probes: as it is possible once only, nothing was called
/// before. What may be called before is another matter.
fn seen_to_begin(mpi: Mpi) -> Result<(), Failed> {
    const SCRIPT: &str = "import ctypes, sys; mpi = ctypes.CDLL(sys.argv[1]); sys.stdin.read(); \
                          mpi.MPI_Init(None, None); mpi.MPI_Finalize()";
    // Of an interpreter that is named, it is known which MPI it may load.
    const HIDDEN: &str = r#"exec pyth''on3 -c "$SCRIPT" "$LIBRARY""#;
    for (functions, is_complete) in [("default", true), ("all", false)] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("profile");
        let mut command = Command::new(binary()?);
        command.args(["-v", "run", "--engine", "ebpf", "--functions", functions, "--json", "--profile"]).arg(&path);
        command.args(["--", "sh", "-c", HIDDEN]).env("SCRIPT", SCRIPT).env("LIBRARY", mpi.c_library());
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").env_remove("RUST_LOG");
        let mut run = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut waits = run.stdin.take();
        let mut said = String::new();
        for line in BufReader::new(run.stderr.take().ok_or("no standard error")?).lines() {
            let line = line?;
            if line.contains("attached ") {
                drop(waits.take());
            }
            said += &(line + "\n");
        }
        assert!(run.wait()?.success() && waits.is_none(), "{said}");
        let profile: Profile = serde_json::from_slice(&fs::read(path)?)?;
        let why = profile.incomplete_because.concat();
        assert_eq!((profile.complete, why.contains("before MPI_Init")), (is_complete, !is_complete), "{why}\n{said}");
        let [row] = profile.ranks.as_slice() else { return Err(format!("{profile:?}").into()) };
        let calls = ["MPI_Init", "MPI_Finalize"].map(|name| row.completed().get(name).copied());
        assert_eq!(calls, [Some(1), Some(1)], "{functions}");
    }
    Ok(())
}

/// Nobody knows which library the program behind a script needs, until it has loaded it.
fn late(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::RING).ranks(2).args(["1"]).through_a_shell_that_hides_it();
    let job = ended(builder, "ebpf", &[])?;
    let profile = job.profile()?;
    assert!(
        !profile.complete && profile.incomplete_because.iter().any(|why| why.contains("was probed")),
        "{profile:?}"
    );
    Ok(())
}

fn status(mpi: Mpi) -> Result<(), Failed> {
    let run = |builder: JobBuilder| -> Result<_, Failed> { Ok(builder.spawn()?.wait()?.status.code()) };
    assert_eq!(run(exits(mpi, "finalize").run_by("ebpf", [] as [&str; 0])?)?, Some(0));
    let under = run(exits(mpi, "abort").run_by("ebpf", [] as [&str; 0])?)?;
    assert_eq!(under, run(exits(mpi, "abort"))?);
    Ok(())
}

/// What processes do is said once for each, and only where it was asked for.
fn traced(mpi: Mpi) -> Result<(), Failed> {
    const RANKS: usize = 2;
    let said = |arguments: &[&str]| -> Result<Vec<String>, Failed> {
        let job = ended(exits(mpi, "finalize"), "ebpf", arguments)?;
        let profile = complete(&job)?;
        assert_eq!(profile.ranks.len(), RANKS);
        let lines = job.output().1;
        Ok(profile
            .ranks
            .iter()
            .flat_map(|rank| {
                let line = format!("process {} has become a target by exec", rank.pid);
                lines.lines().filter(move |it| it.ends_with(&line)).map(ToOwned::to_owned).collect::<Vec<_>>()
            })
            .collect())
    };
    assert_eq!(said(&[])?, Vec::<String>::new());
    assert_eq!(said(&["--trace-bpf"])?.len(), RANKS);
    Ok(())
}

/// Whoever ends mpiprobe means the job; what was counted up to then is told.
fn signals(mpi: Mpi) -> Result<(), Failed> {
    for signal in [Signal::TERM, Signal::INT] {
        let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true);
        let mut job = job.run_by("ebpf", [] as [&str; 0])?.spawn()?;
        // While they live: later they cannot be found.
        job.ranks()?;
        job.wait_until_inside(1, "MPI_Recv")?;
        job.wait_until_inside(0, "MPI_Barrier")?;
        job.signal_launcher(signal)?;
        job.wait()?;
        assert!(job.living_ranks()?.is_empty(), "ranks outlive the signal");
        let profile = complete(&job)?;
        expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    }
    Ok(())
}

/// Lets a job go on from its gate to its end while mpiprobe stands still.
fn run_unattended(job: &mut Job) -> Result<(), Failed> {
    job.wait_for_gate("start")?;
    // The launcher's parent is mpiprobe.
    job.signal_launcher(Signal::STOP)?;
    job.open_gate("start")?;
    while !job.living_ranks()?.is_empty() {
        std::thread::yield_now();
    }
    job.signal_launcher(Signal::CONT)?;
    job.wait()?.success()?;
    Ok(())
}

/// Nobody looks at the ranks from before MPI_Init until after their end.
/// Invariant UNDERSTOOD-AT-ONCE.
fn unattended(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::WINDOW).ranks(2).gates(&["start"]);
    let mut job = builder.run_by("ebpf", [] as [&str; 0])?.spawn()?;
    run_unattended(&mut job)?;
    let profile = complete(&job)?;
    let lacks = Lacks::of(&profile);
    assert!(lacks.is_nothing(), "{lacks}");
    Ok(())
}

/// Nobody has read a rank's files while its Fortran procedures ask what only they want to know: that is counted, and said. On a busy machine
/// mpiprobe may have read them before it could be stopped: then nothing is missing, and it is tried again.
fn early(mpi: Mpi, linked_in: bool) -> Result<(), Failed> {
    const TRIES: u32 = 10;
    for _ in 0..TRIES {
        let mut builder = Job::builder(mpi, program::SEMANTICS_F08).ranks(4).gates(&["start"]);
        if linked_in {
            builder = builder.linked_in();
        }
        let mut job = builder.run_by("ebpf", ["--functions", "all"])?.spawn()?;
        run_unattended(&mut job)?;
        let profile = job.profile()?;
        let why = profile.incomplete_because.concat();
        if !profile.complete {
            assert!(why.contains("a Fortran library made on its own account"), "{why}");
            return Ok(());
        }
    }
    Err(format!("mpiprobe had read all files before it was stopped, {TRIES} times").into())
}
