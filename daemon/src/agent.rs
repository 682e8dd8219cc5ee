//! What runs on a node for a front end elsewhere: an observation, or a look at stacks, that is asked for on standard input and told on
//! standard output.
//!
//! It ends with its input: when the front end ends, is killed, or the connection is cut.

use std::{
    io::{self, BufRead as _, Read as _, Write as _},
    path::Path,
    process::exit,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use mpiprobe_model::{Profile, analyse::ProfileOutput};
use mpiprobe_report::present::divert;
use mpiprobe_view::Asked;
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::asking::{AskError, Head, Service, service_for};
use crate::chunks::{Bytes, line_of};
use crate::hang;
use crate::nodes::{Agents, Below, Kind, Means, Passed, Request, Word as _, host};
use crate::service;
use crate::session::{Audience, Options, Outcome, Served, Viewer, observe_elsewhere};
use crate::viewed::{self, line};

/// Longest line that is read, bytes.
const LONGEST: u64 = 1 << 20;
/// Lines that wait to be taken. A front end that does not keep up misses moments, and no observation waits for it.
const WAITING: usize = 8;
/// For whoever does not take the last profile, and for what is to be done once nobody wants anything more.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two signs of life, if there is nothing else to say: a node that loses its power says nothing any more.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// For messages.
const IN_PASSING: Duration = Duration::from_millis(200);

/// What requests mean.
#[derive(Clone, Copy, Debug)]
pub struct Understand {
    pub observation: fn(&Request) -> Result<Options, String>,
    pub trace: fn(&Request) -> Result<Options, String>,
    pub hang: fn(&Request) -> Result<hang::Asked, String>,
}

/// Observes, or looks, as the first line on standard input asks for. Whether all went well.
///
/// `means`: how it may start agents on other nodes, if it is asked for that.
pub async fn serve(understand: Understand, means: Option<Means>) -> bool {
    let (to, lines) = sync_channel(WAITING);
    let (asked, wishes) = mpsc::unbounded_channel();
    let (request_to, request) = oneshot::channel();
    let (others_to, for_others) = mpsc::unbounded_channel();
    let ends = asked.clone();
    let threads = [
        thread::Builder::new().name("orders".into()).spawn(move || take_orders(request_to, &asked, &others_to)),
        thread::Builder::new().name("lines".into()).spawn(move || write_lines(&lines, &ends)),
    ];
    let [Ok(_), Ok(writer)] = threads else { return false };
    tell(&to, line(&json!({ "observation": 0, "version": env!("CARGO_PKG_VERSION") })));
    let mut others = None;
    let done = {
        let said = to.clone();
        let _diverted = divert(Box::new(move |text| {
            tell_within(&said, line(&json!({ "said": text })), IN_PASSING);
        }));
        match request.await {
            // Nobody has ever asked.
            Err(_) => None,
            Ok(Err(why)) => Some(Err((why, false))),
            Ok(Ok(mut request)) => {
                others = request.below.take().map(|below| start_others(below, &request, means, &to, for_others));
                Some(match request.kind {
                    Kind::Observation => observe((understand.observation)(&request), &to, wishes).await,
                    Kind::Trace => {
                        let said = to.clone();
                        let give = move |chunk: &[u8]| tell_within(&said, line_of(Bytes::Trace, chunk), PATIENCE);
                        let options = (understand.trace)(&request).map(|options| options.giving_trace(give));
                        observe(options, &to, wishes).await
                    }
                    Kind::Hang => match service_for(None, Path::new(service::SOCKET)) {
                        Ok(Some(service)) => look_by_service(&service, &request.query, &to, wishes).await,
                        Ok(None) => look((understand.hang)(&request), &to, wishes).await,
                        Err(error) => Err((error.to_string(), false)),
                    },
                })
            }
        }
    };
    let (last, is_done) = match done {
        None => return false,
        Some(Ok(is_complete)) => (json!({ "ended": is_complete }), true),
        Some(Err((why, is_absent))) => (json!({ "failed": why, "absent": is_absent }), false),
    };
    tell(&to, line(&last));
    if let Some(others) = others {
        // Until they have said their last words, too.
        let _ = others.await;
    }
    drop(to);
    let _ = writer.join();
    is_done
}

/// Starts agents on other nodes, and passes on what they say until all have ended.
fn start_others(
    below: Below,
    request: &Request,
    means: Option<Means>,
    to: &SyncSender<Vec<u8>>,
    mut wishes: mpsc::UnboundedReceiver<Asked>,
) -> JoinHandle<()> {
    let numbers: Vec<usize> = below.nodes.iter().map(|(number, _)| *number).collect();
    let (word_to, mut words) = mpsc::channel(WAITING);
    let started = below
        .nodes
        .iter()
        .try_for_each(|(_, name)| host(name).map(drop))
        .and_then(|()| means.ok_or_else(|| "it was not told how it reaches other nodes".to_owned()))
        .and_then(|means| {
            Agents::start::<Passed>(below, means, request.clone(), word_to).map_err(|error| error.to_string())
        });
    let to = to.clone();
    match started {
        Ok(agents) => {
            // They end when this is dropped.
            let asking = tokio::spawn(async move {
                while let Some(wish) = wishes.recv().await {
                    agents.ask(wish);
                }
                std::future::pending::<()>().await;
            });
            tokio::task::spawn_blocking(move || {
                // Who does not take them keeps them waiting.
                while let Some((number, word)) = words.blocking_recv() {
                    let _ = to.send(word.of(number));
                }
                asking.abort();
            })
        }
        Err(why) => tokio::task::spawn_blocking(move || {
            for number in numbers {
                let _ = to.send(Passed::lost(why.clone()).of(number));
            }
        }),
    }
}

/// Whether all was seen, or why nothing was, and whether that is because there is simply nobody here.
type Done = Result<bool, (String, bool)>;

async fn observe(
    options: Result<Options, String>,
    to: &SyncSender<Vec<u8>>,
    asked: mpsc::UnboundedReceiver<Asked>,
) -> Done {
    let options = options.map_err(|why| (why, false))?;
    let served = Served { audience: Box::new(Lines(to.clone())), asked };
    let observed = observe_elsewhere(&options, served).await;
    observed.map(|outcome| outcome == Outcome::Complete).map_err(|error| (error.to_string(), error.is_absence()))
}

async fn look(
    asked: Result<hang::Asked, String>,
    to: &SyncSender<Vec<u8>>,
    wishes: mpsc::UnboundedReceiver<Asked>,
) -> Done {
    let asked = asked.map_err(|why| (why, false))?;
    let mut others = Elsewhere { to: to.clone(), wishes };
    let looked = tokio::task::spawn_blocking(move || hang::find(&asked, &mut others));
    let found = looked.await.map_err(|error| (error.to_string(), false))?;
    let found = found.map_err(|error| (error.to_string(), error.is_absence()))?;
    tell(to, line(&hang::FoundHere { found: &found }));
    Ok(true)
}

/// The service looks, which may do so without stopping anybody. What it says is what an agent says.
async fn look_by_service(
    service: &Service,
    query: &str,
    to: &SyncSender<Vec<u8>>,
    mut wishes: mpsc::UnboundedReceiver<Asked>,
) -> Done {
    let failed = |error: AskError| (error.to_string(), error.is_absence());
    let mut lines = service.lines(&format!("/v1/look?{query}")).await.map_err(failed)?;
    let (mut number, mut is_asked) = (None, false);
    loop {
        let mut text = tokio::select! {
            text = lines.next() => text.map_err(failed)?.ok_or_else(|| failed(AskError::Ended))?,
            _ = wishes.recv(), if !is_asked => {
                is_asked = true;
                if let Some(number) = number {
                    service.end(number).await.map_err(failed)?;
                }
                continue;
            }
        };
        match Head::of(&text).map_err(failed)? {
            Head { failed: Some(why), absent, .. } => return Err((why, absent)),
            Head { ended: Some(is_complete), .. } => return Ok(is_complete),
            Head { observation: Some(begun), .. } => number = Some(begun),
            Head { .. } => {
                text.push(b'\n');
                tell(to, text);
            }
        }
    }
}

/// The front end, which knows how far other nodes are.
struct Elsewhere {
    to: SyncSender<Vec<u8>>,
    wishes: mpsc::UnboundedReceiver<Asked>,
}

impl hang::Others for Elsewhere {
    fn begun(&mut self) {
        tell(&self.to, line(&json!({ "begun": true })));
    }

    fn wait(&mut self) {
        // The only wish is that it ends.
        self.wishes.blocking_recv();
    }
}

/// The request, then wishes, until the input ends.
fn take_orders(
    request: oneshot::Sender<Result<Request, String>>,
    asked: &mpsc::UnboundedSender<Asked>,
    others: &mpsc::UnboundedSender<Asked>,
) {
    let mut input = io::stdin().lock();
    let mut next = || {
        let mut text = Vec::new();
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut text);
        read.is_ok_and(|length| length > 0).then_some(text)
    };
    if let Some(text) = next() {
        let unknown = |error: serde_json::Error| format!("it is not asked as by mpiprobe: {error}");
        let _ = request.send(serde_json::from_slice(&text).map_err(unknown));
        let mut has_ended = false;
        while !has_ended {
            let text = next();
            // An input that ends is a wish for the end, too; later versions may have other wishes.
            let word = text.as_deref().map_or(Some("end"), |text| std::str::from_utf8(text.trim_ascii()).ok());
            let Some(wish) = word.and_then(viewed::asked) else { continue };
            has_ended = wish == Asked::End;
            let _ = asked.send(wish);
            let _ = others.send(wish);
        }
        // Until it ends, which may be another line.
        while next().is_some() {}
    }
    sleep(PATIENCE);
    // Whatever keeps it: nobody is there any more, and the kernel detaches what is left.
    exit(1);
}

