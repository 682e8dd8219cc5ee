//! Two users of one machine: whatever one of them prepares, the other loses nothing by it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::{Copy, binary};
use mpiprobe_tests::second_user::{PrivatePlace, SECOND, give, home_of};
use mpiprobe_tests::{Job, Mpi, Profiler, Requirement, program, requirement};

pub(crate) fn general_tests() -> Vec<Trial> {
    let root = |name: &str, test: fn() -> Result<(), Failed>| requirement::trial(name, &[Requirement::Root], test);
    vec![
        root("users_root_does_not_write_into_the_home_of_another", homes),
        root("users_who_may_run_with_capabilities_reach_nothing_by_a_path", paths),
        root("users_who_would_run_with_changed_ids_are_refused", changed_ids),
        requirement::trial("users_files_are_new_and_private", &[], new_files),
    ]
}

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if mpi != Mpi::OpenMpi {
        return Vec::new();
    }
    let needs = [Requirement::Root, Requirement::Mpi(mpi)];
    vec![requirement::trial(format!("{}::users_tables_of_others_are_left_out", mpi.id()), &needs, move || tables(mpi))]
}

fn printed(output: &Output) -> String {
    format!(
        "{:?}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// `sudo -E`: the environment is the second user's, who has prepared everything for that.
/// Invariant OURS-ALONE.
fn homes() -> Result<(), Failed> {
    let (home, own) = (home_of(SECOND)?, tempfile::tempdir()?);
    let precious = own.path().join("precious");
    fs::write(&precious, "precious")?;
    let mpiprobe = |arguments: &[&str], variables: &[(&str, &Path)]| {
        let mut command = Command::new(binary()?);
        command
            .args(arguments)
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .envs(variables.iter().copied());
        Ok::<_, Failed>(command.output()?)
    };
    let path_of = |output: &Output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let ordinary = path_of(&mpiprobe(&["wrapper-path"], &[("XDG_CACHE_HOME", own.path())])?);
    assert!(ordinary.starts_with(own.path().canonicalize()?), "{}", ordinary.display());
    let name = ordinary.file_name().ok_or("no library")?;
    for cache in [".cache", "cache"] {
        let place = home.path().join(cache).join("mpiprobe");
        fs::create_dir_all(&place)?;
        symlink(&precious, place.join(name))?;
    }
    give(&home.path().join(".cache"), SECOND)?;
    give(&home.path().join("cache"), SECOND)?;
    // As an earlier sudo leaves it; whoever owns what is around it can put something else there.
    let left = home.path().join("left");
    fs::create_dir(&left)?;
    fs::set_permissions(&left, fs::Permissions::from_mode(0o700))?;
    fs::create_dir(home.path().join("runtime"))?;
    chown(home.path().join("runtime"), Some(SECOND), Some(SECOND))?;

    let (cache, runtime) = (home.path().join("cache"), home.path().join("runtime"));
    for variables in [
        vec![("HOME", home.path())],
        vec![("HOME", home.path()), ("XDG_CACHE_HOME", &cache)],
        vec![("HOME", home.path()), ("XDG_CACHE_HOME", &left)],
    ] {
        let variables = [variables, vec![("XDG_RUNTIME_DIR", runtime.as_path())]].concat();
        let output = mpiprobe(&["wrapper-path"], &variables)?;
        let path = path_of(&output);
        assert!(!path.starts_with(home.path()), "{variables:?}: {}", printed(&output));
        assert!(!output.status.success() || fs::metadata(&path)?.uid() == 0, "{}", printed(&output));
        let output = mpiprobe(&["run", "--engine", "wrapper", "--", "env"], &variables)?;
        assert!(output.status.success(), "{}", printed(&output));
        let environment = String::from_utf8_lossy(&output.stdout);
        let told =
            environment.lines().filter(|line| line.starts_with("LD_PRELOAD=") || line.starts_with("MPIPROBE_OUTPUT="));
        for line in told {
            assert!(!line.contains(&*home.path().to_string_lossy()), "{line}");
        }
    }
    assert_eq!(fs::read_to_string(&precious)?, "precious");
    assert_eq!((fs::read_dir(&left)?.count(), fs::read_dir(&runtime)?.count()), (0, 0));
    Ok(())
}

/// Every option and variable that names a file, of a copy whose file has capabilities.
/// Invariant USERS-PATHS.
fn paths() -> Result<(), Failed> {
    let (copy, place, home) = (Copy::with_capabilities()?, PrivatePlace::new()?, home_of(SECOND)?);
    let before = place.state()?;
    let own_tables = home.path().join("tables");
    fs::create_dir(&own_tables)?;
    give(home.path(), SECOND)?;
    let words = |words: &[&str]| -> Vec<OsString> { words.iter().map(Into::into).collect() };
    let with =
        |before: &[&str], path: &str, after: &[&str]| [words(before), vec![place.through(path)], words(after)].concat();
    let tables = own_tables.to_str().ok_or("no text")?;
    let mut refused = vec![
        with(&["view"], "file", &[]),
        with(&["view", "--json"], "file", &[]),
        with(&["report"], "tables", &[]),
        with(&["report", "--any-owner"], "tables", &[]),
        with(&["report", tables, "-o"], "new", &[]),
        with(&["run", "-o"], "new", &["--", "true"]),
        with(&["run", "--record"], "new", &["--", "true"]),
        with(&["run", "--"], "program", &[]),
    ];
    for engine in ["wrapper", "ebpf", "auto"] {
        refused.push(with(&["run", "--engine", engine, "--record"], "new", &["--", "true"]));
        refused.push(with(&["run", "--engine", engine, "--"], "program", &[]));
    }
    let run = |arguments: &[OsString], variables: &[(&str, OsString)]| {
        let mut command = copy.command(SECOND, arguments);
        command.env("HOME", home.path()).env_remove("XDG_CACHE_HOME").env_remove("XDG_RUNTIME_DIR");
        Ok::<_, Failed>(command.envs(variables.iter().map(|(name, value)| (name, value))).output()?)
    };
    for arguments in &refused {
        let output = run(arguments, &[])?;
        let told = String::from_utf8_lossy(&output.stderr);
        // Where engine ebpf is not possible at all, that is said before.
        let is_refused = told.contains("Permission denied")
            || (told.contains("nothing was run") && arguments.contains(&"ebpf".into()));
        assert!(!output.status.success() && is_refused, "{arguments:?}: {}", printed(&output));
    }
    // The command runs all the same, only not there.
    let output = run(&with(&["run", "--engine", "wrapper", "--output"], "tables", &["--", "true"]), &[])?;
    assert!(String::from_utf8_lossy(&output.stderr).contains("Permission denied"), "{}", printed(&output));
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        let variables = [(variable, place.through(""))];
        run(&words(&["wrapper-path"]), &variables)?;
        run(&words(&["run", "--", "true"]), &variables)?;
        run(&words(&["ps"]), &variables)?;
    }
    assert_eq!(place.state()?, before);
    Ok(())
}

fn changed_ids() -> Result<(), Failed> {
    let copy = Copy::new()?;
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(copy.path(), fs::Permissions::from_mode(mode))?;
        let output = copy.command(SECOND, ["run", "--", "true"]).output()?;
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("set-user-ID"), "{}", printed(&output));
    }
    Ok(())
}

