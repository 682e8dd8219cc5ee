//! The header of the file: who this process is, and how far the tables are used.

use core::{
    ffi::{CStr, c_char, c_int},
    mem::offset_of,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

use mpiprobe_common::{
    CALIBRATION_FUNCTION, FUNCTION_SLOTS,
    file::{COUNTERS_REGION, FINGERPRINT, Header, MAGIC, VERSION, flags},
};

use crate::{
    calibrate,
    clock::{self, monotonic_ns, system_ns},
    code,
    entry::{DEFAULT_FUNCTIONS, FUNCTIONS_FINGERPRINT},
    environment, file, imports, next, phases, semantics, system,
    text::fill,
    trace,
};

const WORDS: usize = FUNCTION_SLOTS as usize / 64;

/// Functions that are counted, a bit each, in hexadecimal from the lowest id on: set by `mpiprobe run`.
const SELECTION_VARIABLE: &CStr = c"MPIPROBE_FUNCTIONS";

fn header() -> Option<NonNull<Header>> {
    file::base().map(NonNull::cast)
}

/// Fills the header in. Readers wait for its first word.
pub(crate) fn write() {
    let Some(header) = header() else { return };
    let header = header.as_ptr();
    // SAFETY: the file's first pages are backed; nobody else writes to them yet, and texts are copied within their arrays.
    unsafe {
        let to = &mut *header;
        to.version = VERSION;
        to.header_size = size_of::<Header>() as u32;
        to.fingerprint = FINGERPRINT;
        to.functions = FUNCTIONS_FINGERPRINT;
        to.pid = system::process_id();
        to.parent = system::parent_id();
        to.user = system::user_id();
        to.flags = if clock::uses_counter() { flags::TSC } else { 0 };
        to.start_ticks = start_ticks();
        to.pid_namespace = pid_namespace();
        to.boot = boot();
        to.began_ns = monotonic_ns();
        to.began_unix_ns = system_ns(libc::CLOCK_REALTIME);
        // The last byte of each stays zero.
        system::host_name(&mut to.host);
        let [executable @ .., _] = &mut to.executable;
        let _ = system::read_link(c"/proc/self/exe", executable);
        fill_library(to);
        semantics::find_library(&to.library);
        to.library_functions = next::count_functions();
        let launchers = environment::of_launchers::<{ mpiprobe_common::file::ENVIRONMENT }>();
        fill(&mut to.environment, launchers.as_bytes());
        if let Some(counters) = file::place(COUNTERS_REGION, 0) {
            (*counters.as_ptr()).tgid = to.pid;
        }
        if let Some(cost) = calibrate::measure() {
            (to.call_cost, to.inside_cost) = (cost.call, cost.inside);
        }
        code::note_new();
        // Not before calls have been made to find out what they cost.
        to.trace_until_ns = trace::wanted_until_ns();
        fence(Ordering::SeqCst);
        (&raw mut (*header).magic).write_volatile(MAGIC);
    }
}

/// Which library MPI is, and what it says of itself: that may be asked before it is initialised.
fn fill_library(to: &mut Header) {
    // SAFETY: the functions are called as the standard and the linker define them, with buffers that are large enough: MPICH's
    // texts are the longest, at most 8192 bytes.
    unsafe {
        if let Some(file) = next::after_this(c"PMPI_Init").and_then(|function| imports::file_of(function)) {
            fill(&mut to.library, file.to_bytes());
        }
        if let Some(function) = next::after_this(c"PMPI_Get_library_version") {
            let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int = core::mem::transmute(function);
            let mut text = [0u8; 8193];
            let mut length = 0;
            if ask(text.as_mut_ptr().cast(), &raw mut length) == 0 {
                let line = text.split(|byte| matches!(byte, 0 | b'\n')).next().unwrap_or_default();
                fill(&mut to.implementation, line);
            }
        }
    }
}

/// Reads a short file.
fn read<const N: usize>(path: &CStr) -> Option<([u8; N], usize)> {
    let mut bytes = [0; N];
    let length = system::open(path, libc::O_RDONLY, 0).and_then(|file| file.read(&mut bytes)).ok()?;
    Some((bytes, length))
}

/// Field 22 of `/proc/self/stat`, counted after the command name, which may contain anything.
fn start_ticks() -> u64 {
    let Some((bytes, length)) = read::<1024>(c"/proc/self/stat") else { return 0 };
    let text = bytes.get(..length).unwrap_or_default();
    let after_name = text.rsplit(|&byte| byte == b')').next().unwrap_or_default();
    let field = after_name.split(|&byte| byte == b' ').nth(20).unwrap_or_default();
    field
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0u64, |value, digit| value.wrapping_mul(10).wrapping_add((digit - b'0') as u64))
}

