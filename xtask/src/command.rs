//! Running other programs, in the open.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};

/// The top folder of the clone that this xtask belongs to.
pub(crate) fn workspace() -> PathBuf {
    // Set by `cargo run`; the folder at compile time serves whoever starts the binary by hand.
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}

/// Where compiled C programs go: next to what cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    workspace().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that runs us, in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}

/// Lets cargo start what it has built by sudo, unless we are root. The build itself stays the user's.
pub(crate) fn run_as_root(cargo: &mut Command) {
    if !is_root() {
        cargo.args(["--config", "target.'cfg(unix)'.runner=['sudo','--preserve-env']"]);
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Is there a program of that name in `PATH`?
pub(crate) fn is_in_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// Shows the command, runs it and hands its status over.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    eprintln!("$ {}", shown(command));
    command.status().with_context(|| format!("{} cannot be started", command.get_program().display()))
}

/// Like [`status`], for commands that have to succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Like [`run`], for those of which nobody wants to see more than why they failed.
pub(crate) fn quietly(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    if !output.status.success() {
        bail!("`{}` failed ({}): {}", shown(command), output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The command as one could type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    // The path of cargo says nothing that a reader wants to know.
    let program = program.file_name().filter(|name| *name == "cargo").unwrap_or(program.as_os_str());
    let words: Vec<String> = std::iter::once(program).chain(command.get_args()).map(quoted).collect();
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An exit code for ourselves from another's status, as a shell would have it.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::shown;

    #[test]
    fn commands_are_shown_as_one_would_type_them() {
        let mut command = Command::new("/opt/rust/bin/cargo");
        command.args(["test", "-p", "x", "--", "a b", "it's", ""]);
        assert_eq!(shown(&command), r"cargo test -p x -- 'a b' 'it'\''s' ''");
        assert_eq!(shown(&Command::new("/usr/bin/mpirun")), "/usr/bin/mpirun");
    }
}
