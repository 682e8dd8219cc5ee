//! The file with the tables: made, mapped, and backed by memory or disk before anything is written to it.
//!
//! Writing to a mapped page for which there is no room left is a SIGBUS, which would kill the job. So room is asked for first; where
//! there is none, what would have been written is counted as lost. What most programs need is asked for when the file is made. More
//! is got by the pages themselves, with the one system call that every program makes which frees memory: the program may
//! have confined itself meanwhile, and the file may be out of its reach.

use core::{
    ffi::CStr,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering},
};

use mpiprobe_common::file::{COUNTERS_REGION, FILE_SIZE, REGIONS, Region, SUFFIX};

use crate::{
    clock::monotonic_ns,
    environment,
    message::{reason, say},
    system::{self, Descriptor},
    text::Text,
};

/// Longest path of a file.
pub(crate) const PATH: usize = 1200;

/// Directory of the user's choice: set by `mpiprobe run`.
pub(crate) const DIRECTORY_VARIABLE: &CStr = c"MPIPROBE_OUTPUT";

const PAGE: u64 = 4096;
const PAGES: usize = FILE_SIZE.div_ceil(PAGE) as usize;
/// Room beyond the first is asked for in pieces of so many pages.
const PIECE: usize = 16;

/// What is known of each page.
static BACKED: [AtomicU8; PAGES] = [const { AtomicU8::new(UNKNOWN) }; PAGES];
const UNKNOWN: u8 = 0;
const THERE: u8 = 1;
const NO_ROOM: u8 = 2;

static BASE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Where the file was mapped, also when it is not written to any more.
static MAPPED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The process that made the file.
static OWNER: AtomicU32 = AtomicU32::new(0);
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

/// Whether the tables are those of the process that asks. A child that shares the memory of its parent until it ends or becomes
/// another program (`vfork`) finds the parent's, and is told from it by nothing but its number, for which the kernel has to be asked.
pub(crate) fn is_own() -> bool {
    base().is_some() && OWNER.load(Ordering::Acquire) == system::process_id()
}

/// No table is written from now on: this is another process than the one that made the file, or nobody reads the file any more.
pub(crate) fn forget() {
    BASE.store(ptr::null_mut(), Ordering::Release);
}

/// Puts zeroed memory in the file's place if an address is in it. Threads that write to the tables go on writing, for nobody.
pub(crate) fn replace_by_memory(address: u64) -> bool {
    let start = MAPPED.load(Ordering::Acquire);
    let inside = address.checked_sub(start as u64).is_some_and(|offset| offset < FILE_SIZE);
    if start.is_null() || !inside {
        return false;
    }
    forget();
    // SAFETY: memory that only the tables' writers use, who expect nothing of what is in it.
    unsafe { system::renew_memory(start, FILE_SIZE as usize) }.is_ok()
}

/// The place of an entry of a table, once it is certain that there is room for it.
#[inline]
pub(crate) fn place<T>(region: Region<T>, index: u32) -> Option<NonNull<T>> {
    let base = base()?;
    let offset = region.at(index)?;
    if !is_backed(offset, Region::<T>::ENTRY) {
        return None;
    }
    // SAFETY: within the mapping, whose length is that of all regions together.
    Some(unsafe { base.add(offset as usize) }.cast())
}

/// The place of an entry that [`place`] has given before: the room for it is there.
#[inline]
pub(crate) fn known_place<T>(region: Region<T>, index: u32) -> Option<NonNull<T>> {
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
    system::host_name(&mut host);
    let host = CStr::from_bytes_until_nul(&host).unwrap_or_default().to_bytes();
    let pid = system::process_id();
    OWNER.store(pid, Ordering::Release);
    let path = Text::<PATH>::new().with(directory.as_bytes()).with(b"/").with(host).with(b"-").with_number(pid as u64);
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
    // Beyond this limit there is a signal instead of an error.
    if system::largest_file()? < FILE_SIZE {
        return Err(libc::EFBIG);
    }
    let file = system::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW, 0o600)?;
    let mapped = map(&file);
    if mapped.is_err() {
        system::remove(path);
    } else {
        remember(path);
    }
    mapped
}

