//! The file with the tables: made, mapped, and backed by memory or disk before anything is written to it.
//!
//! Writing to a mapped page for which there is no room left is a SIGBUS, which would kill the job. So room is asked for first, a
//! chunk at a time; where there is none, what would have been written is counted as lost.

use core::{
    ffi::CStr,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering},
};

use mpiprobe_common::file::{FILE_SIZE, Region, SUFFIX};

use crate::{
    clock::monotonic_ns,
    environment,
    message::{SavedErrno, errno, reason, say},
    text::Text,
};

/// Longest path of a file.
pub(crate) const PATH: usize = 1200;

/// Directory of the user's choice: set by `mpiprobe run`.
const DIRECTORY_VARIABLE: &CStr = c"MPIPROBE_OUTPUT";

/// Room is asked for in chunks of so many bytes.
const CHUNK: u64 = 64 * 1024;
const CHUNKS: usize = FILE_SIZE.div_ceil(CHUNK) as usize;

/// What is known of each chunk.
static BACKED: [AtomicU8; CHUNKS] = [const { AtomicU8::new(UNKNOWN) }; CHUNKS];
const UNKNOWN: u8 = 0;
const THERE: u8 = 1;
const NO_ROOM: u8 = 2;

static BASE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Path, device and inode of the file, by which it is found again: no descriptor is kept, because programs close those that they do
/// not know and get the same numbers for other files.
static NAME: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

/// The file's beginning in memory.
#[inline]
pub(crate) fn base() -> Option<NonNull<u8>> {
    NonNull::new(BASE.load(Ordering::Acquire))
}

/// No table is written from now on: this is another process than the one that made the file.
pub(crate) fn forget() {
    BASE.store(ptr::null_mut(), Ordering::Release);
}

/// The place of an entry of a table, once it is certain that there is room for it.
#[inline]
pub(crate) fn place<T>(region: Region, index: u32) -> Option<NonNull<T>> {
    let base = base()?;
    let offset = region.at(index)?;
    if !is_backed(offset, region.entry) {
        return None;
    }
    // SAFETY: within the mapping, whose length is that of all regions together.
    Some(unsafe { base.add(offset as usize) }.cast())
}

/// The place of an entry that [`place`] has given before: the room for it is there.
#[inline]
pub(crate) fn known_place<T>(region: Region, index: u32) -> Option<NonNull<T>> {
    let offset = region.at(index)?;
    // SAFETY: as above.
    Some(unsafe { base()?.add(offset as usize) }.cast())
}

/// Makes the file; says why if it cannot.
pub(crate) fn create() -> bool {
    let mut directory = Text::<PATH>::new();
    if let Err(error) = choose(&mut directory) {
        let why = Text::<PATH>::new().with(directory.as_bytes()).with(b": ").with(reason(error));
        say(b"this job is not counted, no directory for its tables", why.as_bytes());
        return false;
    }
    let mut host = [0u8; 65];
    // SAFETY: writes within the buffer's length; the last byte stays zero.
    unsafe { libc::gethostname(host.as_mut_ptr().cast(), host.len() - 1) };
    let host = CStr::from_bytes_until_nul(&host).unwrap_or_default().to_bytes();
    // SAFETY: takes no arguments.
    let pid = unsafe { libc::getpid() } as u64;
    let path = Text::<PATH>::new().with(directory.as_bytes()).with(b"/").with(host).with(b"-").with_number(pid);
    let path = path.with(b"-").with_number(monotonic_ns()).with(SUFFIX.as_bytes());
    match if path.is_whole() { map_new(path.as_c_str()) } else { Err(libc::ENAMETOOLONG) } {
        Ok(()) => true,
        Err(error) => {
            let why = Text::<PATH>::new().with(directory.as_bytes()).with(b": ").with(reason(error));
            say(b"this job is not counted, its tables cannot be kept", why.as_bytes());
            false
        }
    }
}

fn map_new(path: &CStr) -> Result<(), i32> {
    let size = FILE_SIZE as libc::off_t;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // Beyond this limit there is a signal instead of an error.
    // SAFETY: writes to a local.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } != 0 || limit.rlim_cur < FILE_SIZE {
        return Err(libc::EFBIG);
    }
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a path that ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if file < 0 {
        return Err(errno());
    }
    let mapped = map(file, size);
    if mapped.is_err() {
        // SAFETY: as above.
        unsafe { libc::unlink(path.as_ptr()) };
    } else {
        remember(path);
    }
    // SAFETY: the descriptor is ours.
    unsafe { libc::close(file) };
    mapped
}

fn map(file: i32, size: libc::off_t) -> Result<(), i32> {
    // SAFETY: on a descriptor of ours; writes to a local, for which zeros are valid.
    let status = unsafe {
        let mut status = core::mem::zeroed::<libc::stat>();
        if libc::ftruncate(file, size) != 0 || libc::fstat(file, &raw mut status) != 0 {
            return Err(errno());
        }
        status
    };
    DEVICE.store(status.st_dev, Ordering::Relaxed);
    INODE.store(status.st_ino, Ordering::Relaxed);
    back(file, 0)?;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(ptr::null_mut(), size as usize, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0)
    };
    if base == libc::MAP_FAILED {
        return Err(errno());
    }
    BASE.store(base.cast(), Ordering::Release);
    Ok(())
}

