//! Reads what the screen shows, a little at a time, so that it can be shown early and changed at any time.

use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use mpiprobe_functions::FunctionId;
use mpiprobe_replay::{
    Clocks,
    timeline::{Direction, Found, Frame, Look, Matching, Messages, Painter, Picture, Search, Seen},
};
use mpiprobe_trace::{Call, LocationId, ReadError, SiteId, Span, Trace};
use tokio::sync::mpsc;

use super::now::{self, KeptMoment, KnownClocks, Moment};
use crate::source::KeptCalls;

/// What has been read is shown so often.
const PACE: Duration = Duration::from_millis(100);
/// From one moment of a job that is followed to the next, at least.
const FOLLOWING: Duration = Duration::from_millis(200);
/// No more than one part in so many of the time is spent on following.
const SHARE: u32 = 4;
/// Events that are gone through for messages while a job is followed: a tenth of a second's work, or two.
const FEW_EVENTS: u64 = 1 << 20;

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub(super) frame: Frame,
    pub(super) at: At,
    /// With the number of the question.
    pub(super) question: Option<(u64, Question)>,
    pub(super) messages: bool,
    /// Of a job that runs: of which moment; and whether the next one is to come soon.
    pub(super) moment: u64,
    pub(super) follows: bool,
}

impl Wanted {
    /// Messages are not looked for.
    pub(super) fn without_messages(self) -> Self {
        Self { messages: false, ..self }
    }
}

/// Where the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) lane: Vec<LocationId>,
    pub(super) span: Span,
    /// If that call is there, it is meant.
    pub(super) call: Option<(LocationId, u64)>,
}

/// A call that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) locations: Vec<LocationId>,
    pub(super) from: (u64, LocationId),
    pub(super) direction: Direction,
    pub(super) near_ns: u64,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Any,
    /// Of one of these functions, or at one of these call sites.
    Named(Arc<(HashSet<FunctionId>, HashSet<SiteId>)>),
}

/// What has been read.
#[derive(Clone, Debug)]
pub enum News {
    /// With how much of it has been read, from 0 to 1.
    Picture(Arc<Picture>, f64),
    Seen(Arc<(AtSeen, Seen)>),
    /// `None`: there are too many events in the span. With the span that they were looked for in.
    Messages(Span, Option<Arc<Messages>>),
    /// How much of the way to the messages has been gone, from 0 to 1.
    Matching(f64),
    /// The answer to a question.
    Answer(u64, Option<Box<Found>>),
    Failed(String),
    /// Of a job that runs: what there is now. All else is of this one from now on.
    Moment(Moment),
    /// What has come of writing a file, in words.
    Written(String),
}

/// Of which place something was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtSeen(pub(super) At);

/// Reads a trace.
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct Reader<'a> {
    trace: &'a dyn Trace,
    clocks: &'a Clocks,
    wanted: Option<Wanted>,
    painter: Option<Painter<'a>>,
    look: Option<Look<'a>>,
    search: Option<(u64, Search<'a>)>,
    matching: Option<Matching<'a>>,
    /// Messages are known of it, and whether few events were gone through for that.
    matched: Option<(Span, bool)>,
}

impl<'a> Reader<'a> {
    pub fn new(trace: &'a dyn Trace, clocks: &'a Clocks) -> Self {
        Self { trace, clocks, wanted: None, painter: None, look: None, search: None, matching: None, matched: None }
    }

    /// Something else is wanted; what has not changed goes on.
    pub fn ask(&mut self, wanted: Wanted) -> Vec<News> {
        let (trace, clocks) = (self.trace, self.clocks);
        let before = self.wanted.as_ref();
        let mut news = Vec::new();
        if before.is_none_or(|before| before.frame != wanted.frame) {
            self.painter = Some(Painter::new(trace, clocks, &wanted.frame));
        }
        if before.is_none_or(|before| before.at != wanted.at) {
            self.look = Some(Look::new(trace, clocks, &wanted.at.lane, wanted.at.span, wanted.at.call));
        }
        if before.is_none_or(|before| before.question != wanted.question) {
            self.search = wanted.question.as_ref().map(|(number, question)| (*number, self.search(question)));
        }
        let span = wanted.frame.span;
        let which = (span, wanted.follows);
        if wanted.messages && self.matched != Some(which) {
            self.matched = Some(which);
            let most = if wanted.follows { FEW_EVENTS } else { Matching::MOST_EVENTS };
            self.matching = Matching::within(trace, clocks, span, most);
            if self.matching.is_none() {
                news.push(News::Messages(span, None));
            }
        } else if !wanted.messages {
            (self.matched, self.matching) = (None, None);
        }
        self.wanted = Some(wanted);
        news
    }

