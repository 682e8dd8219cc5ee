//! The code of a running process, compared with the file it came from: a probe is a byte that differs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::ProfilerError;

/// Far more than the kernel takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// How many bytes of the executable mappings of `library` differ in the memory of a process from the file. With an mpiprobe
/// attached that is one for every probed place; without, none, if no other tracer has probes in that file.
///
/// `library` is named as in `/proc/PID/maps`: without symbolic links.
pub fn changed_bytes(pid: u32, library: &Path) -> Result<usize, ProfilerError> {
    let file = fs::read(library).map_err(ProfilerError::system(format!("reading {}", library.display())))?;
    changed_bytes_from(pid, library, &file)
}

/// Waits until as many are changed as `how_many` says; without a pause, because a moment in the middle of detaching may be what is waited for.
pub fn wait_until_changed(
    pid: u32,
    library: &Path,
    how_many: &str,
    is_it: impl Fn(usize) -> bool,
) -> Result<(), ProfilerError> {
    let file = fs::read(library).map_err(ProfilerError::system(format!("reading {}", library.display())))?;
    let start = Instant::now();
    loop {
        let changed = changed_bytes_from(pid, library, &file)?;
        if is_it(changed) {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            let what = format!("{how_many} of process {pid}'s code to be changed");
            return Err(ProfilerError::Timeout { what, waited: PATIENCE, output: format!("{changed} bytes are") });
        }
    }
}

/// [`changed_bytes`] with the file's content given, for a file that is not there any more.
pub fn changed_bytes_from(pid: u32, library: &Path, file: &[u8]) -> Result<usize, ProfilerError> {
    let system = |what: &str| ProfilerError::system(format!("{what} of process {pid}"));
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(system("reading the mappings"))?;
    let memory = File::open(format!("/proc/{pid}/mem")).map_err(system("opening the memory"))?;
    let mut changed = 0;
    let mut mappings = 0;
    for mapping in maps.lines().filter_map(|line| executable_mapping(line, library)) {
        let mut code = vec![0; mapping.size];
        memory.read_exact_at(&mut code, mapping.address).map_err(system("reading the code"))?;
        // The last page of a mapping may reach beyond the file's end.
        let original = file.get(mapping.offset..).unwrap_or_default();
        changed += different(&code, original);
        mappings += 1;
    }
    if mappings == 0 {
        let missing = std::io::Error::other("it is not mapped");
        return Err(ProfilerError::system(format!("looking for {} in process {pid}", library.display()))(missing));
    }
    Ok(changed)
}

/// How many bytes differ, as far as both reach. Of megabytes, few pages do.
fn different(one: &[u8], other: &[u8]) -> usize {
    const PAGE: usize = 4096;
    let pages = one.chunks(PAGE).zip(other.chunks(PAGE)).filter(|(one, other)| one != other);
    pages.map(|(one, other)| one.iter().zip(other).filter(|(one, other)| one != other).count()).sum()
}

struct Mapping {
    address: u64,
    size: usize,
    offset: usize,
}

/// `55d0…-55d1… r-xp 00002000 08:01 1234   /usr/lib/libmpi.so` (proc_pid_maps(5)).
fn executable_mapping(line: &str, library: &Path) -> Option<Mapping> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_executable = fields.next()?.contains('x');
    let offset = usize::from_str_radix(fields.next()?, 16).ok()?;
    let path = fields.nth(2)?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let size = usize::try_from(end.checked_sub(start)?).ok()?;
    (is_executable && Path::new(path) == library).then_some(Mapping { address: start, size, offset })
}

#[cfg(test)]
mod tests {
    use super::different;

    #[test]
    fn bytes_that_differ_are_counted_as_far_as_both_reach() {
        let one = vec![7; 10_000];
        let mut other = one.clone();
        assert_eq!(different(&one, &other), 0);
        for place in [0, 4095, 4096, 9_998, 9_999] {
            other[place] = 8;
        }
        assert_eq!(different(&one, &other), 5);
        assert_eq!(different(&one, &other[..9_999]), 4);
    }
}
