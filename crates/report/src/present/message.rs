//! What is said besides the results, on standard error.

use std::{
    cell::RefCell,
    fmt, io,
    io::Write as _,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

type Listener = Box<dyn Fn(&str) + Send>;
/// Who gets what single threads say.
pub type ThreadListener = Arc<dyn Fn(&str) + Send + Sync>;

/// Who gets messages instead of standard error, which may be the terminal that somebody draws on.
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

fn listener() -> MutexGuard<'static, Option<Listener>> {
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages go elsewhere as long as this lives.
#[derive(Debug)]
pub struct Diverted(());

/// Gives messages to somebody else.
pub fn divert(to: Listener) -> Diverted {
    *listener() = Some(to);
    Diverted(())
}

impl Drop for Diverted {
    fn drop(&mut self) {
        *listener() = None;
    }
}

thread_local! {
    /// Who gets what this thread says.
    static OF_THREAD: RefCell<Option<ThreadListener>> = const { RefCell::new(None) };
}

/// Messages of this thread go elsewhere as long as this lives: what the thread does is done for somebody who is not at the terminal.
#[derive(Debug)]
pub struct ThreadDiverted(PhantomData<*const ()>);

/// Gives messages of this thread to somebody else.
pub fn divert_thread(to: ThreadListener) -> ThreadDiverted {
    OF_THREAD.set(Some(to));
    ThreadDiverted(PhantomData)
}

/// Who gets messages of this thread, for another one that works for it; `None`: nobody else than of all.
pub fn thread_listener() -> Option<ThreadListener> {
    OF_THREAD.with_borrow(Clone::clone)
}

impl Drop for ThreadDiverted {
    fn drop(&mut self) {
        OF_THREAD.set(None);
    }
}

/// Whether this thread's listener has taken it.
fn is_taken_by_thread(message: &dyn fmt::Display) -> bool {
    OF_THREAD.with_borrow(|listener| listener.as_ref().map(|listener| listener(&message.to_string())).is_some())
}

/// Says a line, unless nobody listens any more: `eprintln!` would panic then.
pub fn say(message: impl fmt::Display) {
    if is_taken_by_thread(&message) {
        return;
    }
    if let Some(listener) = listener().as_ref() {
        return listener(&message.to_string());
    }
    // There is no other place to complain.
    let _ = writeln!(io::stderr().lock(), "mpiprobe: {message}");
}

/// Says something that the next message on the line overwrites.
pub fn say_in_passing(message: impl fmt::Display) {
    if OF_THREAD.with_borrow(Option::is_some) {
        return;
    }
    if let Some(listener) = listener().as_ref() {
        return listener(message.to_string().trim());
    }
    let _ = write!(io::stderr().lock(), "\rmpiprobe: {message}");
}

/// Standard error for the log, or whoever gets messages.
#[derive(Clone, Copy, Debug)]
pub struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(listener) = listener().as_ref() {
            listener(String::from_utf8_lossy(bytes).trim());
            return Ok(bytes.len());
        }
        io::stderr().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_speak_for_another_one() {
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let listening = Arc::clone(&heard);
        let _diverted = divert_thread(Arc::new(move |text| listening.lock().unwrap().push(text.to_owned())));
        let listener = thread_listener();
        let speaking = || {
            assert!(thread_listener().is_none());
            let _diverted = listener.map(divert_thread);
            say("something");
        };
        std::thread::scope(|scope| scope.spawn(speaking).join().unwrap());
        assert_eq!(*heard.lock().unwrap(), ["something"]);
    }
}
