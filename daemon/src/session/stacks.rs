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
    pids: Sender<Vec<u32>>,
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

    /// Looks at these from now on.
    pub(super) fn of(&self, pids: Vec<u32>) {
        // Whoever does not take it has ended, and has said why.
        let _ = self.pids.send(pids);
    }
}

/// The ranks of a profile that run, as far as they are here.
pub(super) fn living(profile: &Profile) -> Vec<u32> {
    let here = host::name();
    let living = profile.ranks.iter().filter(|rank| rank.state == RankState::Running && rank.host == here);
    living.map(|rank| rank.pid).collect()
}

fn look(show: &impl Fn(Stacks), caller: Option<Caller>, asked: &Receiver<Vec<u32>>) {
    let mut watch = match Watch::begin(caller) {
        Ok(watch) => watch,
        Err(error) => {
            let hint = "mpiprobe hang may look once all the same, by stopping threads";
            return show(Stacks::Refused(format!(
                "none, as they cannot be looked at without stopping threads ({hint}): {error}"
            )));
        }
    };
    let mut pids = Vec::new();
    let mut next = Instant::now();
    loop {
        match asked.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(now) => {
                pids = now;
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let began = Instant::now();
        let looked = watch.look(&pids);
        let took = began.elapsed();
        show(match looked {
            Ok(stacks) => Stacks::Seen { stacks, took },
            // A process that has ended since is not among them the next time.
            Err(error) => Stacks::Refused(error.to_string().lines().next().unwrap_or_default().to_owned()),
        });
        next = Instant::now() + PACE.max(took * SHARE);
    }
}
