//! The one word of a wrapper's file that observers write: until when calls go to the ring of recent ones.

use std::{
    fs::{File, OpenOptions},
    io,
    mem::offset_of,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
};

use mpiprobe_common::file::Header;

use super::clock::monotonic_ns;

const PLACE: u64 = offset_of!(Header, recent_until_ns) as u64;
/// A process writes for so long after its observer was killed, ns.
const PATIENCE_NS: u64 = 3_000_000_000;

/// Switched off when it is dropped.
#[derive(Debug)]
pub struct RecentSwitch {
    file: File,
    /// What the word was set to last; 0: it was not.
    set_to: u64,
}

impl RecentSwitch {
    /// Opens the very same file again, for writing.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).read(true).open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(Self { file, set_to: 0 })
    }

    /// Puts the end off. Tells whether calls have been written down without a break since the last time.
    pub fn renew(&mut self) -> io::Result<bool> {
        let now = monotonic_ns();
        let went_on = self.set_to != 0 && self.read()? >= now;
        let until = now.saturating_add(PATIENCE_NS);
        self.write(until)?;
        self.set_to = until;
        Ok(went_on)
    }

    fn read(&self) -> io::Result<u64> {
        let mut word = [0; size_of::<u64>()];
        self.file.read_exact_at(&mut word, PLACE)?;
        Ok(u64::from_ne_bytes(word))
    }

    fn write(&self, until: u64) -> io::Result<()> {
        self.file.write_all_at(&until.to_ne_bytes(), PLACE)
    }
}

impl Drop for RecentSwitch {
    fn drop(&mut self) {
        // Unless another observer has put it off meanwhile. If this fails, it ends by itself.
        if self.set_to != 0 && self.read().is_ok_and(|until| until == self.set_to) {
            let _ = self.write(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(file: &File) -> u64 {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, PLACE).unwrap();
        u64::from_ne_bytes(word)
    }

    fn tables() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_of::<Header>() as u64).unwrap();
        file
    }

    #[test]
    fn it_is_on_as_long_as_somebody_renews_it() {
        let file = tables();
        let mut switch = RecentSwitch::of(&file).unwrap();
        assert!(!switch.renew().unwrap(), "there was nothing before");
        assert!(word(&file) > monotonic_ns());
        assert!(switch.renew().unwrap());
        // Nobody has renewed it for long.
        file.write_all_at(&1u64.to_ne_bytes(), PLACE).unwrap();
        assert!(!switch.renew().unwrap());
        drop(switch);
        assert_eq!(word(&file), 0);
    }

    #[test]
    fn it_is_left_on_for_another_observer() {
        let file = tables();
        let (mut one, mut other) = (RecentSwitch::of(&file).unwrap(), RecentSwitch::of(&file).unwrap());
        one.renew().unwrap();
        other.renew().unwrap();
        drop(one);
        assert!(word(&file) > monotonic_ns());
        drop(other);
        assert_eq!(word(&file), 0);
    }
}