fn write_lines(lines: &Receiver<Vec<u8>>, ends: &mpsc::UnboundedSender<Asked>) {
    let mut to = io::stdout();
    loop {
        let text = match lines.recv_timeout(SIGN_OF_LIFE) {
            Ok(text) => text,
            Err(RecvTimeoutError::Timeout) => line(&json!({ "alive": true })),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if to.write_all(&text).and_then(|()| to.flush()).is_err() {
            let _ = ends.send(Asked::End);
            // What is still said, nobody hears.
            while lines.recv().is_ok() {}
        }
    }
}

fn tell(to: &SyncSender<Vec<u8>>, text: Vec<u8>) {
    tell_within(to, text, PATIENCE);
}

/// Waits until it is taken, but not for ever: whether it is.
fn tell_within(to: &SyncSender<Vec<u8>>, mut text: Vec<u8>, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        match to.try_send(text) {
            Err(TrySendError::Full(back)) if Instant::now() < until => text = back,
            sent => return sent.is_ok(),
        }
        sleep(Duration::from_millis(5));
    }
}

/// The front end, for whom it is observed.
struct Lines(SyncSender<Vec<u8>>);

impl Audience for Lines {
    fn permit(&mut self, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn begun(&mut self) {
        tell(&self.0, line(&json!({ "begun": true })));
    }

    fn look(&mut self, profile: &Arc<Profile>) {
        if let Some(recent) = viewed::recent_calls(profile) {
            let _ = self.0.try_send(recent);
        }
        let text = line(&ProfileOutput::new(profile, profile));
        if profile.end.is_some() {
            tell(&self.0, text);
        } else {
            // Who does not take it misses a moment.
            let _ = self.0.try_send(text);
        }
    }

    fn viewer(&self) -> Option<Viewer> {
        let to = self.0.clone();
        Some(Arc::new(move |shown| {
            let (line, is_missed) = viewed::told(shown);
            tell_within(&to, line, if is_missed { PATIENCE } else { IN_PASSING })
        }))
    }
}
