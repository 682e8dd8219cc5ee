//! A machine of a namespace's own, whose first process is systemd, with the node service's units as the package lays them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::bed::{self, Bed, entering, entering_as, sources, wait_until};
use crate::profiler::binary;
use crate::{Ended, Profiler, ProfilerError};

/// Ended when dropped.
#[derive(Debug)]
pub struct Systemd {
    bed: Bed,
    user: u32,
}

impl Systemd {
    /// Boots it. Its one ordinary user has this number.
    pub fn boot(user: u32) -> Result<Self, ProfilerError> {
        let arguments = [sources().into_os_string(), binary()?.into(), user.to_string().into()];
        let booted = Self { bed: Bed::make("systemd.sh", arguments)?, user };
        // Until it is there, nobody can ask it.
        wait_until("systemd runs", || Ok(booted.systemctl(["is-system-running"])?.stdout.trim_ascii() == b"running"))?;
        Ok(booted)
    }

    /// What executes what follows there, as root.
    pub fn command<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Command {
        let mut command = bed::command(&entering(self.bed.first()));
        command.args(words);
        command
    }

    /// The words that execute what follows there as the ordinary user.
    pub fn as_user(&self) -> Vec<String> {
        entering_as(self.bed.first(), self.user)
    }

    /// `mpiprobe ARGUMENTS` as that user, who has no rights.
    pub fn client<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = bed::command(&self.as_user());
        command.arg("/usr/bin/mpiprobe").args(arguments);
        command
    }

    /// The same to its end.
    pub fn asked<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<Ended, ProfilerError> {
        Profiler::spawn(self.client(arguments))?.wait()
    }

    pub fn systemctl<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<Output, ProfilerError> {
        let mut command = self.command(["systemctl"]);
        command.args(arguments).output().map_err(ProfilerError::system("systemctl"))
    }

    /// A property of the service.
    pub fn property(&self, name: &str) -> Result<String, ProfilerError> {
        let output = self.systemctl(["show", "--value", "--property", name, "mpiprobe.service"])?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A file there, written anew.
    pub fn write(&self, path: &str, content: &str) -> Result<(), ProfilerError> {
        let path = Path::new("/proc").join(self.bed.first().to_string()).join("root").join(path);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&path, content)).map_err(ProfilerError::system("writing a file of a bed"))
    }

    /// What the service has said, for messages.
    pub fn journal(&self) -> String {
        self.journal_of("mpiprobe.service")
    }

    /// What a unit has said.
    pub fn journal_of(&self, unit: &str) -> String {
        let output = self.command(["journalctl", "--no-pager", "--unit", unit]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }
}
