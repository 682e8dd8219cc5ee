//! A trace that goes to somebody elsewhere, chunk by chunk: nobody who is slow keeps rings from being read.

use std::{
    fmt,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

/// What may wait for somebody elsewhere to take it, bytes: some four million calls.
const MOST_WAITING: usize = 16 << 20;

/// Gives a chunk to somebody.
type Give = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Somebody elsewhere.
#[derive(Clone)]
pub struct Listener(Arc<Give>);

impl Listener {
    /// `give`: waits until the chunk has been taken; whether it was, and another one may be.
    pub fn new(give: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(give))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

/// Chunks on their way to a listener.
#[derive(Debug)]
pub(super) struct ChunkStream {
    to: Sender<Vec<u8>>,
    state: Arc<State>,
    giving: JoinHandle<()>,
    /// Bytes that were given.
    length: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that wait.
    waiting: AtomicUsize,
    /// Nothing more is taken.
    is_over: AtomicBool,
}

impl ChunkStream {
    pub(super) fn begin(Listener(give): Listener) -> io::Result<Self> {
        let (to, chunks) = channel::<Vec<u8>>();
        let state = Arc::<State>::default();
        let of_thread = Arc::clone(&state);
        let giving = Builder::new().name("chunks".into()).spawn(move || {
            while let Ok(chunk) = chunks.recv() {
                if !give(&chunk) {
                    of_thread.is_over.store(true, Ordering::Relaxed);
                    return;
                }
                of_thread.waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
            }
        })?;
        Ok(Self { to, state, giving, length: 0 })
    }

    /// Waits until all has been taken, or will not be. Gives the bytes that were given.
    pub(super) fn finish(self) -> io::Result<u64> {
        let Self { to, state, giving, length } = self;
        drop(to);
        // What it has panicked about has been told.
        let _ = giving.join();
        if state.is_over.load(Ordering::Relaxed) { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(length) }
    }
}

impl Write for ChunkStream {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        if self.state.is_over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let waiting = self.state.waiting.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        let is_too_much = waiting > MOST_WAITING && waiting > chunk.len();
        if is_too_much || self.to.send(chunk.to_owned()).is_err() {
            self.state.waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
            return Err(io::Error::other("whoever asked for it does not take it as quickly as it comes"));
        }
        self.length += chunk.len() as u64;
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc::sync_channel};

    use super::*;

    #[test]
    fn whoever_is_slow_keeps_nobody_waiting() {
        let (go, gone) = sync_channel::<()>(0);
        let gone = Mutex::new(gone);
        let taken = Arc::<Mutex<Vec<usize>>>::default();
        let of_listener = Arc::clone(&taken);
        let listener = Listener::new(move |chunk| {
            let is_wanted = gone.lock().unwrap().recv().is_ok();
            of_listener.lock().unwrap().push(chunk.len());
            is_wanted
        });
        let mut stream = ChunkStream::begin(listener).unwrap();
        let half = vec![0; MOST_WAITING / 2];
        let mut write = |chunk: &[u8]| stream.write(chunk);
        assert_eq!((write(&half).ok(), write(&half).ok()), (Some(half.len()), Some(half.len())));
        assert!(write(&[0]).unwrap_err().to_string().contains("as quickly as it comes"));
        go.send(()).unwrap();
        // The second one is asked for once the first has been taken off.
        go.send(()).unwrap();
        assert_eq!(write(&[1]).ok(), Some(1));
        go.send(()).unwrap();
        assert_eq!(stream.finish().unwrap(), MOST_WAITING as u64 + 1);
        assert_eq!(*taken.lock().unwrap(), [half.len(), half.len(), 1]);
    }

    #[test]
    fn whoever_goes_away_is_not_waited_for() {
        let mut stream = ChunkStream::begin(Listener::new(|_| false)).unwrap();
        while stream.write(&[0]).is_ok() {}
        assert_eq!(stream.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        // What nobody was given is not as if somebody had it.
        let mut stream = ChunkStream::begin(Listener::new(|_| false)).unwrap();
        stream.write_all(&[0]).unwrap();
        assert!(stream.finish().is_err());
    }
}
