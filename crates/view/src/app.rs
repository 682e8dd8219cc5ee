//! The loop: draw, wait for a key or for news, and again.

use std::{future::poll_fn, io, pin::Pin};

use crossterm::event::{Event, EventStream, KeyEventKind, MouseButton, MouseEventKind};
use futures_core::Stream as _;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    ViewError,
    draw::{Theme, draw},
    export::{self, Form},
    keep::Keeper,
    keys::Action,
    layout::Size,
    options::ViewOptions,
    source::{Source, Update, Wish},
    start::ViewStart,
    state::{Effect, State},
    terminal::Screen,
};

/// Shows a source until the user has seen enough or there is nothing more to show.
pub(super) async fn run(mut source: impl Source, options: ViewOptions, start: ViewStart) -> Result<(), ViewError> {
    let options = options.resolved(&|name| std::env::var(name));
    let theme = Theme::new(options);
    let mut screen = Screen::take(options.mouse).map_err(ViewError::Terminal)?;
    let mut events = EventStream::new();
    let mut state = State::new(source.running());
    start.begin(&mut state);
    let mut keeper = Keeper::new(start.files, &mut state);
    state.resize(screen.size().map_err(ViewError::Terminal)?);
    let mut shows_recent_calls = false;
    loop {
        // However one has come to the screen, or left it.
        if state.wants_recent_calls() != shows_recent_calls {
            shows_recent_calls = !shows_recent_calls;
            source.wish(Wish::RecentCalls(shows_recent_calls));
        }
        screen.draw(|frame| draw(frame, &state, theme)).map_err(ViewError::Terminal)?;
        tokio::select! {
            biased;
            event = next(&mut events) => {
                let Some(event) = event else { return Ok(()) };
                let event = event.map_err(ViewError::Terminal)?;
                let effect = handle(&mut state, &event);
                if effect == Some(Effect::Quit) {
                    return Ok(());
                }
                if let Some(Effect::Wish(wish)) = effect {
                    source.wish(wish);
                } else if let Some(effect) = effect.and_then(|effect| keeper.keep(effect, &mut state)) {
                    carry_out(effect, &mut state, &mut screen).await.map_err(ViewError::Terminal)?;
                }
            }
            update = source.next() => match update {
                Update::Profile(profile) => state.add(profile),
                Update::Moment(moment) => state.go_to_moment(*moment),
                Update::Position(position) => state.set_position(position),
                Update::Message(message) => state.notice = Some(message),
                Update::Close => return Ok(()),
            },
        }
    }
}

async fn next(events: &mut EventStream) -> Option<io::Result<Event>> {
    poll_fn(|context| Pin::new(&mut *events).poll_next(context)).await
}

/// What an event of the terminal means.
fn handle(state: &mut State, event: &Event) -> Option<Effect> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => state.key(key),
        Event::Paste(text) => {
            state.paste(text);
            None
        }
        Event::Resize(width, height) => {
            state.resize(Size { width: *width, height: *height });
            None
        }
        Event::Mouse(_) if state.editor().is_some() => None,
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollDown => state.act(Action::Down),
            MouseEventKind::ScrollUp => state.act(Action::Up),
            MouseEventKind::Down(MouseButton::Left) => {
                state.click(mouse.column, mouse.row);
                None
            }
            _ => None,
        },
        _ => None,
    }
}

async fn carry_out(effect: Effect, state: &mut State, screen: &mut Screen) -> io::Result<()> {
    match effect {
        // These are for others.
        Effect::Quit | Effect::Wish(_) | Effect::Remember(_) | Effect::SaveView(_) => {}
        Effect::Redraw => screen.redraw()?,
        Effect::Copy => {
            let (grid, cursor) = (state.grid(), state.cursor());
            let text = grid.rows.get(cursor.index).map(|row| export::row(grid, row));
            state.notice = Some(match text {
                Some(text) => {
                    screen.copy(&text)?;
                    "copied, if the terminal allows it".into()
                }
                None => "no row to copy".into(),
            });
        }
        Effect::WriteText => write(state, Form::Text),
        Effect::WriteJson => write(state, Form::Json),
        Effect::Suspend => {
            // Listened for before, since it may come at once.
            let mut continued = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
            screen.leave();
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
            continued.recv().await;
            screen.take_again()?;
            state.resize(screen.size()?);
        }
    }
    Ok(())
}

fn write(state: &mut State, form: Form) {
    let written = state.profile().map(|profile| export::write(profile, form));
    state.notice = written.map(|written| match written {
        Ok(name) => format!("written to {name}"),
        Err(error) => format!("cannot write a file here: {error}"),
    });
}