    fn search(&self, question: &Question) -> Search<'a> {
        let what = question.what.clone();
        let is_it = move |call: &Call| match &what {
            What::Any => true,
            What::Named(named) => {
                named.0.contains(&call.function()) || call.call_site.is_some_and(|site| named.1.contains(&site))
            }
        };
        let how = (question.direction, question.near_ns);
        Search::new(self.trace, self.clocks, &question.locations, question.from, how, is_it)
    }

    /// Whether there is anything left to read.
    pub fn is_busy(&self) -> bool {
        self.search.is_some() || self.look.is_some() || self.painter.is_some() || self.matching.is_some()
    }

    /// Reads on, until it is enough for now, and gives what is new.
    pub fn work(&mut self, is_enough: &dyn Fn() -> bool) -> Vec<News> {
        let mut news = Vec::new();
        // What the user is waiting for comes first; none of it keeps the others waiting for ever.
        if let Err(error) = self.answer(is_enough, &mut news) {
            self.search = None;
            news.push(News::Failed(error.to_string()));
        }
        if let Err(error) = self.look(is_enough, &mut news) {
            self.look = None;
            news.push(News::Failed(error.to_string()));
        }
        if let Err(error) = self.paint(is_enough, &mut news) {
            news.push(News::Failed(error.to_string()));
        }
        if let Err(error) = self.matching(is_enough, &mut news) {
            self.matching = None;
            news.push(News::Failed(error.to_string()));
        }
        news
    }

    fn answer(&mut self, is_enough: &dyn Fn() -> bool, news: &mut Vec<News>) -> Result<(), ReadError> {
        let Some((number, search)) = &mut self.search else { return Ok(()) };
        loop {
            if let Some(answer) = search.step()? {
                news.push(News::Answer(*number, answer.map(Box::new)));
                self.search = None;
                return Ok(());
            }
            if is_enough() {
                return Ok(());
            }
        }
    }

    fn look(&mut self, is_enough: &dyn Fn() -> bool, news: &mut Vec<News>) -> Result<(), ReadError> {
        let (Some(look), Some(wanted)) = (&mut self.look, &self.wanted) else { return Ok(()) };
        while look.step()? {
            if is_enough() {
                return Ok(());
            }
        }
        news.push(News::Seen(Arc::new((AtSeen(wanted.at.clone()), std::mem::take(&mut look.seen)))));
        self.look = None;
        Ok(())
    }

    fn paint(&mut self, is_enough: &dyn Fn() -> bool, news: &mut Vec<News>) -> Result<(), ReadError> {
        let Some(painter) = &mut self.painter else { return Ok(()) };
        loop {
            if !painter.step()? {
                break;
            }
            if is_enough() {
                news.push(News::Picture(Arc::new(painter.picture().clone()), painter.done()));
                return Ok(());
            }
        }
        news.push(News::Picture(Arc::new(painter.picture().clone()), 1.0));
        self.painter = None;
        Ok(())
    }

    fn matching(&mut self, is_enough: &dyn Fn() -> bool, news: &mut Vec<News>) -> Result<(), ReadError> {
        let Some(matching) = &mut self.matching else { return Ok(()) };
        loop {
            if let Some(messages) = matching.step()? {
                news.push(News::Messages(messages.span, Some(Arc::new(messages))));
                self.matching = None;
                return Ok(());
            }
            if is_enough() {
                news.push(News::Matching(matching.done()));
                return Ok(());
            }
        }
    }
}

/// A reader on a thread of its own.
pub(crate) struct Background {
    shared: Arc<Shared>,
    news: mpsc::UnboundedReceiver<News>,
    thread: Option<JoinHandle<()>>,
    /// Of a job that runs.
    kept: Vec<KeptCalls>,
}

#[derive(Default)]
struct Shared {
    order: Mutex<Order>,
    changed: Condvar,
}

#[derive(Default)]
struct Order {
    wanted: Option<Wanted>,
    /// Another moment is wanted whenever there is one.
    follows: bool,
    /// What is kept is to be written to a file whose name begins so.
    write: Option<String>,
    is_over: bool,
}

impl Background {
    /// Of a trace.
    pub(super) fn start(trace: Arc<dyn Trace + Send + Sync>, clocks: Clocks) -> std::io::Result<Self> {
        Self::spawn(Vec::new(), move |thread| {
            thread.read(trace.as_ref(), &clocks, None);
        })
    }

    /// Of a job that runs, as long as it is followed.
    pub(crate) fn of_kept(kept: Vec<KeptCalls>) -> std::io::Result<Self> {
        let own = kept.clone();
        Self::spawn(kept, move |thread| thread.follow(&own))
    }

    fn spawn(kept: Vec<KeptCalls>, work: impl FnOnce(&Thread) + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (tell, news) = mpsc::unbounded_channel();
        let own = Thread { orders: Arc::clone(&shared), tell };
        let thread = std::thread::Builder::new().name("timeline".into()).spawn(move || work(&own))?;
        Ok(Self { shared, news, thread: Some(thread), kept })
    }

    pub(crate) fn ask(&self, wanted: Wanted) {
        self.shared.lock().wanted = Some(wanted);
        self.shared.changed.notify_one();
    }

    /// Whether further moments of the job are wanted.
    pub(crate) fn follow(&self, follows: bool) {
        let mut order = self.shared.lock();
        if order.follows != follows {
            order.follows = follows;
            self.kept.iter().for_each(|one| one.window.watch(follows));
            self.shared.changed.notify_one();
        }
    }

