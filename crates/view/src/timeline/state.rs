//! Which part of a trace is shown, where the cursor is, and what has been read of it.

use std::{collections::HashSet, sync::Arc};

use crossterm::event::KeyEvent;
use mpiprobe_discover::printable;
use mpiprobe_functions::FunctionId;
use mpiprobe_replay::{
    Clocks,
    timeline::{Direction, Found, Frame, Lane, Messages, Picture, Seen, lanes},
};
use mpiprobe_trace::{Definitions, LocationId, SiteId, Span, Trace};
use ratatui::{layout::Rect, style::Style};
use tui_textarea::TextArea;

use super::{
    describe::{self, Around},
    keys::{TIMELINE_BINDINGS, TIMELINE_SECTIONS, TimelineAction},
    now::Moment,
    reader::{At, News, Question, Wanted, What},
};
use crate::{
    content::Tone,
    keys::{BINDINGS, Edit, Section, editing, find_in},
    layout::{self, Size},
    paint::help,
};

/// Lines for what is known of the call under the cursor.
const DETAILS: u16 = 5;
/// Lines that a lane has at most.
const MOST_PITCH: usize = 5;
/// Spans that one can go back to.
const MOST_BACK: usize = 64;
/// What is shown of a job that runs at first, ns.
const FOLLOWED_NS: u64 = 2_000_000_000;

/// What the state cannot do itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Quit,
    Copy(String),
    Suspend,
    Redraw,
    /// Of a job that runs: the display is to stand still, or go on.
    Freeze,
    /// The same: it is to go on.
    GoOn,
    /// What is kept of it is to be written to a file.
    Write,
}

/// Of a job that runs, the moment that is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// It goes on.
    pub(super) follows: bool,
    /// What was before is gone.
    pub(super) is_short: bool,
    version: u64,
}

/// Which messages are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lines {
    #[default]
    OfLane,
    OfCall,
    None,
}

/// The state of the screen.
#[allow(missing_debug_implementations, reason = "it has a trace")]
pub struct Timeline {
    trace: Arc<dyn Trace + Send + Sync>,
    pub(super) name: String,
    /// `None`: it is a trace that does not change.
    pub(super) now: Option<Now>,
    /// All threads, in their order.
    pub(super) threads: Vec<Lane>,
    /// So many are in a lane; 0: as many as it takes to show all.
    fold: usize,
    /// The first lane that is shown.
    pub(super) top: usize,
    /// Of the cursor: the thread, and when it is.
    at_thread: usize,
    pub(super) at_ns: u64,
    /// The call that the cursor was led to.
    call: Option<(LocationId, u64)>,
    pub(super) whole: Span,
    /// Times are shown since then.
    pub(super) begin_ns: u64,
    span: Span,
    back: Vec<Span>,
    size: Size,
    picture: Option<Arc<Picture>>,
    /// How much of it has been read.
    pub(super) done: f64,
    seen: Option<Arc<(super::reader::AtSeen, Seen)>>,
    messages: Option<Arc<Messages>>,
    /// Of which span there are too many events to look for messages.
    too_many: Option<Span>,
    pub(super) matching: Option<f64>,
    pub(super) lines: Lines,
    question: Option<(u64, Question)>,
    asked: u64,
    /// The answer has not come yet.
    is_searching: bool,
    /// What was looked for last.
    looked_for: Option<What>,
    pub(super) typing: Option<TextArea<'static>>,
    last_text: String,
    /// The longest call or wait that was gone to last: which one, and in which span.
    longest: Option<(Longest, usize, Span)>,
    /// What was asked for and needs something that is being read.
    pending: Option<TimelineAction>,
    pub is_help_open: bool,
    pub(super) help_top: usize,
    pub(super) details_top: Option<usize>,
    /// What the last key did, or what has just happened.
    pub notice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Longest {
    Call,
    Wait,
}

/// Where on the terminal everything is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rooms {
    pub(super) header: Rect,
    pub(super) axis: Rect,
    pub(super) lanes: Rect,
    pub(super) details: Rect,
    pub(super) notice: Rect,
    pub(super) footer: Rect,
    /// Columns of the names of lanes.
    pub(super) labels: u16,
    /// Lines of each lane.
    pub(super) pitch: usize,
}

