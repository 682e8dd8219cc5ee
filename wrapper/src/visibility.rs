//! Programs that load MPI themselves while they run find it by asking whether its functions are there: as long as MPI is not,
//! this library's must not be seen either.
//!
//! A symbol without a value is none to the dynamic linker. So in programs that do not have MPI from the start, the values are taken
//! out of this library's own table of symbols, before anybody can ask: such a program runs as if the library were not there. They
//! are put back when the program is about to load something that needs MPI ([`crate::loading`]), before that is bound to anybody.

use core::{
    ffi::CStr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    entry::ENTRIES,
    imports,
    next::{after_this, look_up},
    system,
};

unsafe extern "C" {
    /// The beginning of this library in memory, and its dynamic section: made by the linker.
    static __ehdr_start: libc::Elf64_Ehdr;
    static _DYNAMIC: [Dynamic; 0];
}

/// `Elf64_Dyn`
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_STRSZ: i64 = 10;

const PAGE: u64 = 4096;

/// What was taken out, in the order of the table of symbols.
static VALUES: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];

static IS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// To be called once, when this library has been loaded.
pub(crate) fn start() {
    if after_this(c"PMPI_Init").is_none() && after_this(c"MPI_Init").is_none() {
        let done = change(|_, kept, value| {
            kept.store(value, Ordering::Relaxed);
            0
        });
        IS_HIDDEN.store(done, Ordering::Release);
    } else {
        change(|name, _, value| if look_up(name).is_some() { value } else { 0 });
    }
    imports::forget_error();
}

/// Whether MPI's functions are not to be seen.
pub(crate) fn is_hidden() -> bool {
    IS_HIDDEN.load(Ordering::Acquire)
}

/// MPI has been loaded: shows its functions. Those that the library lacks are not invented: programs ask for them before they use them.
pub(crate) fn show() {
    if IS_HIDDEN.swap(false, Ordering::AcqRel) {
        change(|name, kept, _| if look_up(name).is_some() { kept.load(Ordering::Relaxed) } else { 0 });
    }
}

/// Gives each function's symbol the value that follows from its name, the place where a value can be kept, and the present one.
/// Tells whether that was possible.
fn change(mut value_of: impl FnMut(&CStr, &AtomicU64, u64) -> u64) -> bool {
    let base = &raw const __ehdr_start as u64;
    let (Some(symbols), Some(names), Some(length)) = (entry(DT_SYMTAB), entry(DT_STRTAB), entry(DT_STRSZ)) else {
        return false;
    };
    // Some dynamic linkers write addresses here, others leave what was in the file.
    let address = |value: u64| if value < base { base + value } else { value };
    let (symbols, names) = (address(symbols), address(names));
    let size = size_of::<libc::Elf64_Sym>() as u64;
    // Linkers put the names behind the symbols.
    let Some(count) = names.checked_sub(symbols).and_then(|bytes| bytes.checked_div(size)) else { return false };
    let (start, end) = (symbols / PAGE * PAGE, (symbols + count * size).next_multiple_of(PAGE));
    let Some(protection) = protection(base, symbols) else { return false };
    // SAFETY: pages of this library, within its first segment; the table is the linker's, and names are looked at within theirs.
    unsafe {
        if system::protect(start, end - start, protection | libc::PROT_WRITE).is_err() {
            return false;
        }
        let mut kept = VALUES.iter();
        for index in 1..count {
            let symbol = (symbols + index * size) as *mut libc::Elf64_Sym;
            let name = u64::from((*symbol).st_name);
            if name >= length {
                break;
            }
            let name = CStr::from_ptr((names + name) as *const core::ffi::c_char);
            let is_mpi = name.to_bytes().starts_with(b"MPI_") || name.to_bytes().starts_with(b"PMPI_");
            if (*symbol).st_shndx == 0 || !is_mpi {
                continue;
            }
            let Some(kept) = kept.next() else { break };
            let value = value_of(name, kept, (*symbol).st_value);
            // Others may be looking at the same time: they see the one or the other.
            (&raw mut (*symbol).st_value).write_volatile(value);
        }
        let _ = system::protect(start, end - start, protection);
    }
    true
}

/// A value of the dynamic section.
fn entry(tag: i64) -> Option<u64> {
    // SAFETY: the section ends in an entry of zeros.
    unsafe {
        let mut entry = (&raw const _DYNAMIC).cast::<Dynamic>();
        while (*entry).tag != DT_NULL {
            if (*entry).tag == tag {
                return Some((*entry).value);
            }
            entry = entry.add(1);
        }
    }
    None
}

/// How the segment with an address is mapped.
fn protection(base: u64, address: u64) -> Option<i32> {
    // SAFETY: the headers of this library, which are mapped with it.
    unsafe {
        let header = &raw const __ehdr_start;
        let first = (base + (*header).e_phoff) as *const libc::Elf64_Phdr;
        for index in 0..usize::from((*header).e_phnum) {
            let segment = first.add(index).read();
            let start = base + segment.p_vaddr;
            if segment.p_type == libc::PT_LOAD && (start..start + segment.p_memsz).contains(&address) {
                let bit = |flag: u32, protection: i32| if segment.p_flags & flag != 0 { protection } else { 0 };
                return Some(
                    bit(libc::PF_R, libc::PROT_READ)
                        | bit(libc::PF_W, libc::PROT_WRITE)
                        | bit(libc::PF_X, libc::PROT_EXEC),
                );
            }
        }
    }
    None
}
