//! Checks of this system, one family a file.

mod attaching;
mod capabilities;
pub(super) mod jobs;
mod limits;
mod machine;
mod other_probes;
mod proc_mount;
mod restrictions;

use mpiprobe_model::Check;

use super::rights::Rights;

/// All but those that look at processes.
pub(super) fn examine(rights: &Rights) -> Vec<Check> {
    // First, so that it does not count its own probes.
    let other_probes = other_probes::check();
    let (attaching, best) = attaching::examine(rights);
    let mut checks = machine::examine(best);
    checks.extend(capabilities::examine(rights));
    checks.extend(restrictions::examine());
    checks.push(proc_mount::check(rights));
    checks.extend(limits::examine());
    checks.extend(attaching);
    checks.push(other_probes);
    checks
}
