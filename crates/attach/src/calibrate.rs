//! A function of our own under a probe of our own: does this way of attaching count exactly, and what does a call cost?

use std::{
    arch::naked_asm,
    fs::File,
    hint::black_box,
    io,
    os::fd::AsFd as _,
    path::Path,
    process,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use mpiprobe_common::{
    CALIBRATION_FUNCTION, CALIBRATION_SLOT, Cookie, ProcessCounters, Target, process::entries_only, tables::PROCESSES,
};
use mpiprobe_observe::{SharedArray, StatsReader};

use super::{
    AttachError, AttachMethod, Tables, Targets,
    links::Attachment,
    method::Calibration,
    object::Program,
    site::{ProbeSite, Scope},
};

/// Calls per batch; short, so that some batches are not disturbed by other work of the machine.
const BATCH: u32 = 500;
/// Batches; the fastest counts.
const BATCHES: u32 = 12;

impl Calibration {
    /// Attaches to the calibration target by `method`, calls it a known number of times and checks the count. The probes are still
    /// there: the kernel takes its time to remove them, for which nobody has to wait.
    pub(super) fn run(
        method: AttachMethod,
        programs: &[Program],
        tables: &mut Tables,
        stats: &StatsReader,
    ) -> Result<(Self, Attachment), AttachError> {
        let pid = process::id();
        let target = Target { process: CALIBRATION_SLOT, flags: 0, library_start: 0, library_end: 0 };
        Targets::of(tables)?.allow(pid, target)?;
        let counters = tables.mapped(PROCESSES)?;
        let measured = measure(method, programs, stats, &counters, pid);
        Targets::of(tables)?.remove(pid)?;
        measured
    }
}

fn measure(
    method: AttachMethod,
    programs: &[Program],
    stats: &StatsReader,
    counters: &SharedArray<ProcessCounters>,
    pid: u32,
) -> Result<(Calibration, Attachment), AttachError> {
    let counted = || {
        let stats = stats.read(CALIBRATION_SLOT, CALIBRATION_FUNCTION);
        stats.map_or((0, 0), |stats| (stats.calls, stats.time_ns))
    };
    let before = counted();
    // What was measured of a batch; of all, that which was disturbed least.
    let (mut measured, mut least) = (before.1, u64::MAX);
    let (per_call_ns, attachment, bare) = added(method, programs, pid, &mut || {
        let now = counted().1;
        least = least.min(now - measured);
        measured = now;
    })?;
    // The same probes once more, counting entries alone.
    count_entries_only(counters, entries_only::ALL);
    let by_entry = fastest_batch(&mut || ());
    count_entries_only(counters, 0);
    let made = 2 * u64::from(BATCH * BATCHES);
    let counted = counted().0 - before.0;
    if counted != made {
        return Err(AttachError::Miscounted { method, made, counted });
    }
    let inside_ns = least as f64 / f64::from(BATCH);
    Ok((Calibration { per_call_ns, entry_ns: per_call(by_entry, bare), inside_ns }, attachment))
}

/// Has calls of this process counted so.
fn count_entries_only(counters: &SharedArray<ProcessCounters>, bits: u64) {
    if let Some(word) = counters.word_of(CALIBRATION_SLOT as usize, ProcessCounters::ENTRIES_ONLY) {
        word.store(bits, Ordering::Release);
    }
}

/// What probes add to a call, ns, if batches take so long with and without them.
fn per_call(probed: Duration, bare: Duration) -> f64 {
    probed.saturating_sub(bare).as_nanos() as f64 / f64::from(BATCH)
}

/// What probes with these programs add to a call of the calibration target, ns.
pub(super) fn added_ns(method: AttachMethod, programs: &[Program], pid: u32) -> Result<f64, AttachError> {
    added(method, programs, pid, &mut || ()).map(|(added_ns, ..)| added_ns)
}

/// As [`added_ns`], with the probes and what a batch takes without; `after` is told of the end of each batch of probed calls.
fn added(
    method: AttachMethod,
    programs: &[Program],
    pid: u32,
    after: &mut dyn FnMut(),
) -> Result<(f64, Attachment, Duration), AttachError> {
    let bare = fastest_batch(&mut || ());
    let attachment = attach(method, programs, pid)?;
    let probed = fastest_batch(after);
    Ok((per_call(probed, bare), attachment, bare))
}

/// Attaches programs to the calibration target in this process only.
fn attach(method: AttachMethod, programs: &[Program], pid: u32) -> Result<Attachment, AttachError> {
    let own = Path::new("/proc/self/exe");
    let failed = |source| AttachError::Link { method, file: own.into(), source };
    let file = File::open(own).map_err(failed)?;
    let offset = own_file_offset(target as *const () as u64).map_err(failed)?;
    let sites = [ProbeSite { offset, cookie: Cookie::new(CALIBRATION_FUNCTION, 0, true).0 }];
    Attachment::new(method, programs, file.as_fd(), own, &sites, Scope::Process(pid))
}

/// Calls the target and gives the time of the fastest batch; `after` is called after each.
fn fastest_batch(after: &mut dyn FnMut()) -> Duration {
    let mut batch = || {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(target as extern "C" fn())();
        }
        let took = start.elapsed();
        after();
        took
    };
    (0..BATCHES).map(|_| batch()).min().unwrap_or_default()
}

/// Begins with an instruction that the kernel emulates, as well placed probes do.
#[unsafe(naked)]
extern "C" fn target() {
    naked_asm!("push rbp", "pop rbp", "ret");
}

/// Where an address of this process lies in its executable (bytes).
fn own_file_offset(address: u64) -> io::Result<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    maps.lines().find_map(|line| file_offset(line, address)).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// As [`own_file_offset`], if the line (proc_pid_maps(5)) is about the mapping that contains the address.
fn file_offset(line: &str, address: u64) -> Option<u64> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let offset = hex(fields.nth(1)?)?;
    (start..end).contains(&address).then(|| address - start + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_address_gives_the_offset() {
        let line = "55d0c0a00000-55d0c0b00000 r-xp 00021000 fe:00 1234   /usr/bin/mpiprobe";
        assert_eq!(file_offset(line, 0x55d0_c0a0_0010), Some(0x21010));
        assert_eq!(file_offset(line, 0x55d0_c0b0_0000), None);
        assert_eq!(file_offset("nonsense", 1), None);
    }

    #[test]
    fn the_target_lies_in_this_executable() {
        assert!(own_file_offset(target as *const () as u64).unwrap() > 0);
    }
}
