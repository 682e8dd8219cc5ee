//! Slots of threads: taken at a thread's first call, given back when it ends.
//!
//! A slot's statistics stay with it: the next thread that has the slot goes on adding to them, so that any number of threads,
//! one after the other, needs no more room than those that live at once.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence},
};

use mpiprobe_common::{
    CALIBRATION_FUNCTION, EndedThread, FUNCTION_SLOTS, FunctionStats, Loss, ThreadState,
    file::{CallsOff, ENDED_THREADS_REGION, THREADS, THREADS_REGION},
};

use crate::{
    clock::{Clock, monotonic_ns},
    file, identity, imports, local, phases, process,
    semantics::{CallCache, Given, Sizes},
    system,
};

/// What the wrapper knows of a thread. Only the thread itself uses it, but for what another one tells it.
#[repr(C)]
pub(crate) struct Local {
    /// In the file.
    pub(crate) state: *mut ThreadState,
    /// When the open call was entered, ticks.
    pub(crate) started: u64,
    pub(crate) clock: Clock,
    /// Slot.
    pub(crate) number: u32,
    /// In the file; null: there is no room for it.
    pub(crate) off: *mut CallsOff,
    /// The phase that `stats` are of: its number plus one.
    pub(crate) phase_plus_1: u32,
    pub(crate) reserved: u32,
    /// The stack pointer of an open call that has returned in another thread.
    pub(crate) returned_elsewhere: AtomicU64,
    /// Before the line of this number there is room enough in a ring that is the thread's own.
    pub(crate) room_until: u64,
    /// In the file, by function id; null: not looked for yet.
    pub(crate) stats: [*mut FunctionStats; FUNCTION_SLOTS as usize],
    pub(crate) sizes: Sizes,
    pub(crate) call_cache: CallCache,
    /// Of the open call.
    pub(crate) given: Given,
}

/// By slot: whether somebody has it, and its [`Local`] once it has been made.
static TAKEN: [AtomicU8; THREADS as usize] = [const { AtomicU8::new(0) }; THREADS as usize];
static LOCALS: [AtomicPtr<Local>; THREADS as usize] = [const { AtomicPtr::new(ptr::null_mut()) }; THREADS as usize];

/// Those of the first slots: part of the library, so that nobody need be asked for memory. Not touched, they take none.
static FIRST: [First; 32] = [const { First(UnsafeCell::new(MaybeUninit::zeroed())) }; 32];

struct First(UnsafeCell<MaybeUninit<Local>>);

// SAFETY: used by the thread that has the slot only.
unsafe impl Sync for First {}

/// The key whose destructor tells that a thread ends, plus one; 0: there is none.
static KEY_PLUS_1: AtomicU32 = AtomicU32::new(0);

/// To be called once, before any thread takes a slot.
pub(crate) fn start() {
    identity::start();
    if let Some(key) = imports::new_key(ended) {
        KEY_PLUS_1.store(key + 1, Ordering::Release);
    }
}

