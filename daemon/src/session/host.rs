//! Name and time of this host.

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
