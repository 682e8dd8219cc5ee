//! `/proc/PID/environ`: the environment a process was started with.

/// An environment as exec(2) passed it; later setenv(3) calls do not show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Environment {
    /// At most this much of an environment is read, in bytes: ranks' variables come first or within a few KiB.
    pub const LIMIT: usize = 1 << 20;

    /// Takes the file's content; `truncated` says that it went on.
    pub fn new(bytes: Vec<u8>, truncated: bool) -> Self {
        Self { bytes, truncated }
    }

    /// Whether the environment was longer than [`Self::LIMIT`], so that an absent variable may exist.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Name and value of each variable, in order; entries without `=` are left out.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let whole = match memchr::memrchr(0, &self.bytes) {
            // A value that was cut off is not a value.
            Some(end) if self.truncated => self.bytes.get(..end).unwrap_or_default(),
            _ => &self.bytes,
        };
        whole.split(|byte| *byte == 0).filter_map(|entry| {
            let equals = memchr::memchr(b'=', entry)?;
            Some((entry.get(..equals)?, entry.get(equals + 1..)?))
        })
    }

    /// The value of the first variable called `name`, which is the one that getenv(3) finds.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.variables().find(|(variable, _)| *variable == name.as_bytes()).map(|(_, value)| value)
    }
}

impl FromIterator<(&'static str, &'static str)> for Environment {
    fn from_iter<I: IntoIterator<Item = (&'static str, &'static str)>>(variables: I) -> Self {
        let mut bytes = Vec::new();
        for (name, value) in variables {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b'=');
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        }
        Self::new(bytes, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_of_two_wins_and_a_prefix_does_not_match() {
        let environment = Environment::new(b"PMI_RANK_X=9\0PMI_RANK=1\0PMI_RANK=2\0".to_vec(), false);
        assert_eq!(environment.get("PMI_RANK"), Some(b"1".as_slice()));
        assert_eq!(environment.get("PMI"), None);
    }

    #[test]
    fn values_may_hold_equals_signs_and_binary_junk() {
        let environment = Environment::new(b"A=b=c\0\xff\xfe=\x01\0junk\0=x\0".to_vec(), false);
        let all: Vec<_> = environment.variables().collect();
        assert_eq!(all, [(&b"A"[..], &b"b=c"[..]), (b"\xff\xfe", b"\x01"), (b"", b"x")]);
    }

    #[test]
    fn a_value_that_was_cut_off_is_unknown() {
        let environment = Environment::new(b"PMI_SIZE=4\0PMI_RANK=1".to_vec(), true);
        assert_eq!(environment.get("PMI_SIZE"), Some(b"4".as_slice()));
        assert_eq!(environment.get("PMI_RANK"), None);
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, truncated: bool) {
            let environment = Environment::new(bytes, truncated);
            prop_assert_eq!(environment.get("="), None);
            prop_assert!(environment.variables().count() <= environment.bytes.len() + 1);
        }
    }
}
