//! Finds out why what the user named is no MPI process.

use super::{
    access::may_trace,
    job::Job,
    launcher::is_launcher,
    mpi_process::{MpiProcess, Search},
    nearest::nearest,
    process::Process,
    process_error::ProcessError,
    recognise::Recognise,
    scan::{Finding, Scanner},
    select_error::SelectError,
    text::{base_name, printable},
};

/// Why no MPI process has this name.
pub(crate) fn explain_name<R: Recognise + Send>(
    scanner: &mut Scanner<R>,
    name: &[u8],
    examined: usize,
    mpi: &[MpiProcess],
    jobs: Vec<Job>,
) -> SelectError {
    let pids = match scanner.root().pids() {
        Ok(pids) => pids,
        Err(error) => return error.into(),
    };
    let mut not_mpi: Vec<u32> = Vec::new();
    let mut last_search = Search::default();
    let mut refused = None;
    let mut names: Vec<String> = Vec::new();
    let own = std::process::id();
    for pid in pids.into_iter().filter(|pid| *pid != own) {
        let Ok(process) = Process::open(scanner.root(), pid) else { continue };
        let is_open = may_trace(scanner.caller(), &process).is_ok();
        // Of strangers, somebody from elsewhere is told nothing.
        if !is_open && scanner.caller().within.is_some() {
            continue;
        }
        let Ok(known) = names_of(&process, is_open) else { continue };
        if known.iter().any(|known| known == name) {
            match scanner.inspect(pid) {
                Ok(Finding::NotMpi(_, search)) => {
                    not_mpi.push(pid);
                    last_search = search;
                }
                Ok(Finding::Launcher(_)) => return launcher_error(pid, name, jobs),
                Ok(Finding::Refused(refusal)) => refused = Some(refusal),
                Ok(Finding::Mpi(_)) => return SelectError::JustAppeared { pid },
                Err(error) if !error.is_gone() => return error.into(),
                Ok(Finding::Own | Finding::KernelThread) | Err(_) => {}
            }
        } else if is_open && !known.iter().any(|known| is_launcher(known)) {
            // Nobody is told what strangers run.
            names.extend(known.iter().map(|known| printable(known)));
        }
    }
    if !not_mpi.is_empty() {
        return not_mpi_error(name, not_mpi, &last_search, jobs);
    }
    if let Some(refusal) = refused {
        return refusal.into();
    }
    let name = printable(name);
    // A program that uses MPI is meant rather than one that does not.
    let running = mpi.iter().flat_map(MpiProcess::names).map(printable).collect::<Vec<_>>();
    let mut suggestions = nearest(&name, running.iter().map(String::as_str));
    if suggestions.is_empty() {
        suggestions = nearest(&name, names.iter().map(String::as_str));
    }
    SelectError::NoSuchName { name, examined, nearest: suggestions, jobs }
}

/// Why this is not the pid of an MPI process.
pub(crate) fn explain_pid<R: Recognise + Send>(
    scanner: &mut Scanner<R>,
    pid: u32,
    mpi: &[MpiProcess],
    jobs: Vec<Job>,
) -> SelectError {
    match scanner.inspect(pid) {
        Ok(Finding::Mpi(_)) => SelectError::JustAppeared { pid },
        Ok(Finding::Own) => SelectError::Own { pid },
        Ok(Finding::KernelThread) => SelectError::KernelThread { pid },
        Ok(Finding::Refused(refusal)) => refusal.into(),
        Ok(Finding::Launcher(process)) => launcher_error(pid, &process.comm().unwrap_or_default(), jobs),
        Ok(Finding::NotMpi(process, search)) => {
            let name = process.comm().unwrap_or_default();
            not_mpi_error(&name, vec![pid], &search, jobs)
        }
        Err(error @ ProcessError::NoSuchProcess { .. }) => {
            match mpi.iter().find(|process| process.namespace_pid == Some(pid)) {
                Some(process) => SelectError::InsideContainer { pid, outside: process.pid() },
                None => error.into(),
            }
        }
        Err(error) => error.into(),
    }
}

fn launcher_error(pid: u32, name: &[u8], jobs: Vec<Job>) -> SelectError {
    let started: Vec<_> =
        jobs.iter().filter(|job| job.launcher.as_ref().is_some_and(|launcher| launcher.pid == pid)).cloned().collect();
    SelectError::IsLauncher { name: printable(name), pid, jobs: if started.is_empty() { jobs } else { started } }
}

fn not_mpi_error(name: &[u8], pids: Vec<u32>, search: &Search, jobs: Vec<Job>) -> SelectError {
    let mut notes: Vec<String> = search.unopened.iter().take(3).map(ToString::to_string).collect();
    if search.incomplete {
        notes.push("its list of mapped files could not be read to the end".to_owned());
    }
    if search.anonymous_text >= 1 << 20 {
        let mebibytes = search.anonymous_text >> 20;
        notes.push(format!(
            "{mebibytes} MiB of its executable memory belong to no file: generated code, or text copied to huge pages, \
             which cannot be probed"
        ));
    }
    SelectError::NotMpi { name: printable(name), pids, files: search.examined, notes, jobs }
}

/// What a process may be called: of a stranger's only what everybody may read, which is not its executable's path.
fn names_of(process: &Process, is_open: bool) -> Result<Vec<Vec<u8>>, ProcessError> {
    let mut names = vec![process.comm()?];
    let path = if is_open { process.executable().map(|executable| executable.path) } else { Ok(Vec::new()) };
    let executable = path.map(|path| base_name(&path).to_vec()).unwrap_or_default();
    names.extend(process.command_line()?.names(&executable));
    names.push(executable);
    Ok(names)
}
