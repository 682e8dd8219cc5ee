//! The front end's side of an agent. What comes from there is somebody else's word: every line has a limit, and none can make more of
//! them than are read.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mpiprobe_discover::printable;
use mpiprobe_model::Profile;
use mpiprobe_report::present::recording::profile_of_json;
use serde::{Deserialize, de::IgnoredAny};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{Nodes, NodesError};

/// Longest line, bytes: a profile of more ranks than a node has cores.
const LONGEST: usize = 1 << 27;
/// Longest message of an agent, bytes.
const LONGEST_WORD: usize = 4 << 10;
/// What is kept of what the launcher says on its standard error, bytes.
const COMPLAINT: usize = 4 << 10;
/// For the launcher's last words, and for its end, once its output has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a node says. All text is printable.
#[derive(Debug)]
pub(crate) enum FromNode {
    /// The agent runs there, and is of this version.
    Answered {
        version: String,
    },
    Said(String),
    /// It observes, or waits.
    Begun,
    Profile(Box<Profile>),
    /// What it has found by looking at stacks, as it says it.
    Found(Vec<u8>),
    /// It has observed to the end.
    Ended,
    /// It does not observe. `is_absent`: there is nobody to be observed.
    Refused {
        why: String,
        is_absent: bool,
    },
    /// Nothing more comes, and nobody knows what happens there.
    Lost(String),
}

/// What a line is, if it is no profile.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    version: Option<String>,
    said: Option<String>,
    failed: Option<String>,
    absent: bool,
    ended: Option<bool>,
    begun: Option<bool>,
    schema: Option<String>,
    found: Option<IgnoredAny>,
}

/// An agent, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Connection {
    /// Asks for the last profile, or the last look.
    pub(crate) fn ask_to_end(&mut self) {
        // It may have ended by itself.
        self.end.take().map(|end| end.send(()));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The launcher goes with it, and with the launcher the agent's input.
        self.task.abort();
    }
}

/// Starts the agent of a node. Whatever it says, and that it could not be started, is sent with the node's number.
pub(crate) fn connect(
    nodes: &Nodes,
    number: usize,
    host: &str,
    to: mpsc::Sender<(usize, FromNode)>,
) -> Result<Connection, NodesError> {
    let mut command = nodes.launcher.command(host, &nodes.program, nodes.verbose, nodes.slurm_job.as_deref())?;
    let mut request = serde_json::to_vec(&nodes.request).unwrap_or_default();
    request.push(b'\n');
    let (end, ended) = oneshot::channel();
    let task = tokio::spawn(async move {
        let last = match command.spawn() {
            Ok(child) => talk(child, request, ended, number, &to).await,
            Err(error) => {
                let program = printable(command.as_std().get_program().as_encoded_bytes());
                FromNode::Lost(format!("{program} cannot be started: {error}"))
            }
        };
        let _ = to.send((number, last)).await;
    });
    Ok(Connection { end: Some(end), task })
}

/// Passes on what the agent says until it ends, for whatever reason.
async fn talk(
    mut child: Child,
    request: Vec<u8>,
    mut end: oneshot::Receiver<()>,
    number: usize,
    to: &mpsc::Sender<(usize, FromNode)>,
) -> FromNode {
    let (Some(mut input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return FromNode::Lost("it has no pipes".into());
    };
    let complaint = Arc::<Mutex<Vec<u8>>>::default();
    let mut listening = tokio::spawn(listen(errors, Arc::clone(&complaint)));
    // Who does not take it has ended, which is seen below.
    let _ = input.write_all(&request).await;
    let mut lines = Lines { from: BufReader::new(output), line: Vec::new() };
    let mut is_asked = false;
    let why = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            asked = &mut end, if !is_asked => {
                is_asked = true;
                if asked.is_ok() {
                    ask(&mut input).await;
                }
                continue;
            }
        };
        let event = match line {
            Ok(Some(line)) => match understood(&line) {
                Ok(event @ (FromNode::Ended | FromNode::Refused { .. })) => return event,
                Ok(event) => event,
                Err(why) => break Some(why),
            },
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        if to.send((number, event)).await.is_err() {
            break None;
        }
    };
    let status = timeout(LAST_WORDS, child.wait()).await;
    // Whatever the launcher has started may hold its standard error open.
    let _ = timeout(LAST_WORDS, &mut listening).await;
    listening.abort();
    let said = lines_of(&complaint.lock().unwrap_or_else(PoisonError::into_inner));
    FromNode::Lost(match (why, said.is_empty(), status) {
        (Some(why), true, _) => why,
        (Some(why), false, _) => format!("{why}\n{said}"),
        (None, false, _) => said,
        (None, true, Ok(Ok(status))) => format!("the launcher has ended ({status}) and said nothing"),
        (None, true, _) => "the connection has ended".into(),
    })
}

