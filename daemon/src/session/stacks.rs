//! Stacks for the view, here or elsewhere, looked at by a thread of their own as long as somebody looks at them: a look at many threads takes its time,
//! which counting must not wait for.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use mpiprobe_discover::Caller;
use mpiprobe_model::{Profile, RankState};
use mpiprobe_view::Stacks;

use super::{host, stack_watch::Watch};

/// From one look to the next, at least.
const PACE: Duration = Duration::from_secs(1);
/// No more than one part in so many of the time is spent on looking.
const SHARE: u32 = 20;

/// Ends the looks when it is dropped.
#[derive(Debug)]
pub(super) struct StackLooks {
    /// `None`: nobody looks at them for now.
    pids: Sender<Option<Vec<u32>>>,
}

impl StackLooks {
    /// Begins; the first look is at once. `caller`: who may see what, if not who has started this program.
    pub(super) fn begin(
        show: impl Fn(Stacks) + Clone + Send + 'static,
        caller: Option<Caller>,
        pids: Vec<u32>,
    ) -> Self {
        let (to, asked) = channel();
        let looks = Self { pids: to };
        looks.of(pids);
        let thread = thread::Builder::new().name("stacks".into());
        let refused = show.clone();
        if let Err(error) = thread.spawn(move || look(&show, caller, &asked)) {
            refused(Stacks::Refused(format!("none, as there can be no thread to look at them: {error}")));
        }
        looks
    }

    /// Looks at these from now on. False: there are no looks any more, and it was said why.
    pub(super) fn of(&self, pids: Vec<u32>) -> bool {
        self.pids.send(Some(pids)).is_ok()
    }

    /// Nobody looks at them for now: who asks time and again has one thread all the same, which looks no more often.
    pub(super) fn pause(&self) {
        let _ = self.pids.send(None);
    }
}

/// The ranks of a profile that run, as far as they are here.
pub(super) fn living(profile: &Profile) -> Vec<u32> {
    let here = host::name();
    let living = profile.ranks.iter().filter(|rank| rank.state == RankState::Running && rank.host == here);
    living.map(|rank| rank.pid).collect()
}

fn look(show: &impl Fn(Stacks), caller: Option<Caller>, asked: &Receiver<Option<Vec<u32>>>) {
    let mut watch = match Watch::begin(caller) {
        Ok(watch) => watch,
        Err(error) => {
            let hint = "mpiprobe hang may look once all the same, by stopping threads";
            return show(Stacks::Refused(format!(
                "none, as they cannot be looked at without stopping threads ({hint}): {error}"
            )));
        }
    };
    let mut wanted: Option<Vec<u32>> = None;
    let mut next = Instant::now();
    loop {
        let asked = match &wanted {
            Some(_) => asked.recv_timeout(next.saturating_duration_since(Instant::now())),
            None => asked.recv().map_err(RecvTimeoutError::from),
        };
        match (asked, &wanted) {
            (Ok(now), _) => wanted = now,
            (Err(RecvTimeoutError::Disconnected), _) => return,
            (Err(RecvTimeoutError::Timeout), None) => {}
            (Err(RecvTimeoutError::Timeout), Some(pids)) => next = Instant::now() + look_once(&mut watch, pids, show),
        }
    }
}

/// One look; gives how long nobody looks after it.
fn look_once(watch: &mut Watch, pids: &[u32], show: &impl Fn(Stacks)) -> Duration {
    let began = Instant::now();
    let looked = watch.look(pids);
    let took = began.elapsed();
    show(match looked {
        Ok(stacks) => Stacks::Seen { stacks, took },
        // A process that has ended since is not among them the next time.
        Err(error) => Stacks::Refused(error.to_string().lines().next().unwrap_or_default().to_owned()),
    });
    PACE.max(took * SHARE)
}