impl Timeline {
    /// `notes` say what is wrong with the trace.
    pub fn new(trace: Arc<dyn Trace + Send + Sync>, clocks: &Clocks, name: &str, notes: &[String]) -> Self {
        let whole = clocks.span(trace.as_ref());
        let whole = Span { from_ns: whole.from_ns, until_ns: whole.until_ns.max(whole.from_ns.saturating_add(1)) };
        let notice = (!notes.is_empty()).then(|| notes.join("; "));
        Self {
            threads: lanes(trace.definitions()),
            name: printable(name.as_bytes()),
            trace,
            now: None,
            fold: 0,
            top: 0,
            at_thread: 0,
            at_ns: whole.from_ns,
            call: None,
            whole,
            begin_ns: whole.from_ns,
            span: whole,
            back: Vec::new(),
            size: Size::default(),
            picture: None,
            done: 0.0,
            seen: None,
            messages: None,
            too_many: None,
            matching: None,
            lines: Lines::default(),
            question: None,
            asked: 0,
            is_searching: false,
            looked_for: None,
            typing: None,
            last_text: String::new(),
            longest: None,
            pending: None,
            is_help_open: false,
            help_top: 0,
            details_top: None,
            notice,
        }
    }

    /// Of a job that runs, which is followed from this moment on.
    pub fn of_now(moment: &Moment) -> Self {
        let mut state = Self::new(Arc::clone(&moment.trace), &moment.clocks, "", &[]);
        state.now = Some(Now { follows: true, is_short: false, version: 0 });
        let empty = Span { from_ns: 0, until_ns: FOLLOWED_NS };
        (state.span, state.at_ns) = (empty, middle(empty));
        state.renew(moment);
        state.begin_ns = state.whole.from_ns;
        state
    }

    /// There is a later moment.
    fn renew(&mut self, moment: &Moment) {
        self.trace = Arc::clone(&moment.trace);
        // A thread keeps its lane, and the cursor its thread.
        let at = self.threads.get(self.at_thread).map(|thread| thread.location);
        self.threads = lanes(self.trace.definitions());
        self.at_thread = self.threads.iter().position(|thread| Some(thread.location) == at).unwrap_or(0);
        let Span { from_ns, until_ns } = moment.span;
        // What comes later is not known of all ranks.
        let known_ns = if moment.known_until_ns == 0 { until_ns } else { moment.known_until_ns };
        self.whole = Span { from_ns: from_ns.min(known_ns), until_ns: known_ns.max(from_ns.saturating_add(1)) };
        if let Some(now) = &mut self.now {
            (now.version, now.is_short) = (moment.version, moment.is_short);
        }
        if self.follows() {
            self.go_to_end();
        }
        self.scroll();
    }

    /// The same length of time, up to the last that is known.
    fn go_to_end(&mut self) {
        let (length, behind) = (self.span.until_ns - self.span.from_ns, self.span.until_ns.saturating_sub(self.at_ns));
        let until_ns = self.whole.until_ns.max(length);
        self.span = Span { from_ns: until_ns - length, until_ns };
        self.at_ns = until_ns.saturating_sub(behind).max(self.span.from_ns);
    }

    /// Whether what is shown goes on with the job.
    pub fn follows(&self) -> bool {
        self.now.is_some_and(|now| now.follows)
    }

    /// Stands still, or goes on with the job.
    pub fn set_following(&mut self, follows: bool) {
        let shown = self.shown_frame().span;
        let Some(now) = self.now.as_mut().filter(|now| now.follows != follows) else { return };
        now.follows = follows;
        if follows {
            (self.is_searching, self.question) = (false, None);
            self.call = None;
            self.details_top = None;
            self.go_to_end();
        } else {
            // What is seen stays.
            let behind = self.span.until_ns.saturating_sub(self.at_ns);
            (self.span, self.at_ns) = (shown, shown.until_ns.saturating_sub(behind).max(shown.from_ns));
        }
    }

    /// Whether a text is being typed.
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// Lines above, which are others'.
    fn above(&self) -> u16 {
        if self.now.is_some() { 2 } else { 0 }
    }

    /// Lines of a screen that has room for so many lanes.
    pub(super) fn height_for(lanes: u16) -> u16 {
        lanes.saturating_add(4 + DETAILS)
    }

    pub(super) fn definitions(&self) -> &Definitions {
        self.trace.definitions()
    }

