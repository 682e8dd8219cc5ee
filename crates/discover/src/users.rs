//! Names of users, from /etc/passwd alone: NSS would load other people's libraries into a privileged process, and ask
//! the network.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use rustix::fs::CWD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{privileged::is_apart, read::read_at, text::printable};

/// A user as shown to people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct User {
    pub id: u32,
    /// The login name, or the number if that is not known.
    pub name: String,
}

/// The users of this machine that /etc/passwd names.
#[derive(Debug, Default)]
pub struct Users {
    names: HashMap<u32, String>,
    homes: HashMap<u32, PathBuf>,
    /// User and group by name.
    ids: HashMap<String, (u32, u32)>,
}

/// What another process has read, if this one opens nothing.
static GIVEN: RwLock<Vec<u8>> = RwLock::new(Vec::new());

/// Who has the rights says what is in `/etc/passwd` now.
pub fn tell(content: Vec<u8>) {
    *GIVEN.write().unwrap_or_else(PoisonError::into_inner) = content;
}

impl Users {
    /// At most this much of the file is read, in bytes.
    const LIMIT: usize = 16 << 20;

    /// Reads `/etc/passwd`; without it every user is a number.
    pub fn read() -> Self {
        if is_apart() {
            return Self::parse(&GIVEN.read().unwrap_or_else(PoisonError::into_inner));
        }
        Self::read_from(Path::new("/etc/passwd"))
    }

    fn read_from(path: &Path) -> Self {
        let Some(path) = path.to_str() else { return Self::default() };
        read_at(CWD, path, Self::LIMIT).map(|content| Self::parse(&content.bytes)).unwrap_or_default()
    }

    /// Parses passwd(5); of two names for one number the first counts, as for getpwuid(3).
    pub fn parse(content: &[u8]) -> Self {
        let mut users = Self::default();
        for line in content.split(|byte| *byte == b'\n') {
            let mut fields = line.split(|byte| *byte == b':');
            let (Some(name), _, Some(id)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let number = |field: &[u8]| std::str::from_utf8(field).ok().and_then(|id| id.parse().ok());
            if let (Some(id), false) = (number(id), name.is_empty()) {
                users.names.entry(id).or_insert_with(|| printable(name));
                if let (Some(group), Ok(name)) = (fields.next().and_then(number), std::str::from_utf8(name)) {
                    users.ids.entry(name.to_owned()).or_insert((id, group));
                }
                if let Some(home) = fields.nth(1).filter(|home| home.starts_with(b"/")) {
                    users.homes.entry(id).or_insert_with(|| OsStr::from_bytes(home).into());
                }
            }
        }
        users
    }

    /// Where a user's files are, as the system has it.
    pub fn home(&self, id: u32) -> Option<PathBuf> {
        self.homes.get(&id).cloned()
    }

    /// The numbers of a user of this name and of its group.
    pub fn ids(&self, name: &str) -> Option<(u32, u32)> {
        self.ids.get(name).copied()
    }

    pub fn user(&self, id: u32) -> User {
        User { id, name: self.names.get(&id).cloned().unwrap_or_else(|| id.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_numbers() {
        let users =
            Users::parse(b"# comment\nroot:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\n+nis\n:x:5:\nalice:x:1000:");
        assert_eq!(users.user(0).name, "root");
        assert_eq!(users.user(1000), User { id: 1000, name: "alice".to_owned() });
        assert_eq!(users.user(5).name, "5");
        assert_eq!((users.home(0), users.home(1000)), (Some("/root".into()), None));
        assert_eq!((users.ids("root"), users.ids("alice"), users.ids("nobody")), (Some((0, 0)), None, None));
        assert_eq!(users.user(4_000_000_000).name, "4000000000");
    }

    #[test]
    fn this_machine_has_a_root() {
        assert_eq!(Users::read().user(0).name, "root");
        assert_eq!(Users::read_from(Path::new("/nowhere")).user(0).name, "0");
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = Users::parse(&bytes).user(0);
        }
    }
}
