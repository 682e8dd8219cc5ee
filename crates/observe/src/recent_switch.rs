//! The one word of a wrapper's file that observers write: until when calls go to the ring of recent ones.

use std::{
    fs::{File, OpenOptions},
    io,
    mem::offset_of,
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, OpenOptionsExt as _},
    },
};

use mpiprobe_common::file::Header;

use super::monotonic_ns;

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
    /// Opens the very same file again, for writing. Whoever has a lease on it is not waited for.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().write(true).read(true).custom_flags(libc::O_NONBLOCK).open(link)?;
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
    use std::{
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

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

    /// Whoever opens such a file for writing has to wait until its holder gives the lease up, or the kernel takes it, after 45 s.
    const HOLD_LEASE: &str = "import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1])
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
print('held', flush=True)
sys.stdin.read()";

    #[test]
    fn a_lease_on_the_file_keeps_nobody_waiting() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = File::open(&path).unwrap();
        let mut holder = Command::new("python3");
        holder.args(["-c", HOLD_LEASE]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.spawn().expect("python3 is needed for this test");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        assert_eq!(RecentSwitch::of(&file).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(holder.stdin.take());
        holder.wait().unwrap();
        assert!(RecentSwitch::of(&file).is_ok());
    }
}
