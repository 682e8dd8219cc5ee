//! Waiting until the kernel is done with probes that have gone.

use std::os::fd::AsFd;
use std::process;

use mpiprobe_attach::{Engine, Scope};

use super::BenchError;
use super::sites::Sites;

/// Returns when the grace periods are over that the probes which were attached and detached before have begun. For seconds after such a change, each
/// program that runs is looked after when it ends (kernel/rcu/tasks.h, `rcu_read_unlock_trace_special`), which costs a probe 20 ns and more that
/// neither it nor what it does has to do with.
///
/// The kernel waits for one itself before a probe is gone (kernel/events/uprobes.c, `uprobe_unregister_sync`): so does one that nobody hits.
pub(super) fn settle(engine: &Engine, sites: &Sites) -> Result<(), BenchError> {
    let one = sites.probes.get(..1).unwrap_or_default();
    let attached = engine.attach_empty(sites.file.as_fd(), &sites.path, one, Scope::Process(process::id()))?;
    attached.detach(|_| ());
    Ok(())
}