/// `-o` as `--record`: a FIFO is not waited for either.
/// Invariant NEW-FILES.
fn new_files() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::write(path("file"), "precious")?;
    symlink(path("file"), path("link"))?;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )?;
    let run = |option: &str, file: &str, more: &[&str]| {
        let mut command = Command::new(binary()?);
        command.args(["run", "--engine", "wrapper", option]).arg(path(file)).args(more);
        Ok::<_, Failed>(command.args(["--", "sh", "-c", "echo it ran"]).output()?)
    };
    for option in ["-o", "--record"] {
        for file in ["file", "link", "fifo"] {
            let output = run(option, file, &[])?;
            assert_eq!(
                (output.status.code(), output.stdout.len()),
                (Some(1), 0),
                "{option} {file}: {}",
                printed(&output)
            );
            assert!(String::from_utf8_lossy(&output.stderr).contains("exists already"), "{}", printed(&output));
        }
    }
    assert_eq!(fs::read_to_string(path("file"))?, "precious");
    for (file, more, mode) in [("private", &[][..], 0o600), ("shared", &["--file-mode", "644"], 0o644)] {
        for option in ["-o", "--record"] {
            let file = format!("{file}{option}");
            let output = run(option, &file, more)?;
            assert_eq!(output.stdout, b"it ran\n", "{}", printed(&output));
            assert_eq!(fs::metadata(path(&file))?.mode() & 0o7777, mode, "{file}");
        }
    }
    Ok(())
}

/// What the second user has put into a directory of the first one's.
/// Invariant FILE-OF-PROCESS.
fn tables(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let tables = folder.path().join("tables");
    let job = Job::builder(mpi, program::RING).ranks(2).args(["5"]);
    let mut job = job.profiled(["--output".as_ref(), tables.as_os_str()])?.spawn()?;
    job.wait()?.success()?;
    let first = fs::read_dir(&tables)?.next().ok_or("no tables")??.path();
    let foreign = tables.join("foreign.mpiprobe");
    fs::copy(&first, &foreign)?;
    chown(&foreign, Some(SECOND), Some(SECOND))?;
    let report = |more: &[&str]| {
        let arguments = ["report".as_ref(), tables.as_os_str(), "--json".as_ref()];
        Profiler::start(arguments.into_iter().chain(more.iter().map(AsRef::as_ref)))?.wait()
    };
    let reported = report(&[])?;
    let profile = reported.profile()?;
    assert_eq!((reported.status.code(), profile.ranks.len()), (Some(3), 2), "{}", reported.printed());
    let is_named =
        |what: &String| what.contains("foreign.mpiprobe") && what.contains("65533") && what.contains("--any-owner");
    assert!(profile.incomplete_because.iter().any(is_named), "{:?}", profile.incomplete_because);
    assert_eq!(report(&["--any-owner"])?.profile()?.ranks.len(), 3);
    Ok(())
}
