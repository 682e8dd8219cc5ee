//! The loop: draw, wait for a key or for what has been read, and again.

use std::{future::poll_fn, sync::Arc};

use crossterm::event::{Event, EventStream, KeyEventKind, MouseButton, MouseEventKind};
use futures_core::Stream as _;
use mpiprobe_trace::Trace;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    draw::draw,
    keys::TimelineAction,
    reader::Background,
    state::{Effect, Timeline},
};
use crate::{ViewError, draw::Theme, layout::Size, options::ViewOptions, replay::Stop, terminal::Screen};

/// Shows a trace until the user has seen enough. `notes` say what is wrong with it.
pub async fn timeline(
    trace: Arc<dyn Trace + Send + Sync>,
    name: &str,
    notes: &[String],
    options: ViewOptions,
) -> Result<(), ViewError> {
    let options = options.resolved(&|name| std::env::var(name));
    let theme = Theme::new(options);
    let mut stop = Some(Stop::new().map_err(ViewError::Start)?);
    let mut reader = Background::start(Arc::clone(&trace)).map_err(ViewError::Start)?;
    let mut screen = Screen::take(options.mouse).map_err(ViewError::Terminal)?;
    let mut events = EventStream::new();
    let mut state = Timeline::new(trace, name, notes);
    state.resize(screen.size().map_err(ViewError::Terminal)?);
    let mut asked = None;
    loop {
        let wanted = state.wanted();
        if asked.as_ref() != Some(&wanted) {
            reader.ask(wanted.clone());
            asked = Some(wanted);
        }
        screen.draw(|frame| draw(frame, &state, theme)).map_err(ViewError::Terminal)?;
        tokio::select! {
            biased;
            event = poll_fn(|context| Pin::new(&mut events).poll_next(context)) => {
                let Some(event) = event else { return Ok(()) };
                let effect = handle(&mut state, &event.map_err(ViewError::Terminal)?);
                match effect {
                    Some(Effect::Quit) => return Ok(()),
                    Some(effect) => carry_out(effect, &mut state, &mut screen).await.map_err(ViewError::Terminal)?,
                    None => {}
                }
            }
            () = Stop::next(&mut stop) => return Ok(()),
            news = reader.next() => match news {
                Some(news) => state.take(news),
                None => return Err(ViewError::Panicked),
            },
        }
    }
}

/// What an event of the terminal means.
fn handle(state: &mut Timeline, event: &Event) -> Option<Effect> {
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
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollDown => state.act(TimelineAction::Down),
            MouseEventKind::ScrollUp => state.act(TimelineAction::Up),
            MouseEventKind::Down(MouseButton::Left) => {
                state.click(mouse.column, mouse.row);
                None
            }
            _ => None,
        },
        _ => None,
    }
}

async fn carry_out(effect: Effect, state: &mut Timeline, screen: &mut Screen) -> std::io::Result<()> {
    match effect {
        Effect::Quit => {}
        Effect::Redraw => screen.redraw()?,
        Effect::Copy(text) => {
            screen.copy(&text)?;
            state.notice = Some("copied, if the terminal allows it".into());
        }
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
