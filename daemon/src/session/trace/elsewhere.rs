//! Calls that somebody elsewhere keeps: in memory of theirs, into files of theirs.

use std::{
    io::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mpiprobe_trace::store::Window;

use super::{
    TraceError, in_memory,
    options::HANDED_ON,
    stream::{ChunkStream, Listener},
};

/// What is in a window, on its way to somebody who keeps the same.
#[derive(Debug)]
pub(in crate::session) struct HandedOn(Arc<Mutex<Stream>>);

/// A recording in memory that somebody elsewhere keeps, and writes down.
#[derive(Debug)]
pub(super) struct Elsewhere {
    window: Arc<Window>,
    handed_on: HandedOn,
}

#[derive(Debug)]
enum Stream {
    GoesOn(ChunkStream),
    /// What comes afterwards may need what is missing.
    Broken(String),
    Over,
}

impl HandedOn {
    /// All that is there and what comes, as far as it is taken in time. `broken` is told why no more is.
    pub(super) fn begin(
        window: &Window,
        to: Listener,
        broken: impl Fn(&io::Error) + Send + 'static,
    ) -> Result<Self, TraceError> {
        let stream = ChunkStream::begin(to).map_err(TraceError::Thread)?;
        let stream = Arc::new(Mutex::new(Stream::GoesOn(stream)));
        let of_relay = Arc::clone(&stream);
        let tell = move |message: &[u8]| {
            let mut stream = lock(&of_relay);
            let Stream::GoesOn(chunks) = &mut *stream else { return false };
            if let Err(error) = chunks.write_all(message) {
                broken(&error);
                *stream = Stream::Broken(error.to_string());
                return false;
            }
            true
        };
        window.relay(tell).map_err(in_memory)?;
        Ok(Self(stream))
    }

    fn trouble(&self) -> Option<String> {
        match &*lock(&self.0) {
            Stream::Broken(why) => Some(why.clone()),
            Stream::GoesOn(_) | Stream::Over => None,
        }
    }

    /// Waits until all has been taken, or will not be: what is said afterwards comes after it.
    pub(in crate::session) fn finish(self) {
        let stream = std::mem::replace(&mut *lock(&self.0), Stream::Over);
        if let Stream::GoesOn(chunks) = stream {
            // Whoever does not take it knows that.
            let _ = chunks.finish();
        }
    }
}

impl Elsewhere {
    /// From now on, before there is anything to be recorded.
    pub(super) fn begin(to: Listener) -> Result<Self, TraceError> {
        let window = Arc::new(Window::new(HANDED_ON));
        // It is asked for.
        let handed_on = HandedOn::begin(&window, to, |_| {})?;
        Ok(Self { window, handed_on })
    }

    /// What is put into it is given.
    pub(super) fn window(&self) -> Arc<Window> {
        Arc::clone(&self.window)
    }

    /// What has been given so far is to be written down.
    pub(super) fn want(&self, why: &str) {
        self.window.want(why);
    }

    /// Why no more is given.
    pub(super) fn trouble(&self) -> Option<String> {
        self.handed_on.trouble()
    }

    /// Waits until all has been taken, or will not be.
    pub(super) fn finish(self) {
        self.handed_on.finish();
    }
}

fn lock(stream: &Mutex<Stream>) -> MutexGuard<'_, Stream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::sync_channel, thread};

    use super::*;

    /// Invariant LIVE-AGREES.
    #[test]
    fn what_has_been_handed_on_is_taken_before_the_end() {
        let window = Window::new(HANDED_ON);
        let (to, taken) = sync_channel::<()>(0);
        let listener = Listener::new(move |_| to.send(()).is_ok());
        let handed_on = HandedOn::begin(&window, listener, |_| {}).unwrap();
        (1..4).for_each(|ns| window.note(ns, Vec::new()));
        let finishing = thread::spawn(move || handed_on.finish());
        let mut messages = 0;
        loop {
            let has_finished = finishing.is_finished();
            if taken.recv().is_err() {
                break;
            }
            assert!(!has_finished);
            messages += 1;
        }
        finishing.join().unwrap();
        assert!(messages > 3, "{messages}");
    }
}
