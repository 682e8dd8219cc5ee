//! What a launcher has to be told so that ranks on all nodes get the variables.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Stdio},
};

use mpiprobe_discover::files::with_callers_rights;

use super::environment::Preload;

/// Launchers that pass only those variables to other nodes which they are told to: Open MPI's, under any name.
const OPEN_MPI_NAMES: [&str; 5] = ["mpirun", "mpiexec", "orterun", "prterun", "oshrun"];
/// Options of launchers that are followed by the name of a variable and its value.
const SETTING_OPTIONS: [&str; 4] = ["-genv", "-env", "--genv", "--env"];

/// The command with what its launcher needs to pass the variables on, if it needs anything. Launchers of the MPICH family and Slurm's
/// pass on everything unless they are told otherwise; what they are told to preload is preloaded after the wrapper.
pub fn exporting(command: &[OsString], preload: &Preload) -> Vec<OsString> {
    let Some((program, arguments)) = command.split_first() else { return Vec::new() };
    let (arguments, told) = completed(arguments, preload);
    let mut all = vec![program.clone()];
    if is_open_mpi(program) {
        let names = preload.variables.iter().map(|(name, _)| *name).filter(|name| !told.contains(name));
        all.extend(names.flat_map(|name| ["-x".into(), name.into()]));
    }
    all.extend(arguments);
    if base_name(program) == "srun" {
        for argument in &mut all {
            export(argument, preload);
        }
    }
    all
}

/// Completes what the arguments set the job's variables to, and tells which variables they set.
fn completed(arguments: &[OsString], preload: &Preload) -> (Vec<OsString>, Vec<&'static str>) {
    let mut told = Vec::new();
    // The variable whose value comes next.
    let mut expected: Option<&'static str> = None;
    let mut previous: &OsStr = OsStr::new("");
    let variable = |name: &OsStr| preload.variables.iter().map(|(known, _)| *known).find(|known| name == *known);
    let changed = arguments.iter().map(|argument| {
        let split = argument.as_bytes().iter().position(|&byte| byte == b'=');
        let assigned = split
            .and_then(|at| argument.as_bytes().split_at_checked(at))
            .and_then(|(name, value)| Some((variable(OsStr::from_bytes(name))?, OsStr::from_bytes(value.get(1..)?))));
        let set = expected.take().map(|name| (name, argument.as_os_str())).or(assigned);
        let named = variable(argument);
        expected = named.filter(|_| SETTING_OPTIONS.iter().any(|option| previous == *option));
        told.extend(set.map(|(name, _)| name).or(named.filter(|_| previous == "-x")));
        previous = argument;
        let Some((name, value)) = set else { return argument.clone() };
        let Some(value) = preload.completed(name, value) else { return argument.clone() };
        let mut changed = OsString::new();
        if assigned.is_some() {
            changed.push(name);
            changed.push("=");
        }
        changed.push(value);
        changed
    });
    (changed.collect(), told)
}

/// Adds the variables' names to Slurm's list of what is passed on, if there is one.
fn export(argument: &mut OsString, preload: &Preload) {
    let Some(list) = argument.to_str().and_then(|argument| argument.strip_prefix("--export=")) else { return };
    if list.split(',').any(|item| item == "ALL") {
        return;
    }
    let listed = list.split(',').filter(|item| *item != "NONE" && !item.is_empty());
    let names: Vec<&str> = listed.chain(preload.variables.iter().map(|(name, _)| *name)).collect();
    *argument = format!("--export={}", names.join(",")).into();
}

/// Whether a program is Open MPI's launcher, as it says itself.
fn is_open_mpi(program: &OsStr) -> bool {
    let name = base_name(program);
    // mpirun.openmpi, as Debian has it, too.
    let is_called_so =
        |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if !OPEN_MPI_NAMES.iter().any(|known| is_called_so(known)) {
        return false;
    }
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let version = with_callers_rights(|| asked.output());
    version.is_ok_and(|output| is_open_mpis_version(&String::from_utf8_lossy(&output.stdout)))
}

fn base_name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_open_mpis_version(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    ["(Open MPI)", "(OpenRTE)", "prterun", "PRRTE"].iter().any(|mark| first.contains(mark))
}

#[cfg(test)]
mod tests {
    use mpiprobe_functions::FunctionSet;

    use super::*;

    fn preload() -> Preload {
        Preload::new(Path::new("/w.so"), Path::new("/tables"), &FunctionSet::EMPTY, false)
    }

    fn told(command: &[&str]) -> Vec<String> {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        exporting(&command, &preload()).into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn launchers_are_known_by_what_they_say() {
        assert!(is_open_mpis_version("mpirun (Open MPI) 4.1.4\n\nReport bugs to"));
        assert!(is_open_mpis_version("mpirun (Open MPI) 5.0.11"));
        assert!(is_open_mpis_version("prterun (PRRTE) 3.0.7"));
        assert!(!is_open_mpis_version("HYDRA build details:\n    Version: 4.0.2"));
        assert!(!is_open_mpis_version("Intel(R) MPI Library for Linux* OS"));
    }

    #[test]
    fn what_is_no_launcher_stays_as_it_is() {
        assert_eq!(told(&["./ring", "-n", "3"]), ["./ring", "-n", "3"]);
        assert_eq!(told(&["srun", "--export=ALL", "./ring"]), ["srun", "--export=ALL", "./ring"]);
        assert!(told(&[]).is_empty());
    }

    #[test]
    fn what_is_preloaded_already_comes_after_the_wrapper() {
        let genv = ["x", "-genv", "LD_PRELOAD", "/a.so", "./ring"];
        assert_eq!(told(&genv), ["x", "-genv", "LD_PRELOAD", "/w.so:/a.so", "./ring"]);
        assert_eq!(told(&["env", "LD_PRELOAD=/a.so", "./ring"]), ["env", "LD_PRELOAD=/w.so:/a.so", "./ring"]);
        let exported = ["x", "-x", "LD_PRELOAD=/a.so"].map(OsString::from);
        assert_eq!(completed(&exported, &preload()).1, ["LD_PRELOAD"]);
    }

    #[test]
    fn options_of_sanitizers_are_completed_wherever_they_are_set() {
        let set = ["x", "-x", "ASAN_OPTIONS=detect_leaks=0", "-genv", "ASAN_OPTIONS", "a=1", "./ring"];
        let complete = ["x", "-x", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0", "-genv", "ASAN_OPTIONS"];
        assert_eq!(told(&set), [&complete[..], &["a=1:verify_asan_link_order=0", "./ring"]].concat());
    }

    #[test]
    fn slurm_passes_on_what_it_is_told() {
        let names = "LD_PRELOAD,ASAN_OPTIONS,MPIPROBE_OUTPUT,MPIPROBE_FUNCTIONS";
        assert_eq!(told(&["srun", "--export=NONE", "a"]), ["srun", &format!("--export={names}"), "a"]);
        assert_eq!(told(&["/bin/srun", "--export=A", "a"]), ["/bin/srun", &format!("--export=A,{names}"), "a"]);
    }
}
