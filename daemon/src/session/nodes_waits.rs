//! Who waits for whom in a job on several nodes: looked for in the latest calls of all of them, again and again while they come.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::Builder,
    time::{Duration, Instant},
};

use mpiprobe_model::{PendingEnds, WaitStates};
use mpiprobe_replay::analyse;
use mpiprobe_report::present::say;
use mpiprobe_trace::Span;
use mpiprobe_view::{CallsOfMoment, KeptCalls, KeptMoment, KnownClocks};
use tokio::sync::oneshot::{Receiver, channel};

use super::trace::own_cpu_ns;

/// From one look to the next, at least.
const PAUSE: Duration = Duration::from_millis(500);
/// The same, by what looks take: a quarter of a core is theirs.
const PAUSE_SHARE: u32 = 3;

/// A thread that looks.
#[derive(Debug)]
pub(super) struct NodesWaits {
    shared: Arc<Shared>,
    /// Closed when it has ended.
    looking: Receiver<()>,
}

#[derive(Debug, Default)]
struct Shared {
    now: Mutex<Now>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    latest: Option<WaitStates>,
    /// No more calls will come.
    is_over: bool,
}

impl NodesWaits {
    /// `kept`: the latest calls of each node.
    pub(super) fn begin(kept: Vec<KeptCalls>) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let (ended, looking) = channel();
        let look = move || {
            theirs.look_again_and_again(&kept);
            drop(ended);
        };
        Builder::new().name("waits".into()).spawn(look)?;
        Ok(Self { shared, looking })
    }

    /// What is known by now.
    pub(super) fn latest(&self) -> Option<WaitStates> {
        self.shared.lock().latest.clone()
    }

    /// All calls are there that will be: waits until it is known what comes of them, which may take seconds.
    pub(super) async fn finish(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.over.notify_all();
        // That it is closed is all that is ever told.
        let _ = (&mut self.looking).await;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_again_and_again(&self, kept: &[KeptCalls]) {
        let mut clocks = KnownClocks::default();
        let mut pause = PAUSE;
        loop {
            let is_running = |now: &mut Now| !now.is_over;
            let waited = self.over.wait_timeout_while(self.lock(), pause, is_running);
            let is_over = waited.unwrap_or_else(PoisonError::into_inner).0.is_over;
            let began = Instant::now();
            match look(kept, &mut clocks, is_over) {
                Ok(states) => self.lock().latest = states,
                Err(why) => {
                    say(format_args!("it is not known any more who waits for whom: {why}"));
                    return;
                }
            }
            if is_over {
                return;
            }
            pause = PAUSE.max(began.elapsed() * PAUSE_SHARE);
        }
    }
}

/// What the calls that are kept tell; `None`: there are none yet.
fn look(kept: &[KeptCalls], clocks: &mut KnownClocks, is_over: bool) -> Result<Option<WaitStates>, String> {
    let kept = KeptMoment::of(kept).map_err(|error| error.to_string())?;
    let moment = CallsOfMoment::of(&kept, clocks).map_err(|error| error.to_string())?;
    let (whole, known_until_ns) = (moment.span(), moment.known_until_ns());
    if whole.until_ns == 0 || !is_over && known_until_ns == 0 {
        return Ok(None);
    }
    let span = Span {
        // From the beginning, if that is there.
        from_ns: if moment.is_short() { whole.from_ns.max(1) } else { 0 },
        until_ns: if is_over { u64::MAX } else { known_until_ns },
    };
    let states = analyse(moment.trace(), moment.clocks(), span, 1, |_| {}).map_err(|error| error.to_string())?;
    let mut states = WaitStates { is_short: moment.is_short(), own_cpu_ns: own_cpu_ns(), ..states };
    if !is_over {
        // Others may yet come.
        let PendingEnds { sends, receives, collective_calls, .. } = &mut states.pending;
        let unmatched = &mut states.unmatched;
        for (pending, unmatched) in [
            (sends, &mut unmatched.sends),
            (receives, &mut unmatched.receives),
            (collective_calls, &mut unmatched.incomplete_collective_calls),
        ] {
            *pending = pending.saturating_add(std::mem::take(unmatched));
        }
        states.complete = states.unmatched.is_empty();
    }
    Ok(Some(states))
}
