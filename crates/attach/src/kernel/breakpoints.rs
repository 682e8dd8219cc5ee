//! Breakpoints are put into programs, and taken out, to the end, also if this process exits meanwhile.
//!
//! A process that exits has its threads killed, and the kernel gives up halfway what a thread that is to be killed does to breakpoints
//! ("failed to unregister, leaking uprobe", `kernel/events/uprobes.c`): nobody is harmed, but each call pays for a trap as long as its process
//! lives. So `exit(3)` waits for what has begun, and nothing more begins then: the kernel detaches what is left as it closes the descriptors,
//! which nothing breaks off. SIGKILL does not wait.
#![expect(unsafe_code, reason = "atexit(3) is a C function, and not everything is closed")]

use std::{
    io,
    mem::ManuallyDrop,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Condvar, Mutex, Once, PoisonError},
    time::Duration,
};

/// The longest that an exit waits. On a busy machine the kernel may take seconds for a library that many processes have.
const PATIENCE: Duration = Duration::from_secs(30);

struct Changes {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    under_way: usize,
    has_exited: bool,
}

static CHANGES: Changes = Changes::new();

impl Changes {
    const fn new() -> Self {
        Self { state: Mutex::new(State { under_way: 0, has_exited: false }), ended: Condvar::new() }
    }

    /// `None`: the process exits, and no change may begin.
    fn begin(&self) -> Option<Change<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_exited {
            return None;
        }
        state.under_way += 1;
        drop(state);
        Some(Change(self))
    }

    /// No other one begins from now on; waits until those that have begun are through.
    fn exit(&self, patience: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_exited = true;
        // Whether they are or not.
        drop(self.ended.wait_timeout_while(state, patience, |state| state.under_way > 0));
    }
}

/// One that has begun, until it is dropped.
struct Change<'a>(&'a Changes);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).under_way -= 1;
        self.0.ended.notify_all();
    }
}

/// One of this process; `None`: it exits.
fn begin() -> Option<Change<'static>> {
    static IS_HEARD: Once = Once::new();
    IS_HEARD.call_once(|| {
        // SAFETY: a function of this program, which does not unwind. Where there is no room for it, exits do not wait.
        unsafe { libc::atexit(at_exit) };
    });
    CHANGES.begin()
}

extern "C" fn at_exit() {
    CHANGES.exit(PATIENCE);
}

/// A descriptor that breakpoints depend on: they are taken out when it is dropped.
#[derive(Debug)]
pub(crate) struct Breakpoints(ManuallyDrop<OwnedFd>);

impl Breakpoints {
    /// Of a system call that puts them in.
    ///
    /// # Errors
    /// That of the call; `Interrupted`: the process exits.
    pub(super) fn by(call: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<Self> {
        let _change = begin().ok_or(io::ErrorKind::Interrupted)?;
        call().map(ManuallyDrop::new).map(Self)
    }
}

impl AsFd for Breakpoints {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Breakpoints {
    fn drop(&mut self) {
        // If the process exits, the kernel does it soon.
        if let Some(_change) = begin() {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn an_exit_waits_for_what_has_begun_and_nothing_begins_then() {
        let changes = Changes::new();
        let (first, second) = (changes.begin().unwrap(), changes.begin().unwrap());
        let (to, exited) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                changes.exit(Duration::from_mins(10));
                to.send(()).unwrap();
            });
            drop(first);
            while changes.begin().is_some() {
                assert!(exited.try_recv().is_err());
            }
            assert!(changes.begin().is_none() && exited.try_recv().is_err(), "one is under way");
            drop(second);
            exited.recv().unwrap();
        });
        assert!(changes.begin().is_none());
        assert_eq!(changes.state.lock().unwrap().under_way, 0);
    }

    #[test]
    fn an_exit_does_not_wait_for_ever() {
        let changes = Changes::new();
        let change = changes.begin();
        changes.exit(Duration::from_millis(1));
        drop(change);
        changes.exit(Duration::from_mins(10));
    }
}
