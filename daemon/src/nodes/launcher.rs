//! How an agent comes to a node.

use std::{path::PathBuf, process::Stdio};

use tokio::process::Command;

use super::NodesError;

/// What stands for the node's name in a command.
const HOST: &str = "{host}";

/// What starts a command on another node as the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// OpenSSH's client.
    Ssh,
    /// Slurm, by a step beside those of the job.
    Srun,
    /// Words of a command, behind which the agent's are put.
    Command(Vec<String>),
}

/// All that it takes to start an agent on another node, or by an agent on a further one.
#[derive(Clone, Debug)]
pub struct Means {
    pub launcher: Launcher,
    /// mpiprobe's path there.
    pub program: PathBuf,
    /// Slurm's number of the job, if it is one of its.
    pub slurm_job: Option<String>,
    /// How much agents say besides, as for the front end.
    pub verbose: u8,
}

/// A launcher as it is typed.
pub fn launcher(text: &str) -> Result<Launcher, String> {
    match text {
        "ssh" => Ok(Launcher::Ssh),
        "srun" => Ok(Launcher::Srun),
        command => {
            let words = shlex::split(command).filter(|words| !words.is_empty());
            let words =
                words.ok_or("it is ssh, srun, or a command; this one ends inside quotation marks, or has no word")?;
            if words.iter().any(|word| word.contains(HOST)) {
                Ok(Launcher::Command(words))
            } else {
                Err(format!("it is ssh, srun, or a command in which {HOST} stands for the node's name"))
            }
        }
    }
}

impl Launcher {
    /// As it would be typed.
    fn text(&self) -> Result<String, NodesError> {
        match self {
            Self::Ssh => Ok("ssh".into()),
            Self::Srun => Ok("srun".into()),
            Self::Command(words) => shlex::try_join(words.iter().map(String::as_str)).map_err(|_| NodesError::Path),
        }
    }
}

impl Means {
    /// The agent's own words. How it may start others is said there and not in what it is asked for, so that whoever permits a key for
    /// one command does not permit others by that.
    fn agent(&self, starts_others: bool) -> Result<Vec<String>, NodesError> {
        let program = self.program.to_str().ok_or(NodesError::Path)?;
        let mut words = vec![program.to_owned(), "agent".into()];
        words.extend(std::iter::repeat_n("-v".to_owned(), self.verbose.into()));
        if starts_others {
            words.extend(["--launcher".into(), self.launcher.text()?, "--agent".into(), program.to_owned()]);
            words.extend(self.slurm_job.iter().flat_map(|job| ["--slurm-job".into(), job.clone()]));
        }
        Ok(words)
    }

    /// The command that runs `program agent` on a node.
    ///
    /// It is in a process group of its own, so that Ctrl-C does not reach it before the agent is asked for its last word.
    pub(super) fn command(&self, host: &str, starts_others: bool) -> Result<Command, NodesError> {
        let agent = self.agent(starts_others)?;
        let mut command = match &self.launcher {
            Launcher::Ssh => {
                let mut command = Command::new("ssh");
                // Whoever is asked for a password waits for ever; that there was none is said at once.
                command.args(["-T", "-x", "-oBatchMode=yes", "-oConnectTimeout=4", "-oServerAliveInterval=15"]);
                // The user's shell gets it as one line.
                let line = shlex::try_join(agent.iter().map(String::as_str)).map_err(|_| NodesError::Path)?;
                command.args(["--", host]).arg(line);
                command
            }
            Launcher::Srun => {
                let job = self.slurm_job.as_ref().ok_or(NodesError::NoSlurmJob)?;
                let mut command = Command::new("srun");
                // The job may have taken all that it has been given: the agent wants no part of that for itself.
                command.args(["--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none"]);
                command.args(["--mpi=none", "--immediate=4", "--kill-on-bad-exit=1"]);
                command.arg(format!("--jobid={job}")).arg(format!("--nodelist={host}"));
                command.arg("--").args(agent);
                command
            }
            Launcher::Command(words) => {
                let mut words = words.iter().map(|word| word.replace(HOST, host));
                let mut command = Command::new(words.next().unwrap_or_default());
                command.args(words).args(agent);
                command
            }
        };
        command.env("SSH_ASKPASS_REQUIRE", "never");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(launcher: Launcher, program: &str, slurm_job: Option<&str>) -> Means {
        Means { launcher, program: program.into(), slurm_job: slurm_job.map(str::to_owned), verbose: 1 }
    }

    fn words(launcher: &str, host: &str, program: &str) -> Vec<String> {
        words_of(launcher, host, program, false)
    }

    fn words_of(launcher: &str, host: &str, program: &str, starts_others: bool) -> Vec<String> {
        let means = means(super::launcher(launcher).unwrap(), program, Some("4711"));
        let command = means.command(host, starts_others).unwrap();
        let command = command.as_std();
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_host_is_one_word_and_no_option() {
        let ssh = words("ssh", "n1", "/opt/my tools/mpiprobe");
        assert_eq!(ssh[ssh.len() - 3..], ["--", "n1", "'/opt/my tools/mpiprobe' agent -v"]);
        assert!(ssh.contains(&"-oBatchMode=yes".to_owned()));
        let srun = words("srun", "n1", "/usr/bin/mpiprobe");
        assert_eq!(srun[srun.len() - 5..], ["--nodelist=n1", "--", "/usr/bin/mpiprobe", "agent", "-v"]);
        assert!(srun.contains(&"--jobid=4711".to_owned()));
        let own = words("sh -c 'exec \"$@\"' on-{host} {host}", "n1", "/usr/bin/mpiprobe");
        assert_eq!(own, ["sh", "-c", "exec \"$@\"", "on-n1", "n1", "/usr/bin/mpiprobe", "agent", "-v"]);
    }

    /// A launcher that is passed on is the same one again, however often.
    #[test]
    fn who_starts_others_is_told_how() {
        let ssh = words_of("ssh", "n1", "/opt/my tools/mpiprobe", true);
        let line = "'/opt/my tools/mpiprobe' agent -v --launcher ssh --agent '/opt/my tools/mpiprobe' --slurm-job 4711";
        assert_eq!(ssh.last().map(String::as_str), Some(line));
        let own = "sh -c 'exec \"$@\"' on-{host} {host}";
        let words = words_of(own, "n1", "/m", true);
        let place = words.iter().position(|word| word == "--launcher").unwrap();
        assert_eq!(launcher(&words[place + 1]), launcher(own));
    }

    #[test]
    fn what_is_no_launcher() {
        for (wrong, why) in [("rsh", "{host}"), ("", "no word"), ("ssh '{host}", "quotation")] {
            let said = launcher(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong:?}: {said}");
        }
        let without = means(Launcher::Srun, "/m", None).command("n1", false).unwrap_err();
        assert_eq!(without.to_string(), "--launcher srun needs the Slurm job's number: --job 4711");
    }
}