    pub(super) fn events(&self) -> u64 {
        self.trace.event_count()
    }

    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.scroll();
    }

    pub fn size(&self) -> Size {
        self.size
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// Threads of a lane.
    pub(super) fn fold(&self) -> usize {
        if self.fold > 0 {
            return self.fold;
        }
        let room = usize::from(self.lane_lines());
        self.threads.len().div_ceil(room).max(1).next_power_of_two()
    }

    pub(super) fn lane_count(&self) -> usize {
        self.threads.len().div_ceil(self.fold())
    }

    /// The lane that the cursor is on.
    pub(super) fn at_lane(&self) -> usize {
        self.at_thread / self.fold()
    }

    pub(super) fn lane(&self, lane: usize) -> &[Lane] {
        let fold = self.fold();
        let from = lane.saturating_mul(fold).min(self.threads.len());
        self.threads.get(from..from.saturating_add(fold).min(self.threads.len())).unwrap_or_default()
    }

    /// "3", "0-15"
    pub(super) fn lane_name(&self, lane: usize) -> String {
        match self.lane(lane) {
            [] => String::new(),
            [one] => one.name.clone(),
            [first, .., last] => format!("{}-{}", first.name, last.name),
        }
    }

    fn locations(&self, lane: usize) -> Vec<LocationId> {
        self.lane(lane).iter().map(|thread| thread.location).collect()
    }

    pub(super) fn rooms(&self) -> Rooms {
        let Size { width, height } = self.size;
        let line = |y: u16| Rect::new(0, y, width, u16::from(y < height));
        let names =
            (0..self.lane_count().min(4096)).map(|lane| self.lane_name(lane).chars().count()).max().unwrap_or(0);
        let labels = u16::try_from(names).unwrap_or(u16::MAX).saturating_add(2).clamp(5, 16).min(width);
        let (lines, above) = (self.lane_lines(), self.above());
        let pitch = (usize::from(lines) / self.lane_count().max(1)).clamp(1, MOST_PITCH);
        Rooms {
            header: line(above),
            axis: Rect { x: labels, width: width.saturating_sub(labels), ..line(above + 1) },
            lanes: Rect::new(labels, above + 2, width.saturating_sub(labels), lines),
            details: Rect::new(0, above + 2 + lines, width, DETAILS),
            notice: line(height.saturating_sub(2)),
            footer: line(height.saturating_sub(1)),
            labels,
            pitch,
        }
    }

    /// Lines for lanes.
    fn lane_lines(&self) -> u16 {
        self.size.height.saturating_sub(4 + DETAILS + self.above()).max(1)
    }

    /// Lanes that there is room for.
    pub(super) fn shown_lanes(&self) -> usize {
        let rooms = self.rooms();
        (usize::from(rooms.lanes.height) / rooms.pitch).max(1)
    }

    /// What is to be seen.
    pub(super) fn frame(&self) -> Frame {
        let last = self.lane_count().min(self.top.saturating_add(self.shown_lanes()));
        Frame {
            span: self.span,
            columns: self.rooms().lanes.width.into(),
            lanes: (self.top..last).map(|lane| self.locations(lane)).collect(),
        }
    }

    /// What is to be read.
    pub fn wanted(&self) -> Wanted {
        let frame = self.frame();
        let at = self.at(&frame);
        let (moment, follows) = self.now.map_or((0, false), |now| (now.version, now.follows));
        Wanted { at, question: self.question.clone(), messages: self.lines != Lines::None, frame, moment, follows }
    }

    fn at(&self, frame: &Frame) -> At {
        At { lane: self.locations(self.at_lane()), span: frame.span_of(frame.column(self.at_ns)), call: self.call }
    }

    /// What is seen: of a job that is followed, the last that has been read, until the next moment has been.
    pub(super) fn shown_frame(&self) -> Frame {
        let frame = self.frame();
        match self.last_picture() {
            Some(last) if self.follows() && last.is_whole() && is_alike(&last.frame, &frame) => last.frame.clone(),
            _ => frame,
        }
    }

    /// The column of the cursor.
    pub(super) fn at_column(&self) -> usize {
        self.frame().column(self.at_ns)
    }

    /// What has been read of it; `None`: it is of something else.
    pub(super) fn picture(&self, frame: &Frame) -> Option<&Picture> {
        self.picture.as_deref().filter(|picture| picture.frame == *frame)
    }

    /// The last one that was read, of whatever.
    pub(super) fn last_picture(&self) -> Option<&Picture> {
        self.picture.as_deref()
    }

    /// What is at the cursor, once it has been read.
    pub(super) fn seen(&self) -> Option<&Seen> {
        let seen = self.seen.as_ref()?;
        // Of a job that is followed, the last moment's, until the next one's is there.
        let is_it = if self.follows() {
            seen.0.0.lane == self.locations(self.at_lane())
        } else {
            seen.0.0 == self.at(&self.frame())
        };
        is_it.then_some(&seen.1)
    }

    /// The call under the cursor.
    pub(super) fn found(&self) -> Option<&Found> {
        self.seen()?.most.as_ref()
    }

    /// Messages of what is shown.
    pub(super) fn messages(&self) -> Option<&Messages> {
        self.messages.as_deref().filter(|messages| {
            self.follows() || messages.span.from_ns <= self.span.from_ns && messages.span.until_ns >= self.span.until_ns
        })
    }

    /// Whether there are too many events to look for messages.
    pub(super) fn has_too_many(&self) -> bool {
        self.too_many == Some(self.span)
    }

    pub(super) fn is_searching(&self) -> bool {
        self.is_searching
    }

    pub(super) fn around(&self) -> Around<'_> {
        let open = if self.now.is_some() { "has not returned yet" } else { "had not returned when recording ended" };
        Around { definitions: self.definitions(), begin_ns: self.begin_ns, messages: self.messages(), open }
    }

    /// What is known of the call under the cursor, line by line.
    pub(super) fn details(&self) -> Vec<(Tone, String)> {
        self.found().map(|found| self.around().lines(found)).unwrap_or_default()
    }

    /// Takes in what has been read.
    pub fn take(&mut self, news: News) {
        match news {
            News::Moment(moment) => self.renew(&moment),
            News::Written(text) => self.notice = Some(text),
            // Half of one would be seen for a moment only.
            News::Picture(picture, done)
                if self.follows() && done < 1.0 && is_alike(&self.shown_frame(), &picture.frame) => {}
            News::Picture(picture, done) => (self.picture, self.done) = (Some(picture), done),
            News::Seen(seen) => self.seen = Some(seen),
            News::Messages(span, None) => (self.too_many, self.matching) = (Some(span), None),
            News::Messages(_, Some(messages)) => (self.messages, self.matching) = (Some(messages), None),
            News::Matching(done) => self.matching = Some(done),
            News::Answer(number, answer) if number == self.asked => {
                (self.is_searching, self.question) = (false, None);
                match answer {
                    Some(found) => {
                        let call = &found.call;
                        self.go_to(found.location, call.number, call.entry_ns, call.return_ns);
                    }
                    None => self.notice = Some("there is no further one".into()),
                }
            }
            News::Answer(..) => {}
            News::Failed(why) => self.notice = Some(printable(why.as_bytes())),
        }
        if let Some(action) = self.pending.take() {
            // It is asked for again if it still cannot be done.
            self.act(action);
        }
    }

    pub fn key(&mut self, event: &KeyEvent) -> Option<Effect> {
        if self.typing.is_some() {
            self.type_key(event);
            return None;
        }
        let action = find_in(TIMELINE_BINDINGS, event, false)?;
        self.act(action)
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(area) = &mut self.typing {
            area.insert_str(text.replace(['\n', '\r'], " "));
        }
    }

    fn type_key(&mut self, event: &KeyEvent) {
        let Some(area) = &mut self.typing else { return };
        match editing(event) {
            Some(Edit::Enter | Edit::Apply) => {
                let text = area.lines().join(" ").trim().to_owned();
                self.typing = None;
                self.look_for(&text);
            }
            Some(Edit::Cancel) => self.typing = None,
            Some(Edit::Clear) => _ = area.delete_line_by_head(),
            Some(_) => {}
            None => _ = area.input(*event),
        }
    }

    /// What was typed leads to the next call that has it in its name.
    fn look_for(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        text.clone_into(&mut self.last_text);
        let wanted = text.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&wanted);
        let functions: HashSet<FunctionId> = FunctionId::all().filter(|id| has(id.function().name)).collect();
        let sites = (0..).map(SiteId).zip(&self.definitions().call_sites);
        let sites: HashSet<SiteId> = sites.filter(|(_, site)| has(&site.text)).map(|(id, _)| id).collect();
        if functions.is_empty() && sites.is_empty() {
            self.notice = Some(format!("no function and no call site has {text:?} in its name"));
            return;
        }
        self.looked_for = Some(What::Named(Arc::new((functions, sites))));
        self.ask_for_named(Direction::Forward);
    }

    fn ask_for_named(&mut self, direction: Direction) {
        match self.looked_for.clone() {
            Some(what) => {
                let all = self.threads.iter().map(|thread| thread.location).collect();
                self.ask(all, direction, what);
            }
            None => self.notice = Some("nothing was looked for: / does".into()),
        }
    }

    fn ask(&mut self, locations: Vec<LocationId>, direction: Direction, what: What) {
        let first = self.threads.get(self.at_thread).map_or(LocationId(0), |thread| thread.location);
        let from = match self.found() {
            // Where the cursor was led to, or what is seen under it.
            Some(found) => (found.call.entry_ns, found.location),
            None => (self.at_ns, first),
        };
        let near_ns = (self.span.until_ns - self.span.from_ns) / 8;
        self.asked += 1;
        self.is_searching = true;
        self.question = Some((self.asked, Question { locations, from, direction, near_ns, what }));
    }

    pub fn act(&mut self, action: TimelineAction) -> Option<Effect> {
        (self.notice, self.pending) = (None, None);
        if self.is_help_open && self.act_on_help(action) {
            return None;
        }
        if self.details_top.is_some() && self.act_on_details(action) {
            return None;
        }
        let needs_call = matches!(
            action,
            TimelineAction::ZoomOnCall
                | TimelineAction::Details
                | TimelineAction::NextCall
                | TimelineAction::PreviousCall
                | TimelineAction::NextFound
                | TimelineAction::PreviousFound
        );
        if stands_still(action) {
            self.set_following(false);
        }
        if needs_call && self.seen().is_none() && !self.threads.is_empty() {
            self.pending = Some(action);
            return None;
        }
        let page = isize::try_from(self.shown_lanes().saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            TimelineAction::Quit => return Some(Effect::Quit),
            TimelineAction::Suspend => return Some(Effect::Suspend),
            TimelineAction::Redraw => return Some(Effect::Redraw),
            TimelineAction::Copy => {
                let lines: Vec<String> = self.details().into_iter().map(|(_, line)| line).collect();
                if !lines.is_empty() {
                    return Some(Effect::Copy(lines.join("\n")));
                }
                self.notice = Some("there is no call under the cursor".into());
            }
            TimelineAction::Write if self.now.is_some() => return Some(Effect::Write),
            TimelineAction::Write => self.notice = Some("it is in a file already".into()),
            TimelineAction::Freeze if self.now.is_some() => return Some(Effect::Freeze),
            TimelineAction::Freeze => self.notice = Some("it is a file: nothing goes on".into()),
            TimelineAction::End if self.now.is_some() => return Some(Effect::GoOn),
            TimelineAction::End => self.move_to_edge(true),
            TimelineAction::Beginning => self.move_to_edge(false),
            TimelineAction::Help => (self.is_help_open, self.help_top) = (true, 0),
            TimelineAction::Left => self.step(-1),
            TimelineAction::Right => self.step(1),
            TimelineAction::PanLeft => self.pan(false),
            TimelineAction::PanRight => self.pan(true),
            TimelineAction::Down => self.move_by(1),
            TimelineAction::Up => self.move_by(-1),
            TimelineAction::PageDown => self.move_by(page),
            TimelineAction::PageUp => self.move_by(-page),
            TimelineAction::First => self.move_by(isize::MIN),
            TimelineAction::Last => self.move_by(isize::MAX),
            TimelineAction::ZoomIn if self.follows() => {
                let least = u64::from(self.rooms().lanes.width.max(1));
                let length = ((self.span.until_ns - self.span.from_ns) / 2).max(least);
                let from_ns = self.span.until_ns.saturating_sub(length);
                self.set_span(Span { from_ns, ..self.span });
            }
            TimelineAction::ZoomIn => self.zoom(true),
            TimelineAction::ZoomOut => self.zoom(false),
            TimelineAction::ZoomOnCall => self.zoom_on_call(),
            TimelineAction::Whole => self.show(self.whole),
            TimelineAction::Back => match self.back.pop() {
                Some(span) => self.set_span(span),
                None => self.notice = Some("no other time was shown before".into()),
            },
            TimelineAction::Fold => self.fold_by(self.fold().saturating_mul(2)),
            TimelineAction::Unfold => self.fold_by(self.fold() / 2),
            TimelineAction::NextCall => self.ask(self.locations(self.at_lane()), Direction::Forward, What::Any),
            TimelineAction::PreviousCall => self.ask(self.locations(self.at_lane()), Direction::Back, What::Any),
            TimelineAction::LongestCall => self.go_to_longest(Longest::Call),
            TimelineAction::LongestWait => self.go_to_longest(Longest::Wait),
            TimelineAction::Search => self.open_search(),
            TimelineAction::NextFound => self.ask_for_named(Direction::Forward),
            TimelineAction::PreviousFound => self.ask_for_named(Direction::Back),
            TimelineAction::Lines => {
                self.lines = match self.lines {
                    Lines::OfLane => Lines::OfCall,
                    Lines::OfCall => Lines::None,
                    Lines::None => Lines::OfLane,
                };
                let what = match self.lines {
                    Lines::OfLane => "messages of the lane",
                    Lines::OfCall => "messages of the call under the cursor",
                    Lines::None => "no messages",
                };
                self.notice = Some(what.into());
            }
            TimelineAction::Details => {
                if self.found().is_some() {
                    self.details_top = Some(0);
                } else {
                    self.notice = Some("there is no call under the cursor".into());
                }
            }
        }
        None
    }

    /// The time at the beginning or the end, as much of it as is shown.
    fn move_to_edge(&mut self, end: bool) {
        let length = self.span.until_ns - self.span.from_ns;
        let from_ns = if end { self.whole.until_ns.saturating_sub(length) } else { self.whole.from_ns };
        self.show(self.within(from_ns, length));
        self.call = None;
        self.at_ns = if end { self.span.until_ns } else { self.span.from_ns };
    }

    fn open_search(&mut self) {
        let mut area = TextArea::new(vec![self.last_text.clone()]);
        area.set_cursor_line_style(Style::new());
        area.move_cursor(tui_textarea::CursorMove::End);
        self.typing = Some(area);
    }

    /// The help takes the keys that move and close it; whether it has taken this one.
    fn act_on_help(&mut self, action: TimelineAction) -> bool {
        let others = if self.now.is_some() { help::lines_of(&[Section::Screens], BINDINGS) + 1 } else { 0 };
        let lines = help::lines_of(TIMELINE_SECTIONS, TIMELINE_BINDINGS) + others;
        match moved(action, self.help_top, layout::help_rows(self.size), lines) {
            Moved::To(top) => self.help_top = top,
            Moved::Closed(is_all) => {
                self.is_help_open = false;
                return is_all;
            }
            Moved::NotMine => return false,
        }
        true
    }

    fn act_on_details(&mut self, action: TimelineAction) -> bool {
        let lines = self.details().len();
        match moved(action, self.details_top.unwrap_or(0), layout::help_rows(self.size), lines) {
            Moved::To(top) => self.details_top = Some(top),
            Moved::Closed(is_all) => {
                self.details_top = None;
                return is_all || action == TimelineAction::Details;
            }
            Moved::NotMine => return false,
        }
        true
    }

    /// So many columns later.
    fn step(&mut self, columns: isize) {
        let is_inside =
            self.at_column().checked_add_signed(columns).is_some_and(|column| column < self.frame().columns);
        if !is_inside {
            self.set_following(false);
        }
        let frame = self.frame();
        let column = frame.column(self.at_ns);
        let Some(wanted) = column.checked_add_signed(columns).filter(|wanted| *wanted < frame.columns) else {
            let (from, span) = (self.at_ns, self.span);
            self.pan(columns > 0);
            if self.span == span {
                return;
            }
            self.at_ns = from;
            let column = self.frame().column(from).saturating_add_signed(columns);
            self.at_ns = middle(self.frame().span_of(column));
            return;
        };
        self.call = None;
        self.at_ns = middle(frame.span_of(wanted));
    }

    /// Half a screen later, or earlier.
    fn pan(&mut self, later: bool) {
        let half = (self.span.until_ns - self.span.from_ns) / 2;
        let Span { from_ns, until_ns } = self.span;
        let by = if later {
            half.min(self.whole.until_ns.saturating_sub(until_ns))
        } else {
            half.min(from_ns.saturating_sub(self.whole.from_ns))
        };
        if by == 0 {
            let what = match (later, self.now.is_some()) {
                (true, false) => "this is the end of the trace",
                (false, false) => "this is its beginning",
                (true, true) => "later is not known at this moment: End follows the job",
                (false, true) => "before this nothing is kept",
            };
            self.notice = Some(what.into());
            return;
        }
        self.call = None;
        if later {
            self.span = Span { from_ns: from_ns + by, until_ns: until_ns + by };
            self.at_ns = self.at_ns.saturating_add(by);
        } else {
            self.span = Span { from_ns: from_ns - by, until_ns: until_ns - by };
            self.at_ns = self.at_ns.saturating_sub(by);
        }
    }

    fn move_by(&mut self, lanes: isize) {
        let last = self.lane_count().saturating_sub(1);
        let lane = self.at_lane().saturating_add_signed(lanes).min(last);
        if lane != self.at_lane() {
            self.call = None;
            self.at_thread = lane.saturating_mul(self.fold());
        }
        self.scroll();
    }

    fn fold_by(&mut self, fold: usize) {
        let most = self.threads.len().max(1).next_power_of_two();
        let wanted = fold.clamp(1, most);
        if wanted == self.fold() {
            self.notice =
                Some(if wanted == 1 { "each thread has a lane of its own" } else { "all are in one lane" }.into());
        }
        self.fold = wanted;
        self.scroll();
    }

    fn scroll(&mut self) {
        let (lane, shown) = (self.at_lane(), self.shown_lanes());
        let last_top = self.lane_count().saturating_sub(shown);
        self.top = self.top.min(lane).max((lane + 1).saturating_sub(shown)).min(last_top);
    }

    /// Half of the time, or twice as much, around the cursor.
    fn zoom(&mut self, closer: bool) {
        let length = self.span.until_ns - self.span.from_ns;
        let wanted = if closer { length / 2 } else { length.saturating_mul(2) };
        let least = u64::from(self.rooms().lanes.width.max(1));
        let wanted = wanted.clamp(least, (self.whole.until_ns - self.whole.from_ns).max(least));
        if wanted == length {
            let notice = if closer { "a column is a nanosecond" } else { "this is the whole trace" };
            self.notice = Some(notice.into());
            return;
        }
        let part = self.at_ns.saturating_sub(self.span.from_ns) as f64 / length.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of it")]
        let before = (wanted as f64 * part.clamp(0.0, 1.0)) as u64;
        self.show(self.within(self.at_ns.saturating_sub(before), wanted));
    }

    /// A span of a length that begins about then, and is in the trace.
    fn within(&self, from_ns: u64, length: u64) -> Span {
        let from_ns = from_ns.min(self.whole.until_ns.saturating_sub(length)).max(self.whole.from_ns);
        Span { from_ns, until_ns: from_ns.saturating_add(length) }
    }

    fn zoom_on_call(&mut self) {
        let Some((location, call)) = self.found().map(|found| (found.location, &found.call)) else {
            self.notice = Some("there is no call under the cursor".into());
            return;
        };
        let (number, entry, end) = (call.number, call.entry_ns, call.return_ns);
        let least = u64::from(self.rooms().lanes.width.max(1));
        let length = end.saturating_sub(entry).saturating_mul(2).max(least);
        let length = length.min((self.whole.until_ns - self.whole.from_ns).max(least));
        self.show(self.within(entry.saturating_sub(length / 4), length));
        self.go_to(location, number, entry, end);
    }

    /// Another span, from which one can go back to this one.
    fn show(&mut self, span: Span) {
        if span == self.span {
            return;
        }
        if self.back.len() >= MOST_BACK {
            self.back.remove(0);
        }
        self.back.push(self.span);
        self.set_span(span);
    }

    fn set_span(&mut self, span: Span) {
        self.span = span;
        self.at_ns = self.at_ns.clamp(span.from_ns, span.until_ns.max(span.from_ns));
    }

    /// The cursor onto a call.
    fn go_to(&mut self, location: LocationId, number: u64, entry_ns: u64, return_ns: u64) {
        let Some(thread) = self.threads.iter().position(|thread| thread.location == location) else { return };
        self.at_thread = thread;
        self.scroll();
        let length = self.span.until_ns - self.span.from_ns;
        let is_in = |ns: u64| ns >= self.span.from_ns && ns <= self.span.until_ns;
        if !is_in(entry_ns) {
            self.show(self.within(entry_ns.saturating_sub(length / 2), length));
        }
        let shown_end = return_ns.min(self.span.until_ns);
        self.at_ns = (entry_ns.midpoint(shown_end.max(entry_ns))).clamp(self.span.from_ns, self.span.until_ns);
        self.call = Some((location, number));
    }

    fn go_to_longest(&mut self, kind: Longest) {
        let (span, frame) = (self.span, self.frame());
        let next = match self.longest {
            Some((last, place, of)) if (last, of) == (kind, span) => place + 1,
            _ => 0,
        };
        let is_in = |from: u64, until: u64| until >= span.from_ns && from <= span.until_ns;
        let call = match kind {
            Longest::Call => {
                let Some(picture) = self.picture(&frame).filter(|picture| picture.is_whole()) else {
                    self.notice = Some("not all of this time has been read yet: it is gone to then".into());
                    self.pending = Some(TimelineAction::LongestCall);
                    return;
                };
                let longest = picture.longest.get(next % picture.longest.len().max(1));
                longest.map(|call| (call.location, call.number, call.begin_ns, call.begin_ns.saturating_add(call.ns)))
            }
            Longest::Wait => {
                let Some(messages) = self.messages().filter(|messages| messages.span == span) else {
                    let why = if self.has_too_many() {
                        "there are too many events in this time to look for waiting: zoom in, or use mpiprobe waits"
                    } else if self.lines == Lines::None {
                        "messages are not looked for: m does"
                    } else {
                        self.pending = Some(TimelineAction::LongestWait);
                        "not all messages of this time have been found yet: it is gone to then"
                    };
                    self.notice = Some(why.into());
                    return;
                };
                let waits: Vec<_> =
                    messages.waits.iter().filter(|wait| is_in(wait.call.entry_ns, wait.call.return_ns)).collect();
                let wait = waits.get(next % waits.len().max(1));
                wait.map(|wait| (wait.call.location, wait.call.number, wait.call.entry_ns, wait.call.return_ns))
            }
        };
        match call {
            Some((location, number, entry, end)) => {
                self.go_to(location, number, entry, end);
                // Going there may have moved what is shown, if the call has begun before it.
                self.longest = Some((kind, next, self.span));
            }
            None if kind == Longest::Wait => self.notice = Some("nobody is seen to wait for anybody here".into()),
            None => self.notice = Some("there is no call here".into()),
        }
    }

    /// A click chooses a lane and a time.
    pub fn click(&mut self, x: u16, y: u16) {
        let rooms = self.rooms();
        if self.is_help_open || self.details_top.is_some() || self.typing.is_some() {
            return;
        }
        let inside = x >= rooms.lanes.x && y >= rooms.lanes.y && y < rooms.lanes.bottom();
        let lane = self.top + usize::from(y.saturating_sub(rooms.lanes.y)) / rooms.pitch;
        if inside && lane < self.lane_count() {
            let frame = self.frame();
            self.call = None;
            self.at_thread = lane.saturating_mul(self.fold());
            self.at_ns = middle(frame.span_of(usize::from(x - rooms.lanes.x)));
        }
    }

    /// The time under the cursor, since the beginning.
    pub(super) fn at_text(&self) -> String {
        let apart = (self.span.until_ns - self.span.from_ns) / u64::from(self.rooms().lanes.width.max(1));
        describe::time(self.at_ns.saturating_sub(self.begin_ns), apart)
    }
}