fn pid_namespace() -> u64 {
    system::status(c"/proc/self/ns/pid", true).map_or(0, |status| status.st_ino)
}

/// From its hexadecimal form with dashes.
fn boot() -> [u8; 16] {
    let mut id = [0; 16];
    let Some((bytes, length)) = read::<64>(c"/proc/sys/kernel/random/boot_id") else { return id };
    let mut digits = bytes.iter().take(length).filter_map(|&byte| (byte as char).to_digit(16));
    for byte in &mut id {
        let (Some(high), Some(low)) = (digits.next(), digits.next()) else { break };
        *byte = (high << 4 | low) as u8;
    }
    id
}

/// How many statistics entries have been taken.
pub(crate) fn stats() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, stats))
}

/// How many thread slots have been used.
pub(crate) fn threads() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, threads))
}

/// How many flows have been made.
pub(crate) fn flows() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, flows))
}

/// How many communicators have been made.
pub(crate) fn communicators() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, communicators))
}

/// How much of the list of what is mapped where has been written.
pub(crate) fn code() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, code))
}

/// Until when recent calls are written down, ns; 0: nobody wants them.
#[inline]
pub(crate) fn recent_until() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, recent_until_ns))
}

/// Until when calls are written to rings, ns; 0: nobody wants them.
#[inline]
pub(crate) fn trace_until() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, trace_until_ns))
}

/// The program ends by itself, and other things may still be asked for.
pub(crate) fn note_end() {
    code::note_new();
    note_exit();
}

/// The program ends by itself, at once. Nothing is done that a signal handler may not do.
pub(crate) fn note_exit() {
    if let Some(ended) = word(offset_of!(Header, ended_ns)) {
        ended.store(monotonic_ns(), Ordering::Release);
    }
    if clock::uses_counter()
        && let Some(header) = header()
    {
        // SAFETY: a word of the mapped header.
        unsafe { AtomicU32::from_ptr(&raw mut (*header.as_ptr()).flags).fetch_or(flags::TSC, Ordering::Relaxed) };
    }
}

/// With which status it ends so.
pub(crate) fn note_exit_status(status: c_int) {
    if let Some(place) = word(offset_of!(Header, exit_status_plus_1)) {
        place.store(u64::from(status.cast_unsigned()) + 1, Ordering::Release);
    }
}

/// When the program had itself replaced by another one; 0: it has not.
pub(crate) fn execed() -> Option<&'static AtomicU64> {
    word(offset_of!(Header, execed_ns))
}

#[inline]
fn word(offset: usize) -> Option<&'static AtomicU64> {
    let base = file::base()?;
    // SAFETY: an aligned word of the mapped header, which is never unmapped.
    Some(unsafe { AtomicU64::from_ptr(base.add(offset).as_ptr().cast()) })
}

/// Functions that are counted, a bit each: as the environment says when the program begins.
static SELECTED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Reads the user's choice. To be called once.
pub(crate) fn choose_functions() {
    let text = environment::get(SELECTION_VARIABLE).map(CStr::to_bytes);
    for (index, (word, default)) in SELECTED.iter().zip(DEFAULT_FUNCTIONS).enumerate() {
        let first = index as u32 * 64;
        let is_chosen = |bit: u32| {
            let chosen = text.and_then(|text| digit(text, first + bit)).unwrap_or(default >> bit & 1 != 0);
            chosen || phases::is_control(first + bit)
        };
        let chosen = (0..64).filter(|&bit| is_chosen(bit)).fold(0u64, |bits, bit| bits | 1 << bit);
        word.store(chosen, Ordering::Release);
    }
    if let Some(last) = SELECTED.last() {
        last.fetch_or(1 << (CALIBRATION_FUNCTION % 64), Ordering::Release);
    }
}

/// Whether a function is counted.
#[inline]
pub(crate) fn is_selected(function: u32) -> bool {
    let word = SELECTED.get(function as usize / 64);
    word.is_some_and(|word| word.load(Ordering::Relaxed) >> (function % 64) & 1 != 0)
}

/// The bit of a function in a text that begins with the fingerprint of the table that it belongs to; `None`: none of ours.
fn digit(text: &[u8], function: u32) -> Option<bool> {
    let (table, bits) = text.split_at_checked(17)?;
    let fingerprint = table
        .iter()
        .take(16)
        .try_fold(0u64, |value, &digit| Some(value << 4 | u64::from((digit as char).to_digit(16)?)))?;
    if fingerprint != FUNCTIONS_FINGERPRINT {
        return None;
    }
    let digit = (*bits.get(function as usize / 4)? as char).to_digit(16)?;
    Some(digit >> (function % 4) & 1 != 0)
}

const _: () = assert!(WORDS == DEFAULT_FUNCTIONS.len());
