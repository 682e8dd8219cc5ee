//! Paths that the user names are opened with the user's rights, not with those of mpiprobe's file.
//!
//! With file capabilities, mpiprobe may look into processes of others, and so follow `/proc/PID/cwd`, `root` and `fd` to files that
//! the user could never reach. The kernel asks the thread that opens something: for that time its effective capabilities are those
//! that the user had before.

use std::{io, marker::PhantomData};

use rustix::{
    process::getuid,
    thread::{CapabilitySet, CapabilitySets, capabilities, capability_is_in_ambient_set, set_capabilities},
};

/// Does something with the rights of whoever has started mpiprobe. A process that is started here begins with them as well.
pub fn with_callers_rights<T, E: From<io::Error>>(what: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let _lowered = Lowered::new()?;
    what()
}

/// The same without any rights at all, whosever they are.
pub(crate) fn without_any_rights<T>(what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = capabilities(None)?;
    let _lowered = Lowered::to(before, CapabilitySet::empty())?;
    what()
}

/// For ever, where nothing is done that needs more: threads that are started later begin without them too.
pub fn put_down_files_rights() -> io::Result<()> {
    if getuid().is_root() {
        return Ok(());
    }
    let now = capabilities(None)?;
    let own = callers(now.effective);
    Ok(set_capabilities(None, CapabilitySets { effective: own, permitted: own, ..now })?)
}

/// Until it is dropped, this thread has no rights that come from mpiprobe's file.
struct Lowered {
    before: Option<CapabilitySets>,
    /// Rights are a thread's own.
    _of_this_thread: PhantomData<*const ()>,
}

impl Lowered {
    fn new() -> io::Result<Self> {
        let nothing = Self { before: None, _of_this_thread: PhantomData };
        // Root has its rights of its own, and they say nothing about what root may do without them.
        if getuid().is_root() {
            return Ok(nothing);
        }
        let before = capabilities(None)?;
        let own = callers(before.effective);
        if own == before.effective { Ok(nothing) } else { Self::to(before, own) }
    }

    fn to(before: CapabilitySets, effective: CapabilitySet) -> io::Result<Self> {
        set_capabilities(None, CapabilitySets { effective, ..before })?;
        Ok(Self { before: Some(before), _of_this_thread: PhantomData })
    }
}

impl Drop for Lowered {
    fn drop(&mut self) {
        if let Some(before) = self.before
            && let Err(error) = set_capabilities(None, before)
        {
            tracing::warn!("rights that were put aside cannot be taken up again: {error}");
        }
    }
}

/// Of these capabilities, those that are not the file's: executing a file with capabilities of its own clears the ambient set
/// (capabilities(7)).
fn callers(effective: CapabilitySet) -> CapabilitySet {
    let all = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    let is_own = |capability: CapabilitySet| capability_is_in_ambient_set(capability).unwrap_or(false);
    all.filter(|capability| effective.contains(*capability) && is_own(*capability)).collect()
}

#[cfg(test)]
mod tests {
    use rustix::thread::set_thread_uid;

    use super::*;

    fn effective() -> CapabilitySet {
        capabilities(None).unwrap().effective
    }

    #[test]
    fn root_keeps_its_rights() {
        let before = effective();
        with_callers_rights(|| {
            assert!(!getuid().is_root() || effective() == before);
            io::Result::Ok(())
        })
        .unwrap();
        assert_eq!(effective(), before);
    }

    /// On a thread whose real user is somebody while its capabilities are still there, as after executing such a file.
    #[test]
    fn rights_of_the_file_are_put_aside_and_taken_up_again() {
        if !getuid().is_root() {
            return;
        }
        let on_a_thread_of_its_own = || {
            let all = capabilities(None).unwrap();
            rustix::thread::set_keep_capabilities(true).unwrap();
            set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
            set_capabilities(None, all).unwrap();
            let told = with_callers_rights(|| io::Result::Ok(effective()));
            assert_eq!(told.unwrap(), CapabilitySet::empty());
            assert_eq!(effective(), all.effective);
            // An error and a return through it leave nothing put aside.
            assert!(with_callers_rights(|| io::Result::<()>::Err(io::ErrorKind::NotFound.into())).is_err());
            assert_eq!(effective(), all.effective);
            put_down_files_rights().unwrap();
            assert_eq!(capabilities(None).unwrap().permitted, CapabilitySet::empty());
        };
        std::thread::spawn(on_a_thread_of_its_own).join().unwrap();
    }
}
