//! Names of nodes: those that are typed, and those that Slurm tells.

use std::{process::Stdio, time::Duration};

use mpiprobe_discover::printable;
use tokio::{process::Command, time::timeout};

use super::NodesError;

/// Longest name (RFC 1035: 253 characters), with a user's before it.
const LONGEST: usize = 320;
/// For Slurm's tools.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node's name as somebody has typed it, perhaps with a user's before it. It cannot be taken for an option or for words of a shell.
pub fn host(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@%[]-".contains(&byte);
    if text.is_empty() {
        return Err("a name is empty".into());
    }
    if text.len() > LONGEST || text.starts_with('-') || !text.bytes().all(is_plain) {
        return Err(format!("{} is no name of a node", printable(text.as_bytes())));
    }
    Ok(text.to_owned())
}

/// The nodes of a Slurm job. Inside it Slurm has told already.
pub async fn nodes_of_slurm_job(job: &str, list_here: Option<String>) -> Result<Vec<String>, NodesError> {
    let list = match list_here {
        Some(list) => list,
        None => asked("squeue", &["--noheader", "--format=%N", "--jobs", job], job).await?,
    };
    let list = list.trim();
    if list.is_empty() {
        return Err(NodesError::Unknown { tool: "squeue", job: job.into(), said: "it does not run".into() });
    }
    let names = asked("scontrol", &["show", "hostnames", list], job).await?;
    let unfit = |said| NodesError::Unknown { tool: "scontrol", job: job.into(), said };
    names.split_whitespace().map(|name| host(name).map_err(unfit)).collect()
}

async fn asked(tool: &'static str, arguments: &[&str], job: &str) -> Result<String, NodesError> {
    let mut command = Command::new(tool);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.map_err(|_| NodesError::Silent { tool })?;
    let output = output.map_err(|source| NodesError::NoTool { tool, source })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = printable(output.stderr.trim_ascii());
        Err(NodesError::Unknown { tool, job: job.into(), said })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_steer_nothing() {
        for good in ["n1", "node-7.cluster.example", "alice@n1", "10.0.0.1", "[fe80::1%eth0]"] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for bad in ["", "-oProxyCommand=reboot", "a b", "$(reboot)", "a;b", "a`b`", "a/b", "\u{1b}[2J", "a'b", "a\nb"] {
            assert!(host(bad).is_err(), "{bad:?}");
        }
        assert!(host(&"x".repeat(LONGEST + 1)).is_err());
        assert_eq!(host("\u{1b}[2J").unwrap_err(), "\\u{1b}[2J is no name of a node");
    }
}
