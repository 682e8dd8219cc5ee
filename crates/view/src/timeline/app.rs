//! The loop: draw, wait for a key or for what has been read, and again.

use std::sync::Arc;

use crossterm::event::{Event, EventStream};
use mpiprobe_replay::Clocks;
use mpiprobe_trace::Trace;

use super::{
    draw::draw,
    keys::TimelineAction,
    reader::Background,
    state::{Effect, Timeline},
};
use crate::{
    ViewError,
    options::ViewOptions,
    paint::Theme,
    terminal::{Input, Screen, Stop, next_event},
};

/// Shows a trace until the user has seen enough. `notes` say what is wrong with it.
pub async fn timeline(
    trace: Arc<dyn Trace + Send + Sync>,
    clocks: Clocks,
    name: &str,
    notes: &[String],
    options: ViewOptions,
) -> Result<(), ViewError> {
    let options = options.resolved(&|name| std::env::var(name));
    let theme = Theme::new(options);
    let mut stop = Some(Stop::new().map_err(ViewError::Start)?);
    let mut reader = Background::start(Arc::clone(&trace), clocks.clone()).map_err(ViewError::Start)?;
    let mut screen = Screen::take(options.mouse).map_err(ViewError::Terminal)?;
    let mut events = EventStream::new();
    let mut state = Timeline::new(trace, &clocks, name, notes);
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
            event = next_event(&mut events) => {
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

/// What an event of the terminal leads to.
fn handle(state: &mut Timeline, event: &Event) -> Option<Effect> {
    match Input::of(event)? {
        Input::Key(key) => return state.key(key),
        Input::Paste(text) => state.paste(text),
        Input::Resize(size) => state.resize(size),
        Input::Scroll { down } => return state.act(if down { TimelineAction::Down } else { TimelineAction::Up }),
        Input::Click { column, row } => state.click(column, row),
    }
    None
}

async fn carry_out(effect: Effect, state: &mut Timeline, screen: &mut Screen) -> std::io::Result<()> {
    match effect {
        // The others are of jobs that run.
        Effect::Quit | Effect::Freeze | Effect::GoOn | Effect::Write => {}
        Effect::Redraw => screen.redraw()?,
        Effect::Copy(text) => {
            screen.copy(&text)?;
            state.notice = Some("copied, if the terminal allows it".into());
        }
        Effect::Suspend => {
            screen.suspend().await?;
            state.resize(screen.size()?);
        }
    }
    Ok(())
}