    /// Writes what is kept to a new file whose name begins so.
    pub(crate) fn write(&self, name: String) {
        self.shared.lock().write = Some(name);
        self.shared.changed.notify_one();
    }

    /// `None`: the reader has failed.
    pub(crate) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        self.kept.iter().for_each(|one| one.window.watch(false));
        if let Some(thread) = self.thread.take() {
            // A panic of it has been told.
            let _ = thread.join();
        }
    }
}

/// What the thread knows.
struct Thread {
    orders: Arc<Shared>,
    tell: mpsc::UnboundedSender<News>,
}

impl Thread {
    /// False: nobody listens.
    fn tell(&self, news: News) -> bool {
        self.tell.send(news).is_ok()
    }

    /// Reads a trace, until something else is to be done. Of a job that runs: a moment of it, until there is a later one.
    fn read(&self, trace: &dyn Trace, clocks: &Clocks, now: Option<&Held<'_>>) -> Next {
        let mut reader = Reader::new(trace, clocks);
        let mut due = None;
        loop {
            let asked = match self.orders.next(reader.is_busy(), due) {
                // Somebody has asked before he knew that there is another moment.
                Next::Ask(wanted) if now.is_some_and(|now| now.shown.version != wanted.moment) => continue,
                Next::Ask(wanted) => reader.ask(*wanted),
                Next::GoOn => Vec::new(),
                Next::Due if now.is_some_and(|now| now.shown.version == now::version(now.calls)) => {
                    due = Some(Instant::now() + FOLLOWING);
                    continue;
                }
                next => return next,
            };
            let began = Instant::now();
            let is_enough = || began.elapsed() > PACE || self.orders.is_waiting();
            for one in asked.into_iter().chain(reader.work(&is_enough)) {
                if !self.tell(one) {
                    return Next::Over;
                }
            }
            if let Some(now) = now.filter(|_| !reader.is_busy() && due.is_none()) {
                due = Some(now.taken + FOLLOWING.max(now.taken.elapsed() * SHARE));
            }
        }
    }

    /// One moment of a job after the other.
    fn follow(&self, calls: &[KeptCalls]) {
        let mut clocks = KnownClocks::default();
        let mut held: Option<Held<'_>> = None;
        loop {
            let next = match &held {
                Some(held) => self.read(held.shown.trace.as_ref(), &held.shown.clocks, Some(held)),
                None => self.orders.next(false, Some(Instant::now())),
            };
            match next {
                Next::Over => return,
                Next::Due => {
                    let taken = Instant::now();
                    let kept = KeptMoment::of(calls).map_err(|error| error.to_string());
                    let moment = kept.and_then(|kept| {
                        let shown = Moment::of(&kept, &mut clocks).map_err(|error| error.to_string())?;
                        Ok(Held { calls, kept, shown, taken })
                    });
                    match moment {
                        Ok(moment) => held = Some(moment),
                        Err(why) => {
                            self.tell(News::Failed(why));
                            return;
                        }
                    }
                }
                Next::Write(name) => {
                    // Who stands still means what he sees.
                    let seen = held.as_ref().filter(|_| !self.orders.lock().follows);
                    let written = if let Some(held) = seen {
                        now::write(&held.kept, &name)
                    } else {
                        let kept = KeptMoment::of(calls).map_err(|error| error.to_string());
                        kept.and_then(|kept| now::write(&kept, &name))
                    };
                    self.tell(News::Written(written.unwrap_or_else(|why| format!("not written: {why}"))));
                }
                Next::Ask(_) | Next::GoOn => continue,
            }
            // Everything is asked for anew.
            if let Some(held) = &held
                && !self.tell(News::Moment(held.shown.clone()))
            {
                return;
            }
        }
    }
}

/// The moment that is shown.
struct Held<'a> {
    calls: &'a [KeptCalls],
    kept: Vec<KeptMoment>,
    shown: Moment,
    /// When it was.
    taken: Instant,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_waiting(&self) -> bool {
        let order = self.lock();
        order.is_over || order.wanted.is_some() || order.write.is_some()
    }

    /// Waits for something to do, unless there is. `due`: when there is to be another moment, if the job is followed.
    fn next(&self, is_busy: bool, due: Option<Instant>) -> Next {
        let mut order = self.lock();
        loop {
            if order.is_over {
                return Next::Over;
            }
            if let Some(name) = order.write.take() {
                return Next::Write(name);
            }
            if let Some(wanted) = order.wanted.take() {
                return Next::Ask(Box::new(wanted));
            }
            if is_busy {
                return Next::GoOn;
            }
            let due = due.filter(|_| order.follows);
            let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
            order = match wait {
                Some(wait) if wait.is_zero() => return Next::Due,
                Some(wait) => self.changed.wait_timeout(order, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(order).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// What the thread does next.
enum Next {
    Ask(Box<Wanted>),
    GoOn,
    /// Another moment is wanted.
    Due,
    Write(String),
    Over,
}