enum Moved {
    To(usize),
    /// Whether the key was for nothing else.
    Closed(bool),
    NotMine,
}

/// Of a window over everything else, with so many lines, of which some are shown.
fn moved(action: TimelineAction, top: usize, rows: usize, lines: usize) -> Moved {
    let last = lines.saturating_sub(rows);
    let top = match action {
        TimelineAction::Down => top + 1,
        TimelineAction::Up => top.saturating_sub(1),
        TimelineAction::PageDown => top + rows,
        TimelineAction::PageUp => top.saturating_sub(rows),
        TimelineAction::First | TimelineAction::Beginning => 0,
        TimelineAction::Last | TimelineAction::End => last,
        TimelineAction::Help | TimelineAction::Back | TimelineAction::ZoomOnCall => return Moved::Closed(true),
        TimelineAction::Quit | TimelineAction::Suspend | TimelineAction::Redraw | TimelineAction::Copy => {
            return Moved::NotMine;
        }
        _ => return Moved::Closed(false),
    };
    Moved::To(top.min(last))
}

fn middle(span: Span) -> u64 {
    span.from_ns.midpoint(span.until_ns)
}

/// Whether they are of the same lanes at different times.
fn is_alike(one: &Frame, other: &Frame) -> bool {
    let length = |frame: &Frame| frame.span.until_ns.saturating_sub(frame.span.from_ns);
    one.lanes == other.lanes && one.columns == other.columns && length(one) == length(other)
}

/// What leads to a time or a call, which would be gone soon if the display went on.
fn stands_still(action: TimelineAction) -> bool {
    matches!(
        action,
        TimelineAction::PanLeft
            | TimelineAction::PanRight
            | TimelineAction::ZoomOut
            | TimelineAction::ZoomOnCall
            | TimelineAction::Whole
            | TimelineAction::Back
            | TimelineAction::Beginning
            | TimelineAction::NextCall
            | TimelineAction::PreviousCall
            | TimelineAction::LongestCall
            | TimelineAction::LongestWait
            | TimelineAction::Search
            | TimelineAction::NextFound
            | TimelineAction::PreviousFound
            | TimelineAction::Details
    )
}
