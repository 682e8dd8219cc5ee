//! The supervisor's answers to the worker. What may be asked for, and what of it is granted, is each crate's own matter
//! ([`mpiprobe_discover::Grants`], [`mpiprobe_attach::Grants`], [`mpiprobe_stacks::Grants`]).

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    thread,
};

use mpiprobe_attach::apart as kernel;
use mpiprobe_discover::packet;
use mpiprobe_stacks::apart as stacks;

use super::link::{Question, Reply, receive, send};
use crate::memory::give_back_memory;

/// Looks at stacks that may go on at once.
const MOST_LOOKS: usize = 8;

/// One connection's answers. Each has its own of everything: what the worker has had loaded is gone when the worker is.
struct Grants {
    processes: mpiprobe_discover::Grants,
    kernel: mpiprobe_attach::Grants,
    stacks: mpiprobe_stacks::Grants,
}

impl Grants {
    fn reply(&mut self, question: &Question, given: &[OwnedFd]) -> (Reply, Vec<u8>, Vec<OwnedFd>) {
        let first = given.first().map(OwnedFd::as_fd);
        match question {
            Question::Process(request) => match self.processes.grant(request, first) {
                Ok(granted) => (Reply::Process, granted.content, granted.descriptor.into_iter().collect()),
                Err(error) => (Reply::Failed { errno: error.raw_os_error() }, Vec::new(), Vec::new()),
            },
            Question::Kernel(request) => {
                let (answer, descriptors) = self.kernel.grant(request, first);
                (Reply::Kernel(answer), Vec::new(), descriptors)
            }
            Question::Stacks(request) => {
                let (answer, descriptors) = self.stacks.grant(request);
                (Reply::Stacks(answer), Vec::new(), descriptors)
            }
        }
    }
}

/// Answers on a connection until its other end is closed.
pub(super) fn serve(socket: OwnedFd, limits: mpiprobe_attach::Limits) -> io::Result<()> {
    let mut grants = Grants {
        processes: mpiprobe_discover::Grants::new()?,
        kernel: mpiprobe_attach::Grants::new(limits),
        stacks: mpiprobe_stacks::Grants::new(MOST_LOOKS),
    };
    thread::Builder::new().name("grants".into()).spawn(move || {
        while let Ok(Some((question, _, given))) = receive::<Question>(socket.as_fd()) {
            let was_much = takes_much(&question);
            let (reply, content, descriptors) = grants.reply(&question, &given);
            // A message for people that is too long for a packet, for instance.
            if send(socket.as_fd(), &reply, &content, &packet::borrowed(&descriptors)).is_err()
                && send(socket.as_fd(), &Reply::Failed { errno: None }, &[], &[]).is_err()
            {
                return;
            }
            if was_much {
                give_back_memory();
            }
        }
    })?;
    Ok(())
}

/// Whether the kernel's types are read for it, or the object was kept until then.
fn takes_much(question: &Question) -> bool {
    use {kernel::Request::Load, kernel::Request::Release, stacks::Request as Stacks};
    matches!(
        question,
        Question::Kernel(Load { .. } | Release { .. }) | Question::Stacks(Stacks::Load | Stacks::Release { .. })
    )
}
