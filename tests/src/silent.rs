//! A file system that answers until it is told not to, by FUSE: what any user can make of a file that others look at.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A process that runs a program whose file does not answer any more. Everything is as before when this is dropped.
#[derive(Debug)]
pub struct SilentProgram {
    child: Child,
    name: String,
    _directory: tempfile::TempDir,
    /// The file system's requests come from here; without it there is none.
    _device: File,
}

impl SilentProgram {
    /// Starts sleep(1) from such a file.
    pub fn start() -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let name = format!("silent-{}", std::process::id());
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let (target, options) = (CString::new(directory.path().as_os_str().as_bytes())?, CString::new(options)?);
        mount(c"silent", &target, c"fuse", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?;
        let is_silent = Arc::new(AtomicBool::new(false));
        let server = Server { name: name.clone(), content: std::fs::read(sleep())?, is_silent: Arc::clone(&is_silent) };
        let requests = device.try_clone()?;
        thread::spawn(move || server.serve(requests));
        let child = Command::new(directory.path().join(&name)).arg("1000").spawn();
        let asleep = child.and_then(|child| {
            wait_until_asleep(child.id())?;
            Ok(child)
        });
        is_silent.store(true, Ordering::SeqCst);
        // Nobody else is to find it by its name.
        unmount(&target, UnmountFlags::DETACH)?;
        Ok(Self { child: asleep?, name, _directory: directory, _device: device })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the program is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for SilentProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sleep() -> &'static Path {
    Path::new("/bin/sleep")
}

/// Until it sleeps, and needs no more of its file.
fn wait_until_asleep(pid: u32) -> io::Result<()> {
    const CLOCK_NANOSLEEP: &str = "230 ";
    loop {
        let call = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/syscall")))?;
        if call.starts_with(CLOCK_NANOSLEEP) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Requests and answers are those of `linux/fuse.h`.
struct Server {
    name: String,
    content: Vec<u8>,
    is_silent: Arc<AtomicBool>,
}

const ROOT: u64 = 1;
const PROGRAM: u64 = 2;
const NO_SUCH_FILE: i32 = -2;
const NOT_IMPLEMENTED: i32 = -38;

impl Server {
    fn serve(&self, mut device: File) {
        let mut request = vec![0; 1 << 20];
        while let Ok(length) = device.read(&mut request) {
            if self.is_silent.load(Ordering::SeqCst) {
                continue;
            }
            let from = |at: usize| request.get(at..length).unwrap_or_default();
            let word = |at: usize| from(at).first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
            let long = |at: usize| from(at).first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            let answer = match word(4) {
                // Lookup, attributes, open, read.
                1 => self.look_up(from(40)),
                3 => Ok([&[0; 16], self.attributes(long(16)).as_slice()].concat()),
                14 | 27 => Ok(vec![0; 16]),
                15 => Ok(self.part(long(48), word(56))),
                // Release, flush.
                18 | 25 | 29 => Ok(Vec::new()),
                26 => Ok(begin(word(48))),
                // Forget and interrupt are not answered.
                2 | 36 | 42 => continue,
                _ => Err(NOT_IMPLEMENTED),
            };
            let (error, bytes) = answer.map_or_else(|error| (error, Vec::new()), |bytes| (0, bytes));
            let length = u32::try_from(16 + bytes.len()).unwrap_or(16);
            let head = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), &long(8).to_ne_bytes()].concat();
            let _ = device.write(&[head, bytes].concat());
        }
    }

    fn look_up(&self, name: &[u8]) -> Result<Vec<u8>, i32> {
        if name.strip_suffix(b"\0") != Some(self.name.as_bytes()) {
            return Err(NO_SUCH_FILE);
        }
        // Valid for no time at all: whoever looks has to ask.
        Ok([&PROGRAM.to_ne_bytes()[..], &[0; 32], &self.attributes(PROGRAM)].concat())
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (mode, size) = if node == ROOT { (0o040_755, 0) } else { (0o100_755, self.content.len() as u64) };
        let longs = [node, size, size.div_ceil(512), 0, 0, 0].map(u64::to_ne_bytes);
        // Parts of seconds, mode, links, owner, group, device, size of blocks, flags.
        let words = [0_u32, 0, 0, mode, 1, 0, 0, 0, 4096, 0].map(u32::to_ne_bytes);
        [longs.concat(), words.concat()].concat()
    }

    fn part(&self, offset: u64, length: u32) -> Vec<u8> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.content.get(offset..)).unwrap_or_default();
        rest.iter().take(length as usize).copied().collect()
    }
}

/// Version 7.31, no features.
fn begin(read_ahead: u32) -> Vec<u8> {
    let words = [7, 31, read_ahead, 0, 0, 4096, 1].map(u32::to_ne_bytes);
    [words.concat(), vec![0; 64 - 4 * words.len()]].concat()
}
