//! A connection to an agent: lines in both directions, and why it has ended. What comes from there is somebody else's word: every line
//! has a limit, and none can make more of them than are read.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mpiprobe_discover::printable;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

/// Longest line, bytes: a profile of more ranks than a node has cores.
const LONGEST: usize = 1 << 27;
/// What is kept of what the launcher says on its standard error, bytes.
const COMPLAINT: usize = 4 << 10;
/// For the launcher's last words, and for its end, once its output has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What comes over a connection.
#[derive(Debug)]
pub(super) enum Heard {
    /// Without its end.
    Line(Vec<u8>),
    /// Nothing more does, and why.
    Over(String),
}

/// An agent, ended when this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    orders: mpsc::UnboundedSender<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Connection {
    /// Starts an agent by a command. What comes from there is sent with this number.
    pub(super) fn open(mut command: Command, number: usize, to: mpsc::Sender<(usize, Heard)>) -> Self {
        let (orders, ordered) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let why = match command.spawn() {
                Ok(child) => talk(child, ordered, number, &to).await,
                Err(error) => {
                    let program = printable(command.as_std().get_program().as_encoded_bytes());
                    format!("{program} cannot be started: {error}")
                }
            };
            let _ = to.send((number, Heard::Over(why))).await;
        });
        Self { orders, task }
    }

    /// Says something to the agent, with the line's end. Who does not take it has ended, which is heard.
    pub(super) fn order(&self, line: Vec<u8>) {
        let _ = self.orders.send(line);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The launcher goes with it, and with the launcher the agent's input.
        self.task.abort();
    }
}

/// Passes on what the agent says until it ends, for whatever reason: which one.
async fn talk(
    mut child: Child,
    orders: mpsc::UnboundedReceiver<Vec<u8>>,
    number: usize,
    to: &mpsc::Sender<(usize, Heard)>,
) -> String {
    let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return "it has no pipes".into();
    };
    let complaint = Arc::<Mutex<Vec<u8>>>::default();
    let mut listening = tokio::spawn(listen(errors, Arc::clone(&complaint)));
    let mut lines = Lines { from: BufReader::new(output), line: Vec::new() };
    let why = {
        let reading = async {
            loop {
                let line = match lines.next().await {
                    Ok(Some(line)) => line,
                    Ok(None) => break None,
                    Err(error) => break Some(error.to_string()),
                };
                if to.send((number, Heard::Line(line))).await.is_err() {
                    break None;
                }
            }
        };
        let writing = async {
            write(input, orders).await;
            std::future::pending::<()>().await;
        };
        tokio::select! { why = reading => why, () = writing => None }
    };
    let status = timeout(LAST_WORDS, child.wait()).await;
    // Whatever the launcher has started may hold its standard error open.
    let _ = timeout(LAST_WORDS, &mut listening).await;
    listening.abort();
    let said = lines_of(&complaint.lock().unwrap_or_else(PoisonError::into_inner));
    match (why, said.is_empty(), status) {
        (Some(why), true, _) => why,
        (Some(why), false, _) => format!("{why}\n{said}"),
        (None, false, _) => said,
        (None, true, Ok(Ok(status))) => format!("the launcher has ended ({status}) and said nothing"),
        (None, true, _) => "the connection has ended".into(),
    }
}

async fn write(mut to: ChildStdin, mut orders: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(mut line) = orders.recv().await {
        line.push(b'\n');
        let _ = to.write_all(&line).await;
    }
}

/// Keeps the last of what somebody says.
async fn listen(mut from: impl AsyncRead + Unpin, to: Arc<Mutex<Vec<u8>>>) {
    let mut block = [0; 512];
    while let Ok(length @ 1..) = from.read(&mut block).await {
        let mut kept = to.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(block.get(..length).unwrap_or_default());
        let surplus = kept.len().saturating_sub(COMPLAINT);
        kept.drain(..surplus);
    }
}

/// Printable, without what is empty. What a launcher calls an error comes first: srun says before it what does not matter.
fn lines_of(kept: &[u8]) -> String {
    let lines = kept.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.map(printable).collect();
    lines.sort_by_key(|line| !["error: ", "fatal: "].iter().any(|word| line.contains(word)));
    lines.join("\n")
}

/// Lines of limited length.
#[derive(Debug)]
struct Lines<R> {
    from: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// The next line, without its end; `None`: there is none. The wait may be given up, and nothing is lost by that.
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let available = self.from.fill_buf().await?;
            if available.is_empty() {
                // Half a line is none.
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', available);
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            if self.line.len() + part.len() > LONGEST {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it says a line that does not end"));
            }
            self.line.extend_from_slice(part);
            let taken = part.len() + usize::from(end.is_some());
            self.from.consume(taken);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(of: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(of)
    }

    /// Invariant BOUNDED-READS.
    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut lines = Lines { from: BufReader::new(tokio::io::repeat(b'x')), line: Vec::new() };
        assert_eq!(block_on(lines.next()).unwrap_err().to_string(), "it says a line that does not end");
        let mut lines = Lines { from: BufReader::new(&b"one\ntwo\nha"[..]), line: Vec::new() };
        let mut next = || block_on(lines.next()).unwrap();
        assert_eq!((next(), next(), next()), (Some(b"one".to_vec()), Some(b"two".to_vec()), None));
        let (endless, kept) = (vec![b'y'; 3 * COMPLAINT], Arc::<Mutex<Vec<u8>>>::default());
        block_on(listen(endless.as_slice(), Arc::clone(&kept)));
        assert_eq!(kept.lock().unwrap().len(), COMPLAINT);
        assert_eq!(lines_of(b"\r\n  a\x1b[2J \n\nb\n"), "a\\u{1b}[2J\nb");
        let srun = b"srun: cluster configuration lacks support for cpu binding\nsrun: error: Unable to create step for job 4711: Access/permission denied\n";
        assert!(lines_of(srun).starts_with("srun: error: Unable to create step"), "{}", lines_of(srun));
    }
}
