//! What the full-screen view costs: a job that never ran, looked at once a second and drawn more often than anybody looks.
//!
//! Seconds are those of the job: nothing waits, so what else the machine does meanwhile is not measured.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe_model::filter::Filter;
use mpiprobe_view::{Running, Scheme, Screen, Size, State, Theme, ViewOptions, draw};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::cost::peak_rss_mib;
use crate::synthetic::Synthetic;

/// Of one core, per cent, at most.
const GOAL_CPU: f64 = 2.0;
/// Of the whole process, with what makes the profiles, MiB at most.
const GOAL_RSS: f64 = 80.0;
/// Seconds that are not measured: until as many looks are kept as ever will be.
const WARM_UP: u64 = 12;

/// How much is measured.
#[derive(Debug, Clone)]
pub struct ViewEffort {
    pub ranks: u32,
    pub functions: usize,
    /// Seconds of the job.
    pub seconds: u64,
    /// Keys that are pressed in each of them; the screen is drawn after each.
    pub frames: u32,
    pub size: (u16, u16),
    pub filter: Option<Filter>,
}

/// What it was.
#[derive(Debug, Serialize)]
pub struct ViewReport {
    ranks: u32,
    functions: usize,
    seconds: u64,
    frames: u32,
    size: (u16, u16),
    filter: Option<String>,
    /// Processor time of a second, per cent of it: taking in a profile, keys, drawing.
    taking_in_percent: f64,
    keys_percent: f64,
    drawing_percent: f64,
    /// The same of making profiles from tables, which an observer does in any case.
    analysing_percent: f64,
    /// What a terminal is sent in a second.
    bytes_per_s: f64,
    /// Largest resident set of this process, and before there was a view; `null`: not known.
    peak_rss_mib: Option<f64>,
    rss_without_view_mib: Option<f64>,
}

/// Processor time of this process in parts, ns.
#[derive(Debug, Default)]
struct Spent {
    analysing: i128,
    taking_in: i128,
    keys: i128,
    drawing: i128,
}

/// A terminal that shows nothing.
#[derive(Debug, Default)]
struct Sink(Rc<Cell<u64>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(|sent| sent + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Goes through all screens for as long as asked.
pub fn run(effort: &ViewEffort) -> io::Result<ViewReport> {
    let job = Synthetic { ranks: effort.ranks, functions: effort.functions, ..Synthetic::LARGE };
    let (width, height) = effort.size;
    let written = Rc::new(Cell::new(0));
    let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
    let mut terminal =
        Terminal::with_options(CrosstermBackend::new(Sink(Rc::clone(&written))), TerminalOptions { viewport })?;
    let theme = Theme::new(ViewOptions { scheme: Scheme::Dark, ascii: false, mouse: false });
    // The peak of an earlier measurement is forgotten, if the kernel can.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    drop((job.profile(1, None), job.profile(2, None)));
    let rss_without_view_mib = peak_rss_mib(std::process::id());
    let mut state = State::new(Running::Live);
    state.resize(Size { width, height });
    state.set_filter(effort.filter.clone());
    let (mut spent, mut bytes) = (Spent::default(), 0);
    for second in 1..=WARM_UP + effort.seconds {
        if second == WARM_UP + 1 {
            (spent, bytes) = (Spent::default(), written.get());
        }
        let profile = timed(&mut spent.analysing, || Arc::new(job.profile(second, None)));
        timed(&mut spent.taking_in, || state.add(profile));
        for frame in 0..effort.frames {
            timed(&mut spent.keys, || state.key(&KeyEvent::new(key(frame), KeyModifiers::NONE)));
            timed(&mut spent.drawing, || terminal.draw(|frame| draw(frame, &state, theme)).map(drop))?;
        }
    }
    let percent = |ns: i128| ns as f64 / (effort.seconds as f64 * 1e9) * 100.0;
    Ok(ViewReport {
        ranks: effort.ranks,
        functions: effort.functions,
        seconds: effort.seconds,
        frames: effort.frames,
        size: effort.size,
        filter: effort.filter.as_ref().map(|filter| filter.line().to_owned()),
        taking_in_percent: percent(spent.taking_in),
        keys_percent: percent(spent.keys),
        drawing_percent: percent(spent.drawing),
        analysing_percent: percent(spent.analysing),
        bytes_per_s: (written.get() - bytes) as f64 / effort.seconds as f64,
        peak_rss_mib: peak_rss_mib(std::process::id()),
        rss_without_view_mib,
    })
}

/// Another screen each second, and there up and down.
fn key(frame: u32) -> KeyCode {
    match frame {
        0 => KeyCode::Tab,
        frame if frame % 2 == 0 => KeyCode::Up,
        _ => KeyCode::Down,
    }
}

fn timed<T>(sum: &mut i128, work: impl FnOnce() -> T) -> T {
    let before = cpu_ns();
    let done = work();
    *sum += cpu_ns() - before;
    done
}

fn cpu_ns() -> i128 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

impl ViewReport {
    fn cpu_percent(&self) -> f64 {
        self.taking_in_percent + self.keys_percent + self.drawing_percent
    }
}

impl fmt::Display for ViewReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, functions, seconds, frames, size: (width, height), .. } = self;
        writeln!(
            f,
            "{ranks} ranks x {functions} functions, a look a second, {frames} frames a second of {width}x{height}, all {} \
             screens, {seconds} s; filter: {}",
            Screen::ALL.len(),
            self.filter.as_deref().unwrap_or("none")
        )?;
        writeln!(f, "per cent of one core:")?;
        let parts = [
            ("taking in a look", self.taking_in_percent),
            ("keys", self.keys_percent),
            ("drawing", self.drawing_percent),
            ("all of the view", self.cpu_percent()),
            ("(making profiles of tables", self.analysing_percent),
        ];
        for (what, percent) in parts {
            let end = if what.starts_with('(') { ")" } else { "" };
            writeln!(f, "  {what:<28}{percent:>8.2}{end}")?;
        }
        writeln!(f, "to the terminal: {:.0} kB/s", self.bytes_per_s / 1e3)?;
        let verdict = |met| if met { "met" } else { "MISSED" };
        let cpu = self.cpu_percent();
        writeln!(f, "goal processor <= {GOAL_CPU} % of one core: {} ({cpu:.2} %)", verdict(cpu <= GOAL_CPU))?;
        match self.peak_rss_mib.zip(self.rss_without_view_mib) {
            Some((mib, before)) => writeln!(
                f,
                "goal memory <= {GOAL_RSS} MiB: {} ({mib:.1} MiB, of which {before:.1} MiB to make profiles of tables)",
                verdict(mib <= GOAL_RSS)
            ),
            None => writeln!(f, "goal memory <= {GOAL_RSS} MiB: not known here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_through_all_screens() {
        let filter = Some("rank in 0..1".parse().unwrap());
        let effort = ViewEffort { ranks: 4, functions: 8, seconds: 8, frames: 2, size: (80, 24), filter };
        let report = run(&effort).unwrap();
        assert!(report.bytes_per_s > 0.0 && report.peak_rss_mib.is_some());
        let text = report.to_string();
        assert!(text.contains("4 ranks x 8 functions") && text.contains("goal memory <= 80 MiB"), "{text}");
    }
}
