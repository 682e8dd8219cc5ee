//! Which request a handle means, from the call that gives it back to the one that completes it.
//!
//! A library uses a handle again as soon as its operation is complete, perhaps before the call that completes it has returned, and what different
//! threads have done comes in no order: so an operation is known by its handle and by when it was posted, whichever of both ends is seen first.

use hashbrown::HashMap;
use mpiprobe_common::trace::{ChangeRecord, change};
use mpiprobe_trace::{Operation, RequestId};

/// Handles that are remembered: no program has as many at once.
const MOST_HANDLES: usize = 1 << 20;
/// Operations of one handle that are known at once: the latest, and those that were displaced.
const SAME_HANDLE: usize = 4;

/// Those of one process.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    by_handle: HashMap<u64, Vec<Known>>,
    /// How many ids have been given out.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    epoch: u64,
    id: RequestId,
    /// `None`: the call that has posted it has not been seen (yet).
    operation: Option<Operation>,
    /// The call that has completed it has been seen: it is only waited for the one that has posted it.
    is_over: bool,
}

impl Requests {
    /// A call has given a request back.
    pub(crate) fn posted(&mut self, handle: u64, epoch: u64, operation: &Operation) -> RequestId {
        self.make_room();
        let known = self.by_handle.entry(handle).or_default();
        if let Some(place) = known.iter().position(|known| known.epoch == epoch) {
            let id = known.get(place).map_or(RequestId(0), |known| known.id);
            if known.get(place).is_some_and(|known| known.is_over) {
                known.remove(place);
            } else if let Some(known) = known.get_mut(place) {
                known.operation = Some(*operation);
            }
            return id;
        }
        self.last += 1;
        let id = RequestId(self.last);
        add(known, Known { epoch, id, operation: Some(*operation), is_over: false });
        id
    }

    fn make_room(&mut self) {
        if self.by_handle.len() >= MOST_HANDLES {
            self.by_handle.retain(|_, known| !known.is_empty());
            if self.by_handle.len() >= MOST_HANDLES {
                self.by_handle.clear();
            }
        }
    }

    /// A call has done something to a request: which it is, and the operation as the call that has posted it knows it.
    pub(crate) fn changed(&mut self, record: &ChangeRecord, is_persistent: bool) -> (RequestId, Option<Operation>) {
        self.make_room();
        let known = self.by_handle.entry(record.handle).or_default();
        let place = known.iter().position(|known| known.epoch == record.epoch).unwrap_or_else(|| {
            self.last += 1;
            add(known, Known { epoch: record.epoch, id: RequestId(self.last), operation: None, is_over: false });
            known.len() - 1
        });
        let Some(found) = known.get_mut(place) else { return (RequestId(0), None) };
        let (id, operation) = (found.id, found.operation);
        match record.kind {
            change::STARTED => found.epoch = record.next_epoch,
            change::READY => {}
            change::RELEASED => forget(known, place),
            _ if is_persistent => {}
            _ => forget(known, place),
        }
        (id, operation)
    }
}

fn add(known: &mut Vec<Known>, one: Known) {
    if known.len() >= SAME_HANDLE {
        // What has become of the oldest one was not seen.
        known.remove(0);
    }
    known.push(one);
}

/// It is over, unless the call that has posted it is still to be seen.
fn forget(known: &mut Vec<Known>, place: usize) {
    match known.get_mut(place) {
        Some(one) if one.operation.is_none() => one.is_over = true,
        _ => drop(known.remove(place)),
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::{Amount, trace::NO_TAG};
    use mpiprobe_functions::by_name;

    use super::*;

    const HANDLE: u64 = 0x9800_0001;

    fn change(kind: u8, epoch: u64, next_epoch: u64) -> ChangeRecord {
        ChangeRecord {
            tid: 1,
            number: 1,
            kind,
            handle: HANDLE,
            epoch,
            next_epoch,
            function: 0,
            communicator: 1,
            destination: 0,
            source: 0,
            tag: NO_TAG,
            any_source: false,
            any_tag: false,
            sent: Amount::NOTHING,
            received: Amount::NOTHING,
        }
    }

    fn operation(name: &str) -> Operation {
        Operation::new(by_name(name).unwrap())
    }

    #[test]
    fn a_handle_that_is_used_again_is_another_request() {
        let (mut requests, send) = (Requests::default(), operation("MPI_Isend"));
        let first = requests.posted(HANDLE, 10, &send);
        // Another thread has got the handle before the call that completes the first one has returned.
        let second = requests.posted(HANDLE, 20, &operation("MPI_Irecv"));
        assert_ne!(first, second);
        assert_eq!(requests.changed(&change(change::COMPLETED, 10, 0), false), (first, Some(send)));
        assert_eq!(requests.changed(&change(change::COMPLETED, 20, 0), false).0, second);
        let third = requests.posted(HANDLE, 10, &send);
        assert!(third != first && third != second);
    }

    #[test]
    fn whichever_end_comes_first() {
        let (mut requests, send) = (Requests::default(), operation("MPI_Isend"));
        let (completed, unknown) = requests.changed(&change(change::COMPLETED, 10, 0), false);
        assert_eq!(unknown, None);
        assert_eq!(requests.posted(HANDLE, 10, &send), completed);
        assert_ne!(requests.posted(HANDLE, 10, &send), completed, "that one is over");
    }

    #[test]
    fn a_persistent_one_stays_the_same_however_often_it_is_started() {
        let (mut requests, made) = (Requests::default(), operation("MPI_Send_init"));
        let id = requests.posted(HANDLE, 10, &made);
        for start in [20, 30, 40] {
            let before = if start == 20 { 10 } else { start - 10 };
            assert_eq!(requests.changed(&change(change::STARTED, before, start), true), (id, Some(made)));
            assert_eq!(requests.changed(&change(change::COMPLETED, start, 0), true), (id, Some(made)));
        }
        assert_eq!(requests.changed(&change(change::RELEASED, 40, 0), true).0, id);
        assert_ne!(requests.posted(HANDLE, 40, &made), id);
    }

    #[test]
    fn what_nobody_completes_takes_no_room() {
        let mut requests = Requests::default();
        for epoch in 0..1000 {
            requests.posted(HANDLE, epoch, &operation("MPI_Isend"));
        }
        assert_eq!(requests.by_handle.values().map(Vec::len).sum::<usize>(), SAME_HANDLE);
    }
}
