//! TCP connections of a process (proc_net_tcp, in the kernel's Documentation/networking).

use std::collections::BTreeSet;

use super::process::Process;

/// What is read of a list of connections, bytes: some ten thousand lines.
const LIMIT: usize = 2 << 20;
/// The state of a connection over which data goes.
const ESTABLISHED: &str = "01";
/// Descriptors that are looked at, and how many numbers without one may be between them.
const DESCRIPTORS: u64 = 4096;
const GAP: u64 = 256;

/// Whether data is on its way in a connection of a process: sent and not acknowledged, or received and not read yet. Of what cannot be
/// read, nothing is known to be.
pub fn has_data_on_its_way(process: &Process) -> bool {
    let mut busy = BTreeSet::new();
    for list in ["net/tcp", "net/tcp6"] {
        if let Ok(read) = process.read(list, LIMIT) {
            busy.extend(String::from_utf8_lossy(&read.bytes).lines().filter_map(busy_socket));
        }
    }
    if busy.is_empty() {
        return false;
    }
    let mut missing = 0;
    for number in 0..DESCRIPTORS {
        match process.descriptor(number) {
            Ok(name) if socket(&name).is_some_and(|inode| busy.contains(&inode)) => return true,
            Ok(_) => missing = 0,
            Err(_) if missing >= GAP => return false,
            Err(_) => missing += 1,
        }
    }
    false
}

/// The inode of the socket of a line, if data is on its way there.
fn busy_socket(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (state, queues) = (fields.next()?, fields.next()?);
    let (sent, received) = queues.split_once(':')?;
    let is_busy = [sent, received].into_iter().any(|queue| u64::from_str_radix(queue, 16).is_ok_and(|bytes| bytes > 0));
    let inode = fields.nth(4)?.parse().ok()?;
    (state == ESTABLISHED && is_busy).then_some(inode)
}

/// Of `socket:[4711]`.
fn socket(name: &[u8]) -> Option<u64> {
    let inode = name.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inode).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::proc_root::ProcRoot;

    #[test]
    fn lines_of_idle_and_busy_connections() {
        let line = |state: &str, queues: &str| {
            format!(
                "  0: 0100007F:1F90 0100007F:D431 {state} {queues} 01:00000014 00000000  1000        0 4711 2 0 20 4 30 10 -1"
            )
        };
        assert_eq!(busy_socket(&line("01", "00000000:00000000")), None);
        assert_eq!(busy_socket(&line("01", "0001A000:00000000")), Some(4711));
        assert_eq!(busy_socket(&line("01", "00000000:00000001")), Some(4711));
        assert_eq!(busy_socket(&line("0A", "00000000:00000001")), None, "it listens");
        for none in
            ["", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt", "0: a b 01 7", "x"]
        {
            assert_eq!(busy_socket(none), None);
        }
        assert_eq!([socket(b"socket:[77]"), socket(b"pipe:[77]"), socket(b"socket:[x]")], [Some(77), None, None]);
    }

    #[test]
    fn what_nobody_has_read_is_on_its_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let own = Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap();
        sender.write_all(b"some").unwrap();
        // Until it has arrived.
        while !has_data_on_its_way(&own) {
            std::thread::yield_now();
        }
        receiver.read_exact(&mut [0; 4]).unwrap();
    }
}