/// Keeps the path in memory of its own: one page that nobody else knows.
fn remember(path: &CStr) {
    let bytes = path.to_bytes_with_nul();
    // SAFETY: a new mapping, written within its length.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), bytes.len(), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if page != libc::MAP_FAILED {
            ptr::copy_nonoverlapping(bytes.as_ptr(), page.cast(), bytes.len());
            NAME.store(page.cast(), Ordering::Release);
        }
    }
}

/// Whether there is room for these bytes of the file; asks for it if nobody has yet.
#[inline]
fn is_backed(offset: u64, length: u64) -> bool {
    let (first, last) = ((offset / CHUNK) as usize, ((offset + length - 1) / CHUNK) as usize);
    let is_known = BACKED.get(first).is_some_and(|chunk| chunk.load(Ordering::Relaxed) == THERE);
    (is_known && first == last) || can_be_backed(first, last)
}

#[cold]
fn can_be_backed(first: usize, last: usize) -> bool {
    let _errno = SavedErrno::save();
    let Some(chunks) = BACKED.get(first..=last) else { return false };
    chunks.iter().enumerate().all(|(index, chunk)| match chunk.load(Ordering::Relaxed) {
        THERE => true,
        NO_ROOM => false,
        _ => reopened(|file| back(file, first + index)),
    })
}

/// Does something with the file, opened again.
fn reopened(what: impl FnOnce(i32) -> Result<(), i32>) -> bool {
    let name = NAME.load(Ordering::Acquire);
    if name.is_null() {
        return false;
    }
    // SAFETY: a path that ends in NUL; the descriptor is ours, and the status a local.
    unsafe {
        let file = libc::open(name.cast(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW);
        if file < 0 {
            return false;
        }
        let mut status = core::mem::zeroed::<libc::stat>();
        let is_ours = libc::fstat(file, &raw mut status) == 0
            && status.st_dev == DEVICE.load(Ordering::Relaxed)
            && status.st_ino == INODE.load(Ordering::Relaxed);
        let done = is_ours && what(file).is_ok();
        libc::close(file);
        done
    }
}

/// Asks for room for a chunk.
fn back(file: i32, chunk: usize) -> Result<(), i32> {
    let offset = chunk as u64 * CHUNK;
    let length = if FILE_SIZE - offset < CHUNK { FILE_SIZE - offset } else { CHUNK };
    // Where the file system cannot do this, the C library writes to every page.
    // SAFETY: on a descriptor of ours, within the file.
    let error = unsafe { libc::posix_fallocate(file, offset as libc::off_t, length as libc::off_t) };
    if let Some(state) = BACKED.get(chunk) {
        state.store(if error == 0 { THERE } else { NO_ROOM }, Ordering::Release);
    }
    if error == 0 { Ok(()) } else { Err(error) }
}

/// Finds out where the file goes; on an error, `directory` is what was tried last.
fn choose(directory: &mut Text<PATH>) -> Result<(), i32> {
    if let Some(chosen) = environment::get(DIRECTORY_VARIABLE) {
        directory.push(chosen.to_bytes());
        return usable(directory, false);
    }
    // SAFETY: takes no arguments.
    let user = unsafe { libc::getuid() } as u64;
    let runtime = environment::get(c"XDG_RUNTIME_DIR").map_or(&b""[..], CStr::to_bytes);
    let own = |parent: &[u8]| Text::new().with(parent).with(b"/mpiprobe-").with_number(user);
    let candidates = [Text::new().with(runtime).with(b"/mpiprobe"), own(b"/dev/shm"), own(b"/tmp")];
    let mut last = Err(libc::ENOENT);
    for candidate in candidates.into_iter().skip(usize::from(runtime.first() != Some(&b'/'))) {
        *directory = candidate;
        last = usable(directory, true);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Whether files can be made in a directory, which is made if need be. One that others know of must be this user's alone.
fn usable(directory: &Text<PATH>, private: bool) -> Result<(), i32> {
    if !directory.is_whole() {
        return Err(libc::ENAMETOOLONG);
    }
    let path = directory.as_c_str().as_ptr();
    // SAFETY: a path that ends in NUL, and a local.
    unsafe {
        if libc::mkdir(path, 0o700) != 0 && errno() != libc::EEXIST {
            return Err(errno());
        }
        let mut status = core::mem::zeroed::<libc::stat>();
        let look = if private { libc::lstat } else { libc::stat };
        if look(path, &raw mut status) != 0 {
            return Err(errno());
        }
        if status.st_mode & libc::S_IFMT != libc::S_IFDIR {
            return Err(libc::ENOTDIR);
        }
        if private && (status.st_uid != libc::getuid() || status.st_mode & 0o077 != 0) {
            return Err(libc::EACCES);
        }
        if libc::access(path, libc::W_OK | libc::X_OK) != 0 {
            return Err(errno());
        }
    }
    Ok(())
}
