//! `bpf(2)`: programs with an expected attach type, multi-uprobe links, what the kernel knows of a program.
#![expect(unsafe_code, reason = "bpf(2) takes pointers to attribute unions")]

use std::{
    ffi::{CStr, CString},
    io, mem,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    ptr,
};

use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_func_info, bpf_insn, bpf_prog_info, bpf_prog_type};
use bytemuck::Pod;

use super::breakpoints::Breakpoints;

/// `enum bpf_attach_type` of include/uapi/linux/bpf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum AttachType {
    /// Not looked at by the kernel: programs for perf events.
    Any = 0,
    /// `BPF_PERF_EVENT`, kernel 5.15.
    PerfEvent = 41,
    /// `BPF_TRACE_UPROBE_MULTI`, kernel 6.6.
    UprobeMulti = 48,
    /// `BPF_TRACE_UPROBE_SESSION`, kernel 6.13.
    UprobeSession = 57,
}

/// `BPF_TRACE_ITER`, kernel 5.8.
const TRACE_ITERATOR: u32 = 28;

/// `BPF_F_SLEEPABLE`.
const SLEEPABLE: u32 = 1 << 4;

/// `BPF_F_UPROBE_MULTI_RETURN`: the link is of return probes.
const MULTI_RETURN: u32 = 1;

/// How often a program is given to the kernel that wants to be asked again.
const LOAD_ATTEMPTS: u32 = 16;
/// The verifier's log is read up to this size (bytes).
const LOG_BYTES: usize = 1 << 20;

/// Why the kernel did not load a program.
#[derive(Debug)]
pub(crate) struct LoadFailure {
    pub source: io::Error,
    /// What the verifier said; empty where it was not asked.
    pub log: String,
}

/// What a program is to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramKind {
    /// Run by uprobes, which are kprobes to the kernel, attached in that way.
    Probe(AttachType),
    /// Run by uprobes, too, and it may wait for memory (kernel 6.0).
    SleepingProbe(AttachType),
    /// Run for every task by who reads an iterator; the id, in the kernel's types, of the function that stands for it.
    TaskIterator { function: u32 },
}

/// A program's code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code<'a> {
    pub instructions: &'a [bpf_insn],
    pub license: &'a CStr,
    /// The types of its functions, and which function begins where. By these the kernel knows which of them it may verify apart
    /// from those that call them: once, whatever the number of calls and the ways to them.
    pub types: Option<(BorrowedFd<'a>, &'a [bpf_func_info])>,
}

/// Gives an object's types (BTF) to the kernel.
pub(crate) fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    // SAFETY: the variant that BPF_BTF_LOAD reads; the union is all zero, so its fields are initialised.
    let load = unsafe { &mut attributes.__bindgen_anon_7 };
    load.btf = types.as_ptr() as u64;
    load.btf_size = u32::try_from(types.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    call_for_fd(bpf_cmd::BPF_BTF_LOAD, &mut attributes)
}

/// Loads a program.
pub(crate) fn load_program(name: &str, code: Code<'_>, kind: ProgramKind) -> Result<OwnedFd, LoadFailure> {
    let attempt = |log: &mut [u8]| {
        // SAFETY: all-zero is a valid value of every variant of the union.
        let mut attributes: bpf_attr = unsafe { mem::zeroed() };
        // SAFETY: the variant that BPF_PROG_LOAD reads; the union is all zero, so its fields are initialised.
        let load = unsafe { &mut attributes.__bindgen_anon_3 };
        match kind {
            ProgramKind::Probe(attach_type) => {
                load.prog_type = bpf_prog_type::BPF_PROG_TYPE_KPROBE as u32;
                load.expected_attach_type = attach_type as u32;
            }
            ProgramKind::SleepingProbe(attach_type) => {
                load.prog_type = bpf_prog_type::BPF_PROG_TYPE_KPROBE as u32;
                load.expected_attach_type = attach_type as u32;
                load.prog_flags = SLEEPABLE;
            }
            ProgramKind::TaskIterator { function } => {
                load.prog_type = bpf_prog_type::BPF_PROG_TYPE_TRACING as u32;
                load.expected_attach_type = TRACE_ITERATOR;
                load.attach_btf_id = function;
            }
        }
        load.insns = code.instructions.as_ptr() as u64;
        load.insn_cnt = u32::try_from(code.instructions.len()).unwrap_or(u32::MAX);
        load.license = code.license.as_ptr() as u64;
        if let Some((types, functions)) = code.types {
            load.prog_btf_fd = types.as_raw_fd().cast_unsigned();
            load.func_info = functions.as_ptr() as u64;
            load.func_info_cnt = u32::try_from(functions.len()).unwrap_or(u32::MAX);
            load.func_info_rec_size = u32::try_from(size_of::<bpf_func_info>()).unwrap_or(0);
        }
        for (to, from) in load.prog_name.iter_mut().take(15).zip(name.bytes()) {
            *to = from.cast_signed();
        }
        if !log.is_empty() {
            load.log_level = 1;
            load.log_buf = log.as_mut_ptr() as u64;
            load.log_size = u32::try_from(log.len()).unwrap_or(0);
        }
        call_for_fd(bpf_cmd::BPF_PROG_LOAD, &mut attributes)
    };
    // The verifier gives up with EAGAIN when the thread is to handle a signal or other work first, which it does on its way out
    // of the system call (kernel/bpf/verifier.c, do_check).
    let load = |log: &mut [u8]| {
        let mut result = attempt(log);
        for _ in 1..LOAD_ATTEMPTS {
            match &result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => result = attempt(log),
                _ => break,
            }
        }
        result
    };
    load(&mut []).map_err(|source| {
        // Once more for the reason; the log costs too much to ask for it every time.
        let mut log = vec![0; LOG_BYTES];
        match load(&mut log) {
            Ok(_) => LoadFailure { source, log: String::new() },
            Err(source) => {
                let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
                log.truncate(end);
                LoadFailure { source, log: String::from_utf8_lossy(&log).into_owned() }
            }
        }
    })
}

