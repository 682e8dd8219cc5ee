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

/// What has been read is shown so often.
const PACE: Duration = Duration::from_millis(100);

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub(super) frame: Frame,
    pub(super) at: At,
    /// With the number of the question.
    pub(super) question: Option<(u64, Question)>,
    pub(super) messages: bool,
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
    /// Messages are known of it.
    matched: Option<Span>,
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
        let is_known = self.matched.is_some_and(|known| known == span);
        if wanted.messages && !is_known {
            self.matched = Some(span);
            self.matching = Matching::new(trace, clocks, span);
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
pub(super) struct Background {
    shared: Arc<Shared>,
    news: mpsc::UnboundedReceiver<News>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    order: Mutex<Order>,
    changed: Condvar,
}

#[derive(Default)]
struct Order {
    wanted: Option<Wanted>,
    is_over: bool,
}

impl Background {
    pub(super) fn start(trace: Arc<dyn Trace + Send + Sync>, clocks: Clocks) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (tell, news) = mpsc::unbounded_channel();
        let orders = Arc::clone(&shared);
        let work = move || {
            let mut reader = Reader::new(trace.as_ref(), &clocks);
            loop {
                let asked = match orders.next(reader.is_busy()) {
                    Next::Over => return,
                    Next::Ask(wanted) => reader.ask(*wanted),
                    Next::GoOn => Vec::new(),
                };
                let began = Instant::now();
                let is_enough = || began.elapsed() > PACE || orders.is_waiting();
                for one in asked.into_iter().chain(reader.work(&is_enough)) {
                    if tell.send(one).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("timeline".into()).spawn(work)?;
        Ok(Self { shared, news, thread: Some(thread) })
    }

    pub(super) fn ask(&self, wanted: Wanted) {
        self.shared.lock().wanted = Some(wanted);
        self.shared.changed.notify_one();
    }

    /// `None`: the reader has failed.
    pub(super) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of it has been told.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_waiting(&self) -> bool {
        let order = self.lock();
        order.is_over || order.wanted.is_some()
    }

    /// Waits for something to do, unless there is.
    fn next(&self, is_busy: bool) -> Next {
        let mut order = self.lock();
        while !is_busy && !order.is_over && order.wanted.is_none() {
            order = self.changed.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        match order.wanted.take() {
            _ if order.is_over => Next::Over,
            Some(wanted) => Next::Ask(Box::new(wanted)),
            None => Next::GoOn,
        }
    }
}

/// What the thread does next.
enum Next {
    Ask(Box<Wanted>),
    GoOn,
    Over,
}