/// By a line; an input that ends would do as well, but a launcher may end with it.
async fn ask(input: &mut ChildStdin) {
    let _ = input.write_all(b"end\n").await;
}

fn understood(line: &[u8]) -> Result<FromNode, String> {
    let unknown = |said: &dyn std::fmt::Display| {
        let begin = printable(line.get(..line.len().min(80)).unwrap_or_default());
        format!("it says what no agent of version {} says: {begin:?} ({said})", env!("CARGO_PKG_VERSION"))
    };
    let head: Head = serde_json::from_slice(line).map_err(|error| unknown(&error))?;
    if head.found.is_some() {
        return Ok(FromNode::Found(line.to_vec()));
    }
    if head.schema.is_some() {
        let profile = profile_of_json(line).map_err(|error| unknown(&error))?;
        return Ok(FromNode::Profile(Box::new(profile)));
    }
    let text = |text: String| {
        let bytes = text.as_bytes();
        printable(bytes.get(..bytes.len().min(LONGEST_WORD)).unwrap_or_default()).replace("\\n", "\n")
    };
    Ok(match head {
        Head { failed: Some(why), absent, .. } => FromNode::Refused { why: text(why), is_absent: absent },
        Head { ended: Some(_), .. } => FromNode::Ended,
        Head { begun: Some(_), .. } => FromNode::Begun,
        Head { version: Some(version), .. } => FromNode::Answered { version: text(version) },
        Head { said: Some(said), .. } => FromNode::Said(text(said)),
        Head { .. } => return Err(unknown(&"it means nothing")),
    })
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
    use proptest::prelude::*;

    fn block_on<T>(of: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(of)
    }

    fn said(line: &str) -> String {
        match understood(line.as_bytes()) {
            Ok(event) => format!("{event:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn what_agents_say() {
        assert_eq!(said(r#"{"observation":0,"version":"9.9"}"#), r#"Answered { version: "9.9" }"#);
        assert_eq!(said(r#"{"said":"a\u001b[2Jb"}"#), r#"Said("a\\u{1b}[2Jb")"#);
        assert_eq!(said(r#"{"begun":true}"#), "Begun");
        assert_eq!(said(r#"{"ended":false}"#), "Ended");
        assert_eq!(said(r#"{"failed":"nobody","absent":true}"#), r#"Refused { why: "nobody", is_absent: true }"#);
        for wrong in ["Welcome to n1!", "\u{1b}]0;x\u{7}", "{\"schema\":\"mpiprobe.profile/1\"}", "[]", "{\"said\":7}"]
        {
            assert!(said(wrong).starts_with("it says what no agent of version"), "{wrong}: {}", said(wrong));
            assert!(!said(wrong).contains('\u{1b}'));
        }
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

    proptest! {
        #[test]
        fn never_panics(line: Vec<u8>, text: String) {
            let _ = understood(&line);
            let _ = understood(serde_json::json!({ "said": text }).to_string().as_bytes());
        }
    }
}