/// Attaches a program to many offsets of one file at once (kernel/trace/bpf_trace.c, `bpf_uprobe_multi_link_attach`).
///
/// `offsets` (bytes into the file) and `cookies` go together; `pid` limits the link to one process.
pub(crate) fn link_uprobes(
    program: BorrowedFd<'_>,
    attach_type: AttachType,
    path: &CStr,
    offsets: &[u64],
    cookies: &[u64],
    returns: bool,
    pid: Option<u32>,
) -> io::Result<Breakpoints> {
    if offsets.len() != cookies.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    // SAFETY: the variant that BPF_LINK_CREATE reads; the union is all zero, so its fields are initialised.
    let create = unsafe { &mut attributes.link_create };
    create.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
    create.attach_type = attach_type as u32;
    // SAFETY: as above.
    let multi = unsafe { &mut create.__bindgen_anon_3.uprobe_multi };
    multi.path = path.as_ptr() as u64;
    multi.offsets = offsets.as_ptr() as u64;
    multi.cookies = cookies.as_ptr() as u64;
    multi.cnt = u32::try_from(offsets.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    multi.flags = if returns { MULTI_RETURN } else { 0 };
    multi.pid = pid.unwrap_or(0);
    Breakpoints::by(|| call_for_fd(bpf_cmd::BPF_LINK_CREATE, &mut attributes))
}

/// Whether a multi-uprobe link limited to a process sees all its threads. Before kernel 6.6.35 it saw only the one whose id
/// is the process's (commit 46ba0e49b642).
///
/// Told by a request that is wrong in two ways, as libbpf does it: the repaired kernel refuses the impossible pid (`EINVAL`)
/// before it looks at the file, which is none (`EBADF`). Nothing is attached.
pub(crate) fn multi_links_see_all_threads(program: BorrowedFd<'_>) -> bool {
    let refused = link_uprobes(program, AttachType::UprobeMulti, c"/", &[0], &[0], false, Some(u32::MAX));
    refused.is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
}

/// Attaches a program to a perf event (kernel 5.15).
pub(crate) fn link_perf_event(program: BorrowedFd<'_>, event: BorrowedFd<'_>, cookie: u64) -> io::Result<OwnedFd> {
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    // SAFETY: the variant that BPF_LINK_CREATE reads; the union is all zero, so its fields are initialised.
    let create = unsafe { &mut attributes.link_create };
    create.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
    create.__bindgen_anon_2.target_fd = event.as_raw_fd().cast_unsigned();
    create.attach_type = AttachType::PerfEvent as u32;
    create.__bindgen_anon_3.perf_event.bpf_cookie = cookie;
    call_for_fd(bpf_cmd::BPF_LINK_CREATE, &mut attributes)
}

/// Puts a program into a table of programs that others call.
pub(crate) fn set_program(table: BorrowedFd<'_>, index: u32, program: BorrowedFd<'_>) -> io::Result<()> {
    let value = program.as_raw_fd().cast_unsigned();
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    // SAFETY: the variant that BPF_MAP_UPDATE_ELEM reads; the union is all zero, so its fields are initialised.
    let element = unsafe { &mut attributes.__bindgen_anon_2 };
    element.map_fd = table.as_raw_fd().cast_unsigned();
    element.key = (&raw const index) as u64;
    element.__bindgen_anon_1.value = (&raw const value) as u64;
    call(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut attributes).map(|_| ())
}

/// Makes an iterator program ready to be started.
pub(crate) fn link_iterator(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    // SAFETY: the variant that BPF_LINK_CREATE reads; the union is all zero, so its fields are initialised.
    let create = unsafe { &mut attributes.link_create };
    create.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
    create.attach_type = TRACE_ITERATOR;
    call_for_fd(bpf_cmd::BPF_LINK_CREATE, &mut attributes)
}

/// One run of an iterator: reading the file to its end runs the program for everything there is.
pub(crate) fn start_iterator(link: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    attributes.iter_create.link_fd = link.as_raw_fd().cast_unsigned();
    call_for_fd(bpf_cmd::BPF_ITER_CREATE, &mut attributes)
}

/// How often the kernel did not run a program because one was running on that CPU already.
pub(crate) fn recursion_misses(program: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(information(program)?.recursion_misses)
}

/// How many instructions the verifier went through when the program was loaded, each as often as it came to it; 0 if the kernel does
/// not tell (kernel 5.16).
#[cfg(test)]
pub(crate) fn verified_instructions(program: BorrowedFd<'_>) -> io::Result<u32> {
    Ok(information(program)?.verified_insns)
}

fn information(program: BorrowedFd<'_>) -> io::Result<bpf_prog_info> {
    // SAFETY: all-zero is a valid value of both.
    let (mut attributes, mut info): (bpf_attr, bpf_prog_info) = unsafe { (mem::zeroed(), mem::zeroed()) };
    // SAFETY: the variant that BPF_OBJ_GET_INFO_BY_FD reads; the union is all zero, so its fields are initialised.
    let request = unsafe { &mut attributes.info };
    request.bpf_fd = program.as_raw_fd().cast_unsigned();
    request.info_len = u32::try_from(size_of::<bpf_prog_info>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    request.info = (&raw mut info) as u64;
    call(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
    Ok(info)
}

/// All entries of a hash map, whatever is added or removed meanwhile: an entry that stays is given once.
///
/// Keys and values are of the map's sizes (kernel/bpf/hashtab.c, `BPF_MAP_LOOKUP_BATCH`, kernel 5.6).
pub fn read_hash<K: Pod, V: Pod>(map: BorrowedFd<'_>, capacity: usize) -> io::Result<Vec<(K, V)>> {
    /// Above the number of entries that share a hash bucket in any real map.
    const BATCH: u32 = 256;
    let mut entries = Vec::new();
    let (mut keys, mut values) = (vec![K::zeroed(); BATCH as usize], vec![V::zeroed(); BATCH as usize]);
    let mut position = [0u64; 8];
    let mut first = true;
    // Each turn gives at least one bucket; the bound is for a kernel that would not end.
    for _ in 0..=capacity {
        // SAFETY: all-zero is a valid value of every variant of the union.
        let mut attributes: bpf_attr = unsafe { mem::zeroed() };
        // SAFETY: the variant that BPF_MAP_LOOKUP_BATCH reads; the union is all zero, so its fields are initialised.
        let batch = unsafe { &mut attributes.batch };
        batch.in_batch = if first { 0 } else { position.as_ptr() as u64 };
        batch.out_batch = position.as_mut_ptr() as u64;
        batch.keys = keys.as_mut_ptr() as u64;
        batch.values = values.as_mut_ptr() as u64;
        batch.count = BATCH;
        batch.map_fd = map.as_raw_fd().cast_unsigned();
        let result = call(bpf_cmd::BPF_MAP_LOOKUP_BATCH, &mut attributes);
        // SAFETY: the kernel writes the number of entries into the same variant.
        let count = unsafe { attributes.batch.count } as usize;
        match result {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => return Err(error),
            result => {
                entries.extend(keys.iter().copied().zip(values.iter().copied()).take(count));
                if result.is_err() {
                    break;
                }
            }
        }
        first = false;
    }
    Ok(entries)
}

/// The value of a key in a hash map; `None`: there is none.
///
/// Key and value are of the map's sizes (`BPF_MAP_LOOKUP_ELEM`).
pub(crate) fn look_up<K: Pod, V: Pod>(map: BorrowedFd<'_>, key: &K) -> io::Result<Option<V>> {
    let mut value = V::zeroed();
    // SAFETY: all-zero is a valid value of every variant of the union.
    let mut attributes: bpf_attr = unsafe { mem::zeroed() };
    // SAFETY: the variant that BPF_MAP_LOOKUP_ELEM reads; the union is all zero, so its fields are initialised.
    let element = unsafe { &mut attributes.__bindgen_anon_2 };
    element.map_fd = map.as_raw_fd().cast_unsigned();
    element.key = ptr::from_ref(key) as u64;
    element.__bindgen_anon_1.value = (&raw mut value) as u64;
    match call(bpf_cmd::BPF_MAP_LOOKUP_ELEM, &mut attributes) {
        Ok(_) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A C string of a path or name that is known to have no NUL.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn call_for_fd(command: bpf_cmd, attributes: &mut bpf_attr) -> io::Result<OwnedFd> {
    let fd = call(command, attributes)?;
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made this file descriptor for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call(command: bpf_cmd, attributes: &mut bpf_attr) -> io::Result<i64> {
    // SAFETY: `attributes` is a live, initialised union of the size given; the pointers put into it by this module's
    // functions outlive the call, with the lengths given beside them.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_long, &raw mut *attributes, size_of::<bpf_attr>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
