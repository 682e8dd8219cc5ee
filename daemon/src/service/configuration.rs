//! What an administrator sets: one file, which root alone may have written.

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use mpiprobe_model::filter::bytes;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{SOCKET, error::ServiceError};

/// Bytes of a file; what is longer is none that a person has written.
const LONGEST: u64 = 256 << 10;

/// All of it. Whatever is missing in the file has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Configuration {
    /// Where clients find it, unless systemd listens.
    pub socket: PathBuf,
    /// As whom it runs if root starts it.
    pub user: String,
    /// Whose members see all jobs; none: root alone does.
    pub admin_group: Option<String>,
    pub quota: Quota,
}

/// What one user may have of the service, all clients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quota {
    /// Connections at once.
    pub connections: u32,
    /// Observations at once.
    pub observations: u32,
    /// Tables of these, bytes.
    #[serde(deserialize_with = "size")]
    pub tables: u64,
    /// Tables of all users, bytes.
    #[serde(deserialize_with = "size")]
    pub tables_of_all: u64,
}

impl Default for Configuration {
    fn default() -> Self {
        Self { socket: SOCKET.into(), user: "mpiprobe".into(), admin_group: None, quota: Quota::default() }
    }
}

impl Default for Quota {
    fn default() -> Self {
        Self { connections: 16, observations: 4, tables: 256 << 20, tables_of_all: 1 << 30 }
    }
}

impl Configuration {
    /// Reads a file that must be there.
    pub fn read(path: &Path) -> Result<Self, ServiceError> {
        let failed = |reason: String| ServiceError::Configuration { path: path.into(), reason };
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let state = file.metadata().map_err(|error| failed(error.to_string()))?;
        let is_ours = |user: u32| user == 0 || user == rustix::process::geteuid().as_raw();
        if !is_ours(state.uid()) || state.mode() & 0o022 != 0 {
            return Err(failed("it must belong to root, and nobody else may write it (chown root, chmod go-w)".into()));
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > LONGEST {
            return Err(failed(format!("it is longer than {LONGEST} bytes")));
        }
        toml::from_str(&text).map_err(|error| failed(error.to_string().trim_end().to_owned()))
    }

    /// The same of the file at its usual place, where there may be none.
    pub fn read_usual(path: &Path) -> Result<Self, ServiceError> {
        if path.exists() { Self::read(path) } else { Ok(Self::default()) }
    }
}

/// A number of bytes, or text such as `64MiB`.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Number(u64),
        Text(String),
    }
    match Size::deserialize(deserializer)? {
        Size::Number(number) => Ok(number),
        Size::Text(text) => bytes(&text).ok_or_else(|| D::Error::custom("a size, such as 64MiB")),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn read(text: &str, mode: u32) -> Result<Configuration, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Configuration::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_missing_has_its_default() {
        assert_eq!(read("", 0o644).unwrap(), Configuration::default());
        let set = read("admin-group = \"staff\"\n[quota]\ntables = \"64MiB\"\nobservations = 2\n", 0o644).unwrap();
        assert_eq!(
            (set.admin_group.as_deref(), set.quota.tables, set.quota.observations),
            (Some("staff"), 64 << 20, 2)
        );
        assert_eq!(set.quota.connections, Quota::default().connections);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let told = read("admin-grup = \"staff\"\n", 0o644).unwrap_err();
        assert!(told.contains("service.toml") && told.contains("admin-grup") && told.contains("line 1"), "{told}");
        assert!(read("[quota]\ntables = \"much\"\n", 0o644).unwrap_err().contains("such as 64MiB"));
    }

    #[test]
    fn a_file_that_others_may_write_is_not_believed() {
        assert!(read("", 0o666).unwrap_err().contains("nobody else may write it"));
    }

    #[test]
    fn it_is_passed_on_as_it_is() {
        let set = Configuration { admin_group: Some("staff".into()), ..Configuration::default() };
        let passed = serde_json::from_str(&serde_json::to_string(&set).unwrap()).unwrap();
        assert_eq!(set, passed);
    }
}
