//! The loop: draw, wait for a key or for news, and again.

use std::io;

use crossterm::event::{Event, EventStream};

use super::{
    ViewError,
    draw::draw,
    export::{self, Form},
    keep::Keeper,
    keys::Action,
    options::ViewOptions,
    paint::Theme,
    source::{Calls, KeptCalls, Source, Update, Wish},
    start::ViewStart,
    state::{Effect, State},
    terminal::{Input, Screen, next_event},
    timeline::{Background, News, Wanted},
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
    let (mut shows_recent_calls, mut shows_stacks) = (false, false);
    // Where they are is known beforehand, so that they can be looked at after the end, too.
    let mut calls = CallsReader::default();
    source.wish(Wish::Calls);
    loop {
        // However one has come to the screen, or left it.
        if state.wants_recent_calls() != shows_recent_calls {
            shows_recent_calls = !shows_recent_calls;
            source.wish(Wish::RecentCalls(shows_recent_calls));
        }
        if state.wants_stacks() != shows_stacks {
            shows_stacks = !shows_stacks;
            source.wish(Wish::Stacks(shows_stacks));
        }
        calls.ask(&state);
        screen.draw(|frame| draw(frame, &state, theme)).map_err(ViewError::Terminal)?;
        tokio::select! {
            biased;
            event = next_event(&mut events) => {
                let Some(event) = event else { return Ok(()) };
                let event = event.map_err(ViewError::Terminal)?;
                let effect = handle(&mut state, &event);
                if effect == Some(Effect::Quit) {
                    return Ok(());
                }
                if let Some(Effect::Wish(wish)) = effect {
                    source.wish(wish);
                } else if effect == Some(Effect::WriteTrace) {
                    calls.write(&mut state);
                } else if let Some(effect) = effect.and_then(|effect| keeper.keep(effect, &mut state)) {
                    carry_out(effect, &mut state, &mut screen).await.map_err(ViewError::Terminal)?;
                }
            }
            news = calls.next() => match news {
                Some(News::Moment(moment)) => {
                    state.take_calls(News::Moment(moment));
                    calls.asked = None;
                }
                Some(news) => state.take_calls(news),
                None => {
                    calls.reader = None;
                    state.notice = Some("the timeline has failed, and stays as it is".into());
                }
            },
            update = source.next() => match update {
                Update::Profile(profile) => state.add(profile),
                Update::Moment(moment) => state.go_to_moment(*moment),
                Update::Position(position) => state.set_position(position),
                Update::Stacks(stacks) => state.add_stacks(stacks),
                Update::Calls(Calls::Kept(kept)) => calls.begin(kept).map_err(ViewError::Start)?,
                Update::Calls(Calls::Refused(why)) => state.refuse_calls(why),
                Update::Message(message) => state.notice = Some(message),
                Update::Close => return Ok(()),
            },
        }
    }
}

/// Who reads the calls that are kept, once somebody has looked at them.
#[derive(Default)]
struct CallsReader {
    reader: Option<Background>,
    asked: Option<Wanted>,
}

impl CallsReader {
    fn begin(&mut self, kept: Vec<KeptCalls>) -> io::Result<()> {
        self.reader = Some(Background::of_kept(kept)?);
        Ok(())
    }

    /// Has read what is to be seen.
    fn ask(&mut self, state: &State) {
        let Some(reader) = &self.reader else { return };
        reader.follow(state.follows_calls());
        if let Some(wanted) = state.wanted_calls().filter(|wanted| self.asked.as_ref() != Some(wanted)) {
            reader.ask(wanted.clone());
            self.asked = Some(wanted);
        }
    }

    fn write(&self, state: &mut State) {
        match (&self.reader, state.profile()) {
            (Some(reader), Some(profile)) => reader.write(export::file_name(profile)),
            _ => state.notice = Some("there are no calls to be written".into()),
        }
    }

    /// For ever, if nobody reads.
    async fn next(&mut self) -> Option<News> {
        match &mut self.reader {
            Some(reader) => reader.next().await,
            None => std::future::pending().await,
        }
    }
}

/// What an event of the terminal leads to.
fn handle(state: &mut State, event: &Event) -> Option<Effect> {
    match Input::of(event)? {
        Input::Key(key) => return state.key(key),
        Input::Paste(text) => state.paste(text),
        Input::Resize(size) => state.resize(size),
        // What is being typed has all keys, and the rows behind it none.
        Input::Scroll { .. } | Input::Click { .. } if state.editor().is_some() => {}
        Input::Scroll { down } if state.scroll_timeline(down) => {}
        Input::Scroll { down } => return state.act(if down { Action::Down } else { Action::Up }),
        Input::Click { column, row } => state.click(column, row),
    }
    None
}

fn copy(text: &str, state: &mut State, screen: &mut Screen) -> io::Result<()> {
    screen.copy(text)?;
    state.notice = Some("copied, if the terminal allows it".into());
    Ok(())
}

async fn carry_out(effect: Effect, state: &mut State, screen: &mut Screen) -> io::Result<()> {
    match effect {
        // These are for others.
        Effect::Quit | Effect::Wish(_) | Effect::Remember(_) | Effect::SaveView(_) | Effect::WriteTrace => {}
        Effect::Redraw => screen.redraw()?,
        Effect::CopyText(text) => copy(&text, state, screen)?,
        Effect::Copy => {
            let (grid, cursor) = (state.grid(), state.cursor());
            match grid.rows.get(cursor.index).map(|row| export::row(grid, row)) {
                Some(text) => copy(&text, state, screen)?,
                None => state.notice = Some("no row to copy".into()),
            }
        }
        Effect::WriteText => write(state, Form::Text),
        Effect::WriteJson => write(state, Form::Json),
        Effect::Suspend => {
            screen.suspend().await?;
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
