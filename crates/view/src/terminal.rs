//! The terminal: taken over and given back, whatever happens in between.

use std::{
    cell::Cell,
    future::poll_fn,
    io::{self, IsTerminal as _, Stdout, Write as _},
    pin::Pin,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crossterm::{
    clipboard::CopyToClipboard,
    cursor::Show,
    event::{
        DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, EventStream,
        KeyEvent, KeyEventKind, MouseButton, MouseEventKind,
    },
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use futures_core::Stream as _;
use mpiprobe_report::present::say;
use mpiprobe_stacks::callsites::is_caught;
use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    layout::{Position, Rect},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::layout::Size;

/// What a user does, as far as a screen heeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input<'a> {
    Key(&'a KeyEvent),
    Paste(&'a str),
    Resize(Size),
    /// By the wheel, one row.
    Scroll {
        down: bool,
    },
    Click {
        column: u16,
        row: u16,
    },
}

impl<'a> Input<'a> {
    /// What an event of the terminal means; `None`: nothing.
    pub(super) fn of(event: &'a Event) -> Option<Self> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(Self::Key(key)),
            Event::Paste(text) => Some(Self::Paste(text)),
            &Event::Resize(width, height) => Some(Self::Resize(Size { width, height })),
            Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollDown => Some(Self::Scroll { down: true }),
                MouseEventKind::ScrollUp => Some(Self::Scroll { down: false }),
                MouseEventKind::Down(MouseButton::Left) => Some(Self::Click { column: mouse.column, row: mouse.row }),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The next event of the terminal; `None`: there will be no more.
pub(super) async fn next_event(events: &mut EventStream) -> Option<io::Result<Event>> {
    poll_fn(|context| Pin::new(&mut *events).poll_next(context)).await
}

/// Whether the screen is taken over at this moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while something is written to the screen: whoever gives it back from another thread must have the last word.
static WRITES: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread draws.
    static DRAWS: Cell<bool> = const { Cell::new(false) };
}

/// Gives the terminal back at the end of mpiprobe, if nobody has done so before.
#[derive(Debug, Default)]
pub struct GivenBack(());

impl Drop for GivenBack {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether there is a terminal to draw on and to read keys from.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal()
        && io::stdout().is_terminal()
        && std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// The terminal, taken over. Given back when dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Screen {
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        give_back_on_panic();
        let taken = take(mouse).and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match taken {
            Ok(terminal) => Ok(Self { terminal, mouse }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        while_taken(|| self.terminal.draw(draw).map(drop))
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        self.terminal.size().map(|size| Size { width: size.width, height: size.height })
    }

    /// Whatever is on the screen is drawn over. To ask where the cursor is, as clearing does, would take long where a terminal does not answer.
    pub(super) fn redraw(&mut self) -> io::Result<()> {
        while_taken(|| {
            let size = self.terminal.size()?;
            self.terminal.resize(Rect::from((Position::ORIGIN, size)))
        })
    }

    /// Stops this process, as the shell does by a key, until it is continued; meanwhile the terminal is others'.
    pub(super) async fn suspend(&mut self) -> io::Result<()> {
        // Listened for before, since it may come at once.
        let mut continued = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
        give_back();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
        continued.recv().await;
        take(self.mouse)?;
        self.redraw()
    }

    /// Into the clipboard of the terminal, if it allows that (OSC 52); works over any number of remote shells.
    #[expect(clippy::unused_self, reason = "only who has taken it writes to it")]
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        while_taken(|| execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    // What is pasted must not be taken for keys.
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    if mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    Ok(())
}

/// Writes to the screen, unless somebody has given it back meanwhile.
fn while_taken(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let _nobody_else = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    if TAKEN.load(Ordering::SeqCst) { write() } else { Ok(()) }
}

/// As it was, if it is taken over, after what is being drawn; also for those who end the process where nothing is dropped any more.
pub fn give_back() {
    let _nobody_draws = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    restore();
}

/// What fails, fails: there is nothing else to be done about a terminal that has gone.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// What is to be done when a thread panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnPanic {
    /// Somebody expects it and goes on.
    Nothing,
    /// The others go on: a message among others.
    Say,
    /// It is the end of the view: the message is for the ordinary screen.
    GiveBack,
}

impl OnPanic {
    /// Of the thread that panics.
    fn here() -> Self {
        if is_caught() {
            return Self::Nothing;
        }
        let is_main = thread::current().name() == Some("main");
        if is_main || DRAWS.get() || !TAKEN.load(Ordering::SeqCst) { Self::GiveBack } else { Self::Say }
    }
}

fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    DRAWS.set(true);
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match OnPanic::here() {
            OnPanic::Nothing => {}
            OnPanic::Say => say(panic),
            OnPanic::GiveBack => {
                // Who draws may have panicked in the midst of it.
                if DRAWS.get() {
                    restore();
                } else {
                    give_back();
                }
                before(panic);
            }
        }));
    });
}

/// Requests to end: the terminal is given back first.
#[derive(Debug)]
pub(crate) struct Stop([Signal; 3]);

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?]))
    }

    /// Waits for one; for ever without any.
    pub(crate) async fn next(stop: &mut Option<Self>) {
        let Some(Self([interrupt, terminate, hang_up])) = stop else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant TERMINAL-BACK.
    #[test]
    fn only_the_end_of_the_view_gives_the_terminal_away() {
        let elsewhere = |work: fn() -> OnPanic| thread::spawn(work).join().unwrap();
        TAKEN.store(true, Ordering::SeqCst);
        assert_eq!(elsewhere(OnPanic::here), OnPanic::Say);
        let drawing = || {
            DRAWS.set(true);
            OnPanic::here()
        };
        assert_eq!(elsewhere(drawing), OnPanic::GiveBack);
        let mut drawn = 0;
        let mut draw = || {
            drawn += 1;
            Ok(())
        };
        while_taken(&mut draw).unwrap();
        TAKEN.store(false, Ordering::SeqCst);
        while_taken(&mut draw).unwrap();
        assert_eq!(drawn, 1);
        assert_eq!(elsewhere(OnPanic::here), OnPanic::GiveBack);
    }
}
