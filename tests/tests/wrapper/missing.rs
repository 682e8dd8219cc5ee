//! MPI processes that are not counted, by themselves or beside others that are: the profile says that it is not whole, and why.
//!
//! Invariant EVERYBODY-OR-SAID.

use std::ffi::OsString;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::compile::executable;
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, Requirement, program, requirement};

use crate::{is_debians, wrapper};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    let trial = |name: &str, needs: &[Requirement], test: fn(Mpi) -> Result<(), Failed>| {
        let needs = [&[Requirement::Mpi(mpi), Requirement::Language(mpi, Language::C)], needs].concat();
        requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
    };
    let root = [Requirement::Root, Requirement::Command("unshare"), Requirement::Command("setpriv")];
    let mut tests = vec![
        trial("a_program_without_the_environment_is_missed", &[], singleton),
        trial("a_rank_that_does_not_see_the_wrapper_is_missed", &root, chroot),
        trial("programs_beside_counted_ranks_are_missed", &[Requirement::Command("python3")], beside),
        trial("mpi_through_ctypes_is_counted_or_missed", &[Requirement::Command("python3")], ctypes),
    ];
    if mpi == Mpi::Mpich {
        // Open MPI has no such library, and does not speak with processes of others.
        tests.push(trial("a_program_with_mpi_in_it_is_missed", &[], linked_in));
        tests.push(trial("set_user_id_ranks_are_missed", &root, set_user_id));
    }
    tests
}

/// Runs the job to its end, as it would have ended without us.
fn profile(job: JobBuilder) -> Result<Profile, Failed> {
    let mut job = job.profiled(["--functions", "all"])?.spawn()?;
    job.wait()?.success()?;
    Ok(job.profile()?)
}

fn expect_nothing(profile: &Profile) {
    assert!(!profile.complete && profile.ranks.is_empty(), "{profile:?}");
    assert!(profile.incomplete_because.concat().contains("nothing was counted"), "{:?}", profile.incomplete_because);
}

fn ring(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::RING).ranks(2).args(["5"])
}

/// A job of one process, of which no launcher tells anything.
fn singleton(mpi: Mpi) -> Result<(), Failed> {
    let kept = ["PATH", "HOME"].map(|name| {
        let mut variable = OsString::from(format!("{name}="));
        variable.push(std::env::var_os(name).unwrap_or_default());
        variable
    });
    let mut command: Vec<OsString> = vec!["env".into(), "-i".into()];
    command.extend(kept);
    command.extend(["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"].map(Into::into));
    expect_nothing(&profile(Job::builder(mpi, program::STACKS).args(["up"]).ranks(1).alone().within(command))?);
    Ok(())
}

/// One of two ranks is in a root directory without the library: the dynamic linker says so and goes on.
fn chroot(mpi: Mpi) -> Result<(), Failed> {
    const SCRIPT: &str = r#"[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] || { shift; exec "$@"; }
        mount --rbind / /mnt && mount -t tmpfs none "/mnt$1" && shift && exec chroot /mnt "$@""#;
    let library = wrapper()?;
    let folder = library.parent().unwrap_or(Path::new("/"));
    let mut command: Vec<OsString> = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh"].map(Into::into).into();
    command.push(folder.into());
    let profile = profile(ring(mpi).within(command))?;
    let why = profile.incomplete_because.concat();
    assert!(!profile.complete && why.contains("1 of 2 ranks") && why.contains("(rank 1)"), "{why}");
    assert_eq!(profile.rank(0).and_then(|row| row.completed().get("MPI_Allreduce").copied()), Some(5));
    Ok(())
}

/// All ranks of the job are counted; what else the command starts is not.
fn beside(mpi: Mpi) -> Result<(), Failed> {
    const CTYPES: &str =
        "import ctypes, sys; mpi = ctypes.CDLL(sys.argv[1]); mpi.MPI_Init(None, None); mpi.MPI_Finalize()";
    let other = executable(mpi, program::STACKS)?;
    let cases = [
        (r#""$@" && exec python3 -c "$CTYPES" "$LIBRARY""#, "called MPI past the wrapper"),
        (r#""$@" && unset LD_PRELOAD && exec "$OTHER" up 1"#, "had MPI and not the wrapper"),
        (r#""$@" && exec true"#, ""),
    ];
    for (script, told) in cases {
        let job = ring(mpi).around(["sh", "-c", script, "sh"]).env("CTYPES", CTYPES).env("LIBRARY", mpi.c_library());
        let job =
            job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").env("OTHER", &other);
        let profile = profile(job)?;
        let why = profile.incomplete_because.concat();
        for rank in 0..2 {
            let calls = profile.rank(rank).and_then(|row| row.completed().get("MPI_Allreduce").copied());
            assert_eq!(calls, Some(5), "{told}: {profile:?}");
        }
        assert_eq!((profile.complete, why.contains(told)), (told.is_empty(), true), "{why}");
        assert_eq!(profile.incomplete_because.len(), usize::from(!told.is_empty()), "{why}");
    }
    Ok(())
}

/// Its functions are looked up one by one, in a library that it opens itself.
fn ctypes(mpi: Mpi) -> Result<(), Failed> {
    const SCRIPT: &str =
        "import ctypes, sys; mpi = ctypes.CDLL(sys.argv[1]); mpi.MPI_Init(None, None); mpi.MPI_Finalize()";
    let command = ["python3", "-c", SCRIPT, mpi.c_library()];
    let profile = profile(Job::builder(mpi, program::RING).ranks(2).within(command))?;
    if profile.complete {
        for rank in 0..2 {
            let counted = profile.rank(rank).ok_or("no such rank")?.completed();
            let calls = ["MPI_Init", "MPI_Finalize"].map(|name| counted.get(name).copied());
            assert_eq!(calls, [Some(1), Some(1)], "rank {rank}");
        }
    } else {
        expect_nothing(&profile);
    }
    Ok(())
}

fn linked_in(mpi: Mpi) -> Result<(), Failed> {
    expect_nothing(&profile(ring(mpi).linked_in())?);
    Ok(())
}

fn set_user_id(mpi: Mpi) -> Result<(), Failed> {
    let other_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let job = Job::builder(mpi, program::RING_WITH_GATES).ranks(2).args(["5"]).own_name();
    expect_nothing(&profile(job.within(other_user).set_user(0).as_it_is())?);
    Ok(())
}
