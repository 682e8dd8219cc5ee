//! Call sites of which nothing is known but their address.

use mpiprobe_model::CallSite;

/// What is said of one until somebody has found out in which file it is.
pub(crate) fn unnamed(process: u32, address: u64) -> CallSite {
    CallSite::unknown(format!("process:{process}"), address)
}
