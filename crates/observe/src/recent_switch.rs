//! Words of a wrapper's file that observers write: until when calls go to the ring of recent ones, and until when to rings of lines.

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

/// A process writes recent calls for so long after its observer was killed, ns.
const PATIENCE_NS: u64 = 3_000_000_000;
/// The same of lines: who writes a file of them must not miss any because the machine was busy. When nobody reads, rings are full soon,
/// and then that costs nothing.
const LINES_PATIENCE_NS: u64 = 120_000_000_000;

/// Switched off when it is dropped.
#[derive(Debug)]
pub struct RecentSwitch {
    file: File,
    /// Where the word is.
    place: u64,
    patience_ns: u64,
    /// What the word was set to last; 0: it was not.
    set_to: u64,
}

impl RecentSwitch {
    /// Opens the very same file again, for writing. Whoever has a lease on it is not waited for.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Self::new(file, offset_of!(Header, recent_until_ns), PATIENCE_NS)
    }

    /// The same of lines.
    pub(super) fn of_trace(file: &File) -> io::Result<Self> {
        Self::new(file, offset_of!(Header, trace_until_ns), LINES_PATIENCE_NS)
    }

    fn new(file: &File, place: usize, patience_ns: u64) -> io::Result<Self> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().write(true).read(true).custom_flags(libc::O_NONBLOCK).open(link)?;
        Ok(Self { file, place: place as u64, patience_ns, set_to: 0 })
    }

    /// Puts the end off. Tells whether calls have been written down without a break since the last time.
    pub fn renew(&mut self) -> io::Result<bool> {
        let now = monotonic_ns();
        let went_on = self.set_to != 0 && self.read()? >= now;
        let until = now.saturating_add(self.patience_ns);
        self.write(until)?;
        self.set_to = until;
        Ok(went_on)
    }

    fn read(&self) -> io::Result<u64> {
        let mut word = [0; size_of::<u64>()];
        self.file.read_exact_at(&mut word, self.place)?;
        Ok(u64::from_ne_bytes(word))
    }

    fn write(&self, until: u64) -> io::Result<()> {
        self.file.write_all_at(&until.to_ne_bytes(), self.place)
    }

    /// Nothing is written from now on, unless another observer has put the end off meanwhile.
    pub fn end(&mut self) {
        // If this fails, it ends by itself.
        if self.set_to != 0 && self.read().is_ok_and(|until| until == self.set_to) {
            let _ = self.write(0);
        }
        self.set_to = 0;
    }
}

impl Drop for RecentSwitch {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    const PLACE: u64 = offset_of!(Header, recent_until_ns) as u64;

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
