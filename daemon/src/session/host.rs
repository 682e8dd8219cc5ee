//! Name and time of this host.

use std::{fs, sync::OnceLock};

/// The node's name, made printable.
pub(super) fn name() -> String {
    let name = rustix::system::uname();
    mpiprobe_discover::printable(name.nodename().to_bytes())
}

/// Now, UTC, RFC 3339 to the millisecond.
pub(super) fn utc_now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.3}")
}

/// Which boot of it this is: clocks begin anew with each. Read once, which confined processes must do before they are.
pub(crate) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    BOOT.get_or_init(|| mpiprobe_discover::printable(read().trim().as_bytes()))
}
