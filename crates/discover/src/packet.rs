//! Packets between processes of mpiprobe's own, with descriptors, over sockets that keep packets apart.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Of a packet, bytes: less than any kernel's sockets take.
pub const MOST_BYTES: usize = 128 << 10;
/// With one packet.
pub const MOST_DESCRIPTORS: usize = 64;

/// Two ends of a connection, neither of which is given to a program that is executed.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a packet; `waits`: also if the other end has not taken earlier ones.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>], waits: bool) -> io::Result<()> {
    if bytes.len() > MOST_BYTES || descriptors.len() > MOST_DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL | if waits { SendFlags::empty() } else { SendFlags::DONTWAIT };
    let sent = rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags))?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Waits for the next packet; `None`: there will be no more. One that was longer than the buffer, or had more descriptors than there
/// may be, is an error.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received =
        rustix::io::retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags))?;
    let messages = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = messages.flatten().collect();
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((received.bytes > 0).then_some((received.bytes, descriptors)))
}

/// The same descriptors, to be sent.
pub fn borrowed(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(OwnedFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use super::*;

    #[test]
    fn bytes_and_descriptors_arrive_together() {
        let (one, other) = pair().unwrap();
        let files = [File::open("/proc/self/comm").unwrap(), File::open("/dev/null").unwrap()];
        let given: Vec<BorrowedFd<'_>> = files.iter().map(std::os::fd::AsFd::as_fd).collect();
        send(one.as_fd(), b"two", &given, false).unwrap();
        send(one.as_fd(), &vec![7; MOST_BYTES], &[], false).unwrap();
        let mut buffer = vec![0; MOST_BYTES];
        let (length, descriptors) = receive(other.as_fd(), &mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..length], descriptors.len()), (&b"two"[..], 2));
        let mut text = String::new();
        File::from(descriptors.into_iter().next().unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        assert_eq!(receive(other.as_fd(), &mut buffer).unwrap().unwrap().0, MOST_BYTES);
        drop(one);
        assert!(receive(other.as_fd(), &mut buffer).unwrap().is_none());
    }

    #[test]
    fn what_does_not_fit_is_no_packet() {
        let (one, other) = pair().unwrap();
        send(one.as_fd(), &[1; 100], &[], false).unwrap();
        assert!(receive(other.as_fd(), &mut [0; 10]).is_err());
        let own = File::open("/dev/null").unwrap();
        assert!(send(one.as_fd(), b"x", &[own.as_fd(); MOST_DESCRIPTORS + 1], false).is_err());
    }
}
