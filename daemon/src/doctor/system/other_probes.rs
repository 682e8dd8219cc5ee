//! Probes that others have set: every hit of a function walks all probes at its place.

use std::io;

use aya::programs::{
    links::{LinkError, LinkType},
    loaded_links,
};
use serde_json::json;

use crate::doctor::{Check, read::read_text};

/// At most so many BPF links are looked at: a node has some hundreds.
const MOST_LINKS: usize = 100_000;

pub(super) fn check() -> Check {
    let events = read_text("/sys/kernel/tracing/uprobe_events").map(|text| text.lines().count());
    judge(uprobe_links(), events)
}

/// How many multi-uprobe links there are, mpiprobe's own and other tools'.
fn uprobe_links() -> Option<usize> {
    let mut count = 0;
    for link in loaded_links().take(MOST_LINKS) {
        match link.and_then(|link| link.link_type()) {
            Ok(LinkType::UProbeMulti) => count += 1,
            Ok(_) | Err(LinkError::UnknownLinkType(_)) => {}
            // It was closed between the two looks.
            Err(LinkError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    Some(count)
}

fn judge(links: Option<usize>, events: io::Result<usize>) -> Check {
    let data = json!({ "multi_links": links, "trace_events": events.as_ref().ok() });
    let mut seen = Vec::new();
    seen.extend(links.map(|links| format!("{links} multi-uprobe links")));
    seen.extend(events.ok().map(|events| format!("{events} uprobe trace events")));
    let check = match seen.as_slice() {
        [] => Check::info("other-probes", "unknown").because("listing them needs CAP_SYS_ADMIN"),
        _ if links.unwrap_or(0) == 0 && seen.iter().all(|text| text.starts_with("0 ")) => {
            Check::info("other-probes", "none seen").because("probes by perf events alone do not show")
        }
        seen => Check::info("other-probes", format!("{} of other sessions and tools", seen.join(", ")))
            .because("where they are on the same functions, both cost more"),
    };
    check.with(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreadable() -> io::Result<usize> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn what_is_seen_is_said() {
        let finding = |links, events| judge(links, events).finding;
        assert_eq!(finding(None, unreadable()), "unknown");
        assert_eq!(finding(Some(0), unreadable()), "none seen");
        assert_eq!(finding(Some(0), Ok(0)), "none seen");
        assert_eq!(finding(Some(2), Ok(0)), "2 multi-uprobe links, 0 uprobe trace events of other sessions and tools");
        assert_eq!(finding(Some(0), Ok(3)), "0 multi-uprobe links, 3 uprobe trace events of other sessions and tools");
        assert_eq!(finding(None, Ok(1)), "1 uprobe trace events of other sessions and tools");
    }
}
