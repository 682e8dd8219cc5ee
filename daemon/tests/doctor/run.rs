//! Runs the binary and reads its report.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use libtest_mimic::Failed;
use serde_json::Value;

pub(crate) const MPIPROBE: &str = env!("CARGO_BIN_EXE_mpiprobe");

/// A user without any right, nobody on Debian.
pub(crate) const NOBODY: &str = "65534";

/// A report with its exit status.
pub(crate) struct Report {
    pub(crate) status: i32,
    json: Value,
}

impl Report {
    /// Of the doctor with these arguments, as this user.
    pub(crate) fn of(arguments: &[&str]) -> Result<Self, Failed> {
        Self::from(Command::new(MPIPROBE).args(["doctor", "--json"]).args(arguments))
    }

    /// As a user without rights.
    pub(crate) fn as_nobody(arguments: &[&str]) -> Result<Self, Failed> {
        // The build directory may be closed to others.
        let folder = tempfile::tempdir()?;
        let copy = folder.path().join("mpiprobe");
        fs::copy(MPIPROBE, &copy)?;
        for path in [folder.path(), copy.as_path()] {
            fs::set_permissions(path, Permissions::from_mode(0o755))?;
        }
        let ids = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        Self::from(Command::new("setpriv").args(ids).arg(copy).args(["doctor", "--json"]).args(arguments))
    }

    pub(crate) fn from(command: &mut Command) -> Result<Self, Failed> {
        let Output { status, stdout, stderr } = command.output()?;
        let json = serde_json::from_slice(&stdout)
            .map_err(|error| format!("{error} in {stdout:?}, standard error {}", String::from_utf8_lossy(&stderr)))?;
        let report = Self { status: status.code().ok_or("killed by a signal")?, json };
        report.is_consistent()?;
        Ok(report)
    }

    /// A member of the report itself.
    fn member(&self, name: &str) -> &Value {
        self.json.get(name).unwrap_or(&Value::Null)
    }

    /// Exit status and verdict tell the same, and no check is there twice.
    fn is_consistent(&self) -> Result<(), Failed> {
        assert_eq!(self.member("schema"), "mpiprobe.doctor/1");
        let expected = match self.member("verdict").as_str() {
            Some("ok" | "info") => 0,
            Some("limited") => 1,
            Some("failed") => 2,
            verdict => return Err(format!("verdict {verdict:?}").into()),
        };
        assert_eq!(self.status, expected);
        let mut names: Vec<&Value> = self.checks().map(|check| &check["name"]).collect();
        let all = names.len();
        names.sort_by_key(|name| name.as_str());
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
        Ok(())
    }

    fn checks(&self) -> impl Iterator<Item = &Value> {
        ["system", "process", "service"].into_iter().filter_map(|part| self.member(part).as_array()).flatten()
    }

    /// Whether there is a check of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.checks().any(|check| check["name"] == name)
    }

    pub(crate) fn check(&self, name: &str) -> Result<&Value, Failed> {
        let found = self.checks().find(|check| check["name"] == name);
        found.ok_or_else(|| format!("no check {name} in {:#}", self.json).into())
    }

    pub(crate) fn verdict(&self, name: &str) -> Result<&str, Failed> {
        Ok(self.check(name)?["verdict"].as_str().unwrap_or_default())
    }

    pub(crate) fn finding(&self, name: &str) -> Result<&str, Failed> {
        Ok(self.check(name)?["finding"].as_str().unwrap_or_default())
    }

    pub(crate) fn fix(&self, name: &str) -> Result<&str, Failed> {
        Ok(self.check(name)?["fix"].as_str().unwrap_or_default())
    }

    pub(crate) fn data(&self, name: &str) -> Result<&Value, Failed> {
        Ok(&self.check(name)?["data"])
    }
}