fn map(file: &Descriptor) -> Result<(), i32> {
    file.set_length(FILE_SIZE)?;
    let status = file.status()?;
    DEVICE.store(status.st_dev, Ordering::Relaxed);
    INODE.store(status.st_ino, Ordering::Relaxed);
    back(file, 0, COUNTERS_REGION.end().div_ceil(PAGE) as usize)?;
    // The first one is there.
    for &(region, entries) in REGIONS.iter().skip(1) {
        let first = (region.offset / PAGE) as usize;
        let end = (region.offset + region.entry * u64::from(entries)).div_ceil(PAGE) as usize;
        // Where there is no room now there may be some when it is needed.
        let _ = back(file, first, end);
    }
    let base = file.map(FILE_SIZE as usize, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
    MAPPED.store(base, Ordering::Release);
    BASE.store(base, Ordering::Release);
    Ok(())
}

/// Keeps the path in memory of its own: one page that nobody else knows.
fn remember(path: &CStr) {
    let bytes = path.to_bytes_with_nul();
    if let Ok(page) = system::new_memory(bytes.len()) {
        // SAFETY: a new mapping, written within its length.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), page, bytes.len()) };
        NAME.store(page, Ordering::Release);
    }
}

/// Whether there is room for these bytes of the file; asks for it if nobody has yet.
#[inline]
fn is_backed(offset: u64, length: u64) -> bool {
    let (first, last) = ((offset / PAGE) as usize, ((offset + length - 1) / PAGE) as usize);
    let is_there = |page: usize| BACKED.get(page).is_some_and(|page| page.load(Ordering::Relaxed) == THERE);
    (is_there(first) && (first == last || is_there(last))) || can_be_backed(first, last + 1)
}

#[cold]
fn can_be_backed(first: usize, end: usize) -> bool {
    (first..end).all(|page| match BACKED.get(page).map_or(NO_ROOM, |page| page.load(Ordering::Relaxed)) {
        THERE => true,
        NO_ROOM => false,
        // The table will go on; but for its end there may be room where there is none for that.
        _ => get(page, if page + PIECE < PAGES { page + PIECE } else { PAGES }) || get(page, page + 1),
    })
}

/// Gets room for some pages.
fn get(first: usize, end: usize) -> bool {
    let Some(base) = base() else { return false };
    // SAFETY: within the mapping.
    let start = unsafe { base.as_ptr().add(first * PAGE as usize) };
    // SAFETY: pages of the tables, whose content stays as it is.
    let answer = match unsafe { system::populate(start, (end - first) * PAGE as usize) } {
        // Kernels before 5.14 do not know it.
        Err(libc::EINVAL) => reopened(|file| back(file, first, end)),
        answer => answer.map(|_| ()),
    };
    set(first, end, answer.is_ok(), end == first + 1);
    answer.is_ok()
}

/// Does something with the file, opened again.
fn reopened(what: impl FnOnce(&Descriptor) -> Result<(), i32>) -> Result<(), i32> {
    let name = NAME.load(Ordering::Acquire);
    if name.is_null() {
        return Err(libc::ENOENT);
    }
    // SAFETY: a path that ends in NUL, which is never changed.
    let file = system::open(unsafe { CStr::from_ptr(name.cast()) }, libc::O_RDWR | libc::O_NOFOLLOW, 0)?;
    let status = file.status()?;
    let is_ours = status.st_dev == DEVICE.load(Ordering::Relaxed) && status.st_ino == INODE.load(Ordering::Relaxed);
    if is_ours { what(&file) } else { Err(libc::ENOENT) }
}

/// Asks for room for some pages, of which none has been written to.
fn back(file: &Descriptor, first: usize, end: usize) -> Result<(), i32> {
    let (offset, end_offset) = (first as u64 * PAGE, end as u64 * PAGE);
    let length = if end_offset < FILE_SIZE { end_offset } else { FILE_SIZE } - offset;
    let mut answer = file.allocate(offset, length).map(|_| ());
    // Some file systems cannot do this: then a byte of each page is written.
    if matches!(answer, Err(libc::EOPNOTSUPP | libc::ENOSYS)) {
        answer = (first..end).try_for_each(|page| file.write_at(&[0], page as u64 * PAGE).map(|_| ()));
    }
    set(first, end, answer.is_ok(), false);
    answer
}

/// Notes what is known of pages; `is_last`: nobody asks again.
fn set(first: usize, end: usize, is_there: bool, is_last: bool) {
    for page in BACKED.iter().take(end).skip(first) {
        if is_there {
            page.store(THERE, Ordering::Release);
        } else if is_last {
            page.store(NO_ROOM, Ordering::Release);
        }
    }
}

/// Finds out where the file goes; on an error, `directory` is what was tried last.
fn choose(directory: &mut Text<PATH>) -> Result<(), i32> {
    if let Some(chosen) = environment::get(DIRECTORY_VARIABLE) {
        directory.push(chosen.to_bytes());
        return usable(directory, false);
    }
    let user = system::user_id() as u64;
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
    let path = directory.as_c_str();
    match system::make_directory(path, 0o700) {
        Ok(_) | Err(libc::EEXIST) => {}
        Err(error) => return Err(error),
    }
    let status = system::status(path, !private)?;
    if status.st_mode & libc::S_IFMT != libc::S_IFDIR {
        return Err(libc::ENOTDIR);
    }
    if private && (status.st_uid != system::user_id() || status.st_mode & 0o077 != 0) {
        return Err(libc::EACCES);
    }
    system::access(path, libc::W_OK | libc::X_OK).map(|_| ())
}
