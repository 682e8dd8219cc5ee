//! An observation that is made for somebody elsewhere: by the node service, for one of its clients.

use std::sync::Arc;

use mpiprobe_discover::Caller;

use super::{
    error::SessionError,
    event_loop::{Goal, follow},
    kernel_source::KernelSource,
    observation::Observation,
    options::{Options, Outcome},
    sinks::{Served, Sinks},
    source::Source,
};

/// Observes what `caller` may see, until nobody is left or it is ended. Everything is detached when this returns.
pub async fn observe_for(options: &Options, caller: Caller, mut served: Served) -> Result<Outcome, SessionError> {
    let audience = &mut served.audience;
    let permit = |bytes| audience.permit(bytes).map_err(SessionError::NotPermitted);
    let observation = Observation::begin_for(options, caller, permit)?;
    served.audience.begun();
    let mut source = KernelSource::of_found(Box::new(observation), options.wait)?;
    let wants_causes = served.audience.wants_causes();
    let mut sinks = Sinks::of_served(served, Some(caller), options);
    if wants_causes {
        sinks.watch_standstills();
    }
    let goal = Goal::Served { wait: options.wait };
    let ended = match follow(&mut source, &mut sinks, options.interval, goal).await {
        Ok(reason) => source.profile(Some(reason)),
        Err(error) => Err(error),
    };
    let outcome = match ended {
        Ok(mut profile) => {
            sinks.add_standstills(&mut profile);
            sinks.close(&Arc::new(profile))
        }
        Err(error) => {
            sinks.abandon();
            Err(error)
        }
    };
    source.end().await;
    outcome
}
