//! What a launcher has to be told so that ranks on all nodes get the variables.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Stdio},
};

use super::environment::{PRELOAD_VARIABLE, Preload};

/// Launchers that pass only those variables to other nodes which they are told to: Open MPI's, under any name.
const OPEN_MPI_NAMES: [&str; 5] = ["mpirun", "mpiexec", "orterun", "prterun", "oshrun"];
/// Options of launchers that are followed by the name of a variable and its value.
const SETTING_OPTIONS: [&str; 4] = ["-genv", "-env", "--genv", "--env"];

/// The command with what its launcher needs to pass the variables on, if it needs anything. Launchers of the MPICH family and Slurm's
/// pass on everything unless they are told otherwise; what they are told to preload is preloaded after the wrapper.
pub fn exporting(command: &[OsString], preload: &Preload) -> Vec<OsString> {
    let Some((program, arguments)) = command.split_first() else { return Vec::new() };
    let (arguments, is_told) = with_wrapper_first(arguments, preload);
    let mut all = vec![program.clone()];
    if is_open_mpi(program) {
        let names =
            preload.variables.iter().map(|(name, _)| *name).filter(|name| !(is_told && *name == PRELOAD_VARIABLE));
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

/// Puts the wrapper in front of what the arguments set the variable to; tells whether they set it.
fn with_wrapper_first(arguments: &[OsString], preload: &Preload) -> (Vec<OsString>, bool) {
    let mut is_told = false;
    let mut is_value = false;
    let mut previous: &OsStr = OsStr::new("");
    let changed = arguments.iter().map(|argument| {
        let assigned =
            argument.as_bytes().strip_prefix(PRELOAD_VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        let value = if is_value { Some(argument.as_bytes()) } else { assigned };
        let is_name = argument == PRELOAD_VARIABLE;
        is_value = is_name && SETTING_OPTIONS.iter().any(|option| previous == *option);
        is_told |= value.is_some() || (is_name && previous == "-x");
        previous = argument;
        let Some(value) = value else { return argument.clone() };
        let mut changed = OsString::new();
        if assigned.is_some() {
            changed.push(PRELOAD_VARIABLE);
            changed.push("=");
        }
        changed.push(&preload.library);
        changed.push(":");
        changed.push(OsStr::from_bytes(value));
        changed
    });
    (changed.collect(), is_told)
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
    let version = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
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
        assert!(with_wrapper_first(&exported, &preload()).1);
    }

    #[test]
    fn slurm_passes_on_what_it_is_told() {
        let names = "LD_PRELOAD,MPIPROBE_OUTPUT,MPIPROBE_FUNCTIONS";
        assert_eq!(told(&["srun", "--export=NONE", "a"]), ["srun", &format!("--export={names}"), "a"]);
        assert_eq!(told(&["/bin/srun", "--export=A", "a"]), ["/bin/srun", &format!("--export=A,{names}"), "a"]);
    }
}