/// Gives the current thread a slot; `None` if there is no room, which is counted.
pub(crate) fn take() -> Option<NonNull<Local>> {
    let is_free = |slot: &AtomicU8| {
        slot.load(Ordering::Relaxed) == 0 && slot.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    let taken = TAKEN.iter().position(is_free).and_then(|slot| prepare(slot as u32));
    if let Some(local) = taken {
        local::set(local.as_ptr());
        watch_end(local);
    } else {
        process::count_loss(Loss::ThreadTableFull);
    }
    taken
}

fn prepare(slot: u32) -> Option<NonNull<Local>> {
    let state = file::place(THREADS_REGION, slot)?.as_ptr();
    let place = LOCALS.get(slot as usize)?;
    let mut local = place.load(Ordering::Acquire);
    if local.is_null() {
        local = FIRST.get(slot as usize).map_or_else(allocate, |first| Some(first.0.get().cast()))?;
        place.store(local, Ordering::Release);
    }
    // SAFETY: memory that nobody else uses: the slot is taken. Zeroed, as a mapping begins, it is a valid `Local`.
    unsafe {
        (*local).state = state;
        (*local).number = slot;
        (*local).returned_elsewhere.store(0, Ordering::Relaxed);
        (*local).off = phases::place_of_off(slot);
        (*local).clock = Clock::new();
        let id = identity::of_thread();
        let sequence = (*state).sequence;
        *state = ThreadState { sequence, ..ThreadState::ZERO };
        compiler_fence(Ordering::SeqCst);
        (&raw mut (*state).id).write_volatile(id);
    }
    process::raise_used_threads(slot + 1);
    NonNull::new(local)
}

/// A thread's state and statistics that are in no file. Gone when it is dropped.
pub(crate) struct Scratch {
    pub(crate) local: NonNull<Local>,
}

#[repr(C)]
struct ScratchMemory {
    local: Local,
    state: ThreadState,
    stats: FunctionStats,
}

/// Makes one, with statistics of the calibration's function.
pub(crate) fn scratch() -> Option<Scratch> {
    let memory: *mut ScratchMemory = allocate()?;
    // SAFETY: zeroed memory of the right size, which nobody else knows.
    unsafe {
        (*memory).local.state = &raw mut (*memory).state;
        if let Some(place) = (*memory).local.stats.get_mut(CALIBRATION_FUNCTION as usize) {
            *place = &raw mut (*memory).stats;
        }
        NonNull::new(&raw mut (*memory).local).map(|local| Scratch { local })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the beginning of the mapping that `scratch` has made; nobody knows it any more.
        unsafe { system::unmap(self.local.as_ptr().cast(), size_of::<ScratchMemory>()) };
    }
}

/// Zeroed memory for a value of which that is a valid form.
fn allocate<T>() -> Option<*mut T> {
    system::new_memory(size_of::<T>()).ok().map(<*mut u8>::cast)
}

fn watch_end(local: NonNull<Local>) {
    if let Some(key) = KEY_PLUS_1.load(Ordering::Acquire).checked_sub(1) {
        imports::set_of_key(key, local.as_ptr().cast());
    }
}

/// The current thread ends: what it has counted goes to its process, its slot to whoever comes next.
unsafe extern "C" fn ended(local: *mut libc::c_void) {
    let local: *mut Local = local.cast();
    // In a forked child the slots are the parent's.
    if local::get() != local || file::base().is_none() {
        return;
    }
    // SAFETY: the thread's own.
    unsafe {
        let state = (*local).state;
        fold(&*state);
        (*state).sequence += 1;
        compiler_fence(Ordering::SeqCst);
        (&raw mut (*state).id).write_volatile(0);
        (*state).calls = 0;
        (*state).time_ns = 0;
        (*state).inner_calls = 0;
        (*state).open.function_plus_1 = 0;
        compiler_fence(Ordering::SeqCst);
        (*state).sequence += 1;
        local::set(ptr::null_mut());
        if let Some(slot) = TAKEN.get((*local).number as usize) {
            slot.store(0, Ordering::Release);
        }
    }
}

fn fold(state: &ThreadState) {
    let Some(counters) = process::counters() else { return };
    let add = |counter: *mut u64, value: u64| {
        // SAFETY: a word of the mapped counters.
        unsafe { AtomicU64::from_ptr(counter) }.fetch_add(value, Ordering::Relaxed)
    };
    // Its calls are timed by another clock, which may be ahead of this one for a moment.
    let ended = EndedThread::of(state, monotonic_ns().max(state.last_return_ns));
    let counters = counters.as_ptr();
    // SAFETY: places within the mapped counters.
    let number = unsafe {
        add(&raw mut (*counters).ended_threads_span_ns, ended.span_ns());
        add(&raw mut (*counters).ended_threads_calls, ended.calls);
        add(&raw mut (*counters).ended_threads_time_ns, ended.time_ns);
        add(&raw mut (*counters).inner_calls, state.inner_calls);
        if state.open_function().is_some() {
            add(&raw mut (*counters).open_at_end, 1);
            add(&raw mut (*counters).open_at_end_ns, ended.open_ns);
        }
        AtomicU64::from_ptr(&raw mut (*counters).ended_threads).fetch_add(1, Ordering::Release)
    };
    remember(state.id, number, ended);
}

/// Writes down what a thread has done, if there is room; else it is in the sums only.
fn remember(id: u64, number: u64, ended: EndedThread) {
    let place = EndedThread::place(id, number).and_then(|place| file::place(ENDED_THREADS_REGION, place));
    let Some(place) = place.map(NonNull::<EndedThread>::as_ptr) else { return };
    // SAFETY: an entry of the mapped table that is this thread's alone.
    unsafe {
        *place = EndedThread { ended_ns: 0, ..ended };
        AtomicU64::from_ptr(&raw mut (*place).ended_ns).store(ended.ended_ns, Ordering::Release);
    }
}

/// In a forked child: the slot is the parent's.
pub(crate) fn forget() {
    local::set(ptr::null_mut());
}
