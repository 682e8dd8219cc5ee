//! Probes that others have set: every hit of a function walks all probes at its place.

use std::io;

use aya::programs::{
    links::{LinkError, LinkType},
    loaded_links,
};
use mpiprobe_model::Check;
use serde_json::json;

use crate::doctor::{read::read_text, text::counted};

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
    let events = events.ok();
    let shown =
        |number: Option<usize>, one, many| number.filter(|number| *number > 0).map(|number| counted(number, one, many));
    let seen: Vec<String> = [
        shown(links, "multi-uprobe link", "multi-uprobe links"),
        shown(events, "uprobe trace event", "uprobe trace events"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let check = if links.or(events).is_none() {
        Check::info("other-probes", "unknown").because("listing them needs CAP_SYS_ADMIN")
    } else if seen.is_empty() {
        Check::info("other-probes", "none seen").because("probes by perf events alone do not show")
    } else {
        Check::info("other-probes", format!("{} of other sessions and tools", seen.join(", ")))
            .because("where they are on the same functions, both cost more")
    };
    check.with(json!({ "multi_links": links, "trace_events": events }))
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
        assert_eq!(finding(Some(2), Ok(0)), "2 multi-uprobe links of other sessions and tools");
        assert_eq!(finding(Some(0), Ok(3)), "3 uprobe trace events of other sessions and tools");
        assert_eq!(finding(None, Ok(1)), "1 uprobe trace event of other sessions and tools");
    }
}
