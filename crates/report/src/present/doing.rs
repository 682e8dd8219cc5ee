//! What an open call does, in words.

use std::fmt::Write as _;

use mpiprobe_model::{CallArguments, CommunicatorArgument, OpenCallInfo, Partner, Peer};

use super::units::{bytes, ns};

/// "in MPI_Recv from 3 tag 7 on row for 1.20 s"
pub fn doing(call: &OpenCallInfo) -> String {
    format!("{} for {}", what(call), ns(call.open_ns))
}

/// The same without the time.
pub fn what(call: &OpenCallInfo) -> String {
    let lead = if call.ended_inside { "ended in" } else { "in" };
    format!("{lead} {}", called(call))
}

/// "MPI_Recv from 3 tag 7 on row"
pub(super) fn called(call: &OpenCallInfo) -> String {
    let meaning = call.arguments.as_ref().map(meaning).unwrap_or_default();
    format!("{}{meaning}", call.function)
}

/// The arguments that tell one call from another, each with a blank before it.
fn meaning(arguments: &CallArguments) -> String {
    let mut text = String::new();
    if let Some(peer) = arguments.destination {
        let _ = write!(text, " to {}", name(peer));
        tag(&mut text, arguments.send_tag);
    }
    if let Some(peer) = arguments.source {
        let _ = write!(text, " from {}", name(peer));
        tag(&mut text, arguments.receive_tag);
    }
    if let Some(peer) = arguments.root {
        let _ = write!(text, " root {}", name(peer));
    }
    match arguments.requests {
        None | Some(1) => {}
        Some(requests) => {
            let _ = write!(text, " for {requests} requests");
        }
    }
    if let Some(bytes_moved) = arguments.bytes {
        let _ = write!(text, " {}", bytes(bytes_moved));
    }
    if let Some(name) = own_datatype(arguments) {
        let count = arguments.count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let _ = write!(text, " ({count} × {name})");
    }
    if let Some(communicator) = &arguments.communicator {
        on(&mut text, communicator);
    }
    text
}

/// The name of a datatype that the program has named: those of predefined ones say less than the bytes.
fn own_datatype(arguments: &CallArguments) -> Option<&str> {
    let name = arguments.datatype.as_ref()?.name.as_deref()?;
    (!name.starts_with("MPI_")).then_some(name)
}

fn tag(text: &mut String, tag: Option<i32>) {
    if let Some(tag) = tag {
        let _ = write!(text, " tag {tag}");
    }
}

/// A rank as the call names it; if that differs, its rank in the world, too.
fn name(peer: Peer) -> String {
    match (peer.partner, peer.rank, peer.world_rank) {
        (Partner::AnySource, ..) => "any".into(),
        (Partner::ProcNull, ..) => "nobody".into(),
        (Partner::Nobody, ..) => "this group".into(),
        (_, Some(rank), Some(world)) if rank != world => format!("{rank} (rank {world})"),
        (_, Some(rank), _) => rank.to_string(),
        (_, None, _) => "?".into(),
    }
}

/// Nothing of the world: that is what one expects.
fn on(text: &mut String, communicator: &CommunicatorArgument) {
    match (&communicator.name, communicator.number, communicator.size) {
        (Some(name), ..) if name == "MPI_COMM_WORLD" => {}
        (Some(name), ..) => {
            let _ = write!(text, " on {name}");
        }
        (None, _, Some(size)) => {
            let _ = write!(text, " on a communicator of {size}");
        }
        (None, ..) => text.push_str(" on a communicator"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_model::DatatypeArgument;

    fn call(arguments: CallArguments) -> OpenCallInfo {
        OpenCallInfo {
            function: "MPI_Recv",
            tid: 1,
            open_ns: 1_200_000_000,
            call_site: None,
            site: None,
            arguments: Some(arguments),
            ended_inside: false,
            began_before: false,
            polls: false,
            exchanges: false,
        }
    }

    fn communicator(name: Option<&str>, size: Option<u32>) -> CommunicatorArgument {
        CommunicatorArgument { handle: 1, number: None, name: name.map(str::to_owned), size }
    }

    #[test]
    fn a_receive_says_from_whom_it_waits_for_what() {
        let source = Some(Peer { partner: Partner::Rank, rank: Some(3), world_rank: Some(3) });
        let arguments = CallArguments {
            source,
            receive_tag: Some(7),
            communicator: Some(communicator(Some("row"), None)),
            ..CallArguments::default()
        };
        assert_eq!(doing(&call(arguments.clone())), "in MPI_Recv from 3 tag 7 on row for 1.20 s");
        let world = Some(communicator(Some("MPI_COMM_WORLD"), None));
        let any = Some(Peer { partner: Partner::AnySource, rank: None, world_rank: None });
        let arguments =
            CallArguments { source: any, receive_tag: None, any_tag: true, communicator: world, ..arguments };
        assert_eq!(doing(&call(arguments)), "in MPI_Recv from any for 1.20 s");
    }

    #[test]
    fn ranks_of_other_communicators_are_translated() {
        let root = Some(Peer { partner: Partner::Rank, rank: Some(0), world_rank: Some(4) });
        let communicator = Some(communicator(None, Some(4)));
        let arguments = CallArguments { root, communicator, bytes: Some(4000), ..CallArguments::default() };
        assert_eq!(doing(&call(arguments)), "in MPI_Recv root 0 (rank 4) 4.00 kB on a communicator of 4 for 1.20 s");
    }

    #[test]
    fn a_datatype_with_a_name_is_called_by_it() {
        let of = |name: Option<&str>| {
            let datatype = DatatypeArgument { handle: 1, name: name.map(str::to_owned), size: Some(40) };
            let arguments = CallArguments { count: Some(3), bytes: Some(120), ..CallArguments::default() };
            what(&call(CallArguments { datatype: Some(datatype), ..arguments }))
        };
        assert_eq!(of(Some("particle")), "in MPI_Recv 120 B (3 × particle)");
        assert_eq!(of(Some("MPI_DOUBLE")), "in MPI_Recv 120 B");
        assert_eq!(of(None), "in MPI_Recv 120 B");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let call = OpenCallInfo { arguments: None, ended_inside: true, ..call(CallArguments::default()) };
        assert_eq!(doing(&call), "ended in MPI_Recv for 1.20 s");
    }
}
