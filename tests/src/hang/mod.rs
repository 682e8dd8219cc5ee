//! Jobs that hang, and whether `mpiprobe hang` says of every rank where it is, and why.
#![expect(clippy::missing_panics_doc, reason = "its assertions fail a test")]
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

mod cases;
#[cfg(test)]
mod documented;

use std::{
    fmt, io,
    time::{Duration, Instant},
};

use libtest_mimic::Failed;
use mpiprobe_functions::polls;
use serde_json::Value;

pub use cases::{CASES, Case, Cause, NOT_IN_MPI, THAT_GO_ON};

use crate::{Ended, Job, Profiler, Program};

/// How long a job may take until it hangs. By time and not by answers: without MPI in it yet, one comes at once.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// The answer, as soon as it is as expected; the last one if it never is.
pub fn answer(job: &Job, options: &[&str], expected: impl Fn(&Value) -> bool) -> Result<Value, Failed> {
    repeated(job, &[&["--json"], options].concat(), parsed, expected)
}

/// The same in words.
pub fn text(job: &Job, options: &[&str], expected: impl Fn(&str) -> bool) -> Result<String, Failed> {
    repeated(job, options, |ended| Ok(ended.stdout.join("\n")), |text: &String| expected(text))
}

fn repeated<T: Default>(
    job: &Job,
    options: &[&str],
    read: impl Fn(&Ended) -> Result<T, Failed>,
    expected: impl Fn(&T) -> bool,
) -> Result<T, Failed> {
    let mut last = T::default();
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let arguments = [&["hang", "--pid-of", job.called()], options].concat();
        let ended = Profiler::start(arguments)?.wait()?;
        // It may not have loaded MPI yet.
        if ended.status.code() == Some(1) {
            continue;
        }
        last = read(&ended)?;
        if expected(&last) {
            break;
        }
    }
    Ok(last)
}

/// The answer for the one job that was asked for.
pub fn parsed(ended: &Ended) -> Result<Value, Failed> {
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    let mut answer: Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    let jobs = answer.get_mut("jobs").and_then(Value::as_array_mut).ok_or("no jobs")?;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    Ok(jobs.remove(0))
}

/// What a rank does, by its number; of one with several threads the first that is told.
pub fn doing(answer: &Value, rank: u32) -> Value {
    threads(answer, rank).next().cloned().unwrap_or_default()
}

fn threads(answer: &Value, rank: u32) -> impl Iterator<Item = &Value> {
    let threads = answer["threads"].as_array().into_iter().flatten();
    threads.filter(move |thread| thread["member"]["rank"] == rank)
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A function without what tells its large-count variant.
fn plain(function: &str) -> &str {
    function.strip_suffix("_c").unwrap_or(function)
}

/// Whether each rank is in its call, or outside of MPI, and none has gone on that is in one.
pub fn is_there(case: &Case, answer: &Value) -> bool {
    (0..).zip(case.calls).all(|(rank, calls)| {
        let own: Vec<&Value> = threads(answer, rank).collect();
        let is_in = |(function, _): &(&str, &str)| {
            own.iter().any(|thread| {
                plain(string(&thread["function"])) == *function
                    && (thread["gone_on"] == false || *function == NOT_IN_MPI)
            })
        };
        !own.is_empty() && calls.iter().all(is_in)
    }) && ["nobody_goes_on", "some_are_outside"].contains(&string(&answer["verdict"]))
}

/// All that is said of why, line by line, with `@name` in place of `at causes.c:17 in name` or of `at name+0x1f in causes`; a line of the
/// source has to have the call in it. Without what is known of requests, numbers of threads, and what tells large-count variants.
pub fn lines(case: &Case, answer: &Value) -> Result<Vec<String>, Failed> {
    let causes = answer["causes"].as_array().into_iter().flatten();
    Ok(compared(case, causes.flat_map(|cause| string(&cause["text"]).lines()))?)
}

/// Lines of an answer in the form in which a case has them.
fn compared<'a>(case: &Case, lines: impl Iterator<Item = &'a str>) -> io::Result<Vec<String>> {
    let source = case.program.source()?;
    Ok(lines.map(|line| by_function(&without_details(line.trim()), &source)).collect())
}

fn without_details(line: &str) -> String {
    let is_function = |word: &&str| word.starts_with("MPI_");
    let words: Vec<&str> = line.split(' ').map(|word| if is_function(&word) { plain(word) } else { word }).collect();
    let mut text = words.join(" ");
    if let Some((before, rest)) = text.split_once(" (thread ")
        && let Some((_, after)) = rest.split_once(')')
    {
        text = format!("{before} (thread){after}");
    }
    // What a call waits for stands between its name and its place.
    let is_of_requests =
        |part: &str| ["receive", "send", "a collective", "MPI_I"].iter().any(|it| part.starts_with(it));
    if let Some((before, rest)) = text.split_once(" (")
        && is_of_requests(rest)
        && let Some((_, after)) = rest.split_once(") at ")
    {
        return format!("{before} (...) at {after}");
    }
    text
}

fn by_function(line: &str, source: &str) -> String {
    let Some((before, after)) = line.split_once(" at ") else { return line.to_owned() };
    let (place, after) = match after.find(" waits for ") {
        Some(end) => after.split_at(end),
        None => (after, ""),
    };
    let function = if let Some((name, _)) = place.split_once("+0x") {
        name
    } else {
        let number = place.split([':', ' ']).nth(1).and_then(|number| number.parse::<usize>().ok());
        let code = number.and_then(|number| source.lines().nth(number.checked_sub(1)?)).unwrap_or_default();
        // mpi4py's methods are called as the functions are, without what MPI's names begin with.
        let called = before.split_whitespace().find_map(|word| word.strip_prefix("MPI_")).unwrap_or("no call");
        if !code.contains(&format!("{called}(")) {
            return line.to_owned();
        }
        place.rsplit(' ').next().unwrap_or_default()
    };
    format!("{before} @{function}{after}")
}

/// What an answer is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The cause is told.
    Told,
    /// Nothing false is, but it is not.
    NotKnown,
    Wrong(String),
}

impl fmt::Display for Judgement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told => formatter.write_str("told"),
            Self::NotKnown => formatter.write_str("not known"),
            Self::Wrong(what) => write!(formatter, "WRONG: {what}"),
        }
    }
}

/// What the causes are worth that are told of a job: of each what kind it is, and its ranks.
pub fn judge(case: &Case, causes: &[(String, Vec<u32>)]) -> Judgement {
    let waits =
        |rank: &u32| usize::try_from(*rank).ok().and_then(|rank| case.waits.get(rank)).copied().unwrap_or_default();
    let mut is_told = false;
    for (kind, ranks) in causes {
        let wrong = |why: &str| Judgement::Wrong(format!("{kind} of {ranks:?}: {why}"));
        match (kind.as_str(), case.cause) {
            ("circle", Cause::Circle) => {
                let next = ranks.iter().skip(1).chain(ranks.first());
                if !ranks.iter().zip(next).all(|(rank, next)| waits(rank).contains(next)) {
                    return wrong("one of them does not wait for the next one");
                }
                is_told = true;
            }
            // Of some of them it is not known for whom, but all are in it.
            ("knot", Cause::Circle) => {
                if !ranks.iter().all(|rank| waits(rank).iter().any(|on| ranks.contains(on))) {
                    return wrong("one of them does not wait for any of the others");
                }
                is_told = true;
            }
            ("circle" | "knot", _) => return wrong("there is none"),
            ("different_roots", Cause::DifferentRoots) => is_told = true,
            ("different_roots", _) => return wrong("they are the same"),
            (_, Cause::Ranks(known)) => {
                if !ranks.iter().all(|rank| known.contains(rank)) {
                    return wrong("it is not to blame");
                }
                let mut all = causes.iter().flat_map(|(_, ranks)| ranks);
                is_told = known.iter().all(|rank| all.clone().any(|told| told == rank)) && all.next().is_some();
            }
            // Somebody waits for it, and what it waits for is not known.
            (_, Cause::Circle) if ranks.iter().all(|rank| case.waits.iter().any(|of| of.contains(rank))) => {}
            _ => return wrong("nobody waits for it"),
        }
    }
    if is_told { Judgement::Told } else { Judgement::NotKnown }
}

/// Those that an answer tells.
pub fn causes(answer: &Value) -> Vec<(String, Vec<u32>)> {
    let ranks = |cause: &Value| {
        let ranks = cause["ranks"].as_array().into_iter().flatten();
        ranks.filter_map(|rank| u32::try_from(rank["rank"].as_u64()?).ok()).collect()
    };
    let causes = answer["causes"].as_array().into_iter().flatten();
    causes.map(|cause| (string(&cause["kind"]).to_owned(), ranks(cause))).collect()
}

/// What is wrong with the functions and places of ranks in an answer; nothing if all are right.
pub fn misplaced(case: &Case, program: Program, answer: &Value) -> Vec<String> {
    misplaced_of(case, program, answer, true)
}

/// The same; `tells_outside`: it also says where ranks are that are not in MPI.
fn misplaced_of(case: &Case, program: Program, answer: &Value, tells_outside: bool) -> Vec<String> {
    let is_right = |text: &str, place: &str| {
        let place = place.rsplit("::").next().unwrap_or(place);
        let own = text.split(", inlined into ").next().unwrap_or_default();
        let is_stripped = program.options().contains(&"-s");
        let names = [format!(" in {place}"), format!("::{place}"), format!(".{place}")];
        own.starts_with(&format!("{place}+0x"))
            || own.contains(&format!("::{place}+0x"))
            || names.iter().any(|name| own.ends_with(name.as_str()))
            || is_stripped && own.contains("+0x")
            || is_by_mangled_name(program, own, place)
    };
    let of_rank = |(rank, calls): (u32, &&[(&str, &str)])| {
        let is_outside = calls.iter().any(|(function, _)| *function == NOT_IN_MPI);
        let is_shown = |function: &str| tells_outside || function != NOT_IN_MPI && !polls(function);
        let calls: Vec<_> = calls.iter().filter(|(function, _)| is_shown(function)).collect();
        let own: Vec<(String, String)> = threads(answer, rank)
            .filter(|thread| thread["doing"] == "mpi" || is_outside && tells_outside)
            .filter(|thread| tells_outside || !polls(string(&thread["function"])))
            .map(|thread| {
                let place = if thread["doing"] == "mpi" { &thread["site"] } else { &thread["place"] };
                (plain(string(&thread["function"])).to_owned(), string(&place["text"]).to_owned())
            })
            .collect();
        let is_expected = |(function, site): &(String, String)| {
            calls.iter().any(|(known, place)| function == known && is_right(site, place))
        };
        let is_all = own.len() == calls.len() && own.iter().all(is_expected);
        (!is_all).then(|| format!("rank {rank}: {own:?}"))
    };
    (0..).zip(case.calls).filter_map(of_rank).collect()
}

/// Without debug information functions of Fortran, and its main program, are known by what the compiler calls them.
fn is_by_mangled_name(program: Program, text: &str, place: &str) -> bool {
    let is_main = |name: &str| name == "MAIN__" && place == program.name;
    text.split("+0x")
        .next()
        .is_some_and(|name| name.ends_with(&format!("_MOD_{place}")) || name == format!("{place}_") || is_main(name))
}

/// Those that a profile's findings tell, in the same form.
pub fn causes_found(profile: &Value) -> Vec<(String, Vec<u32>)> {
    let rank = |rank: &Value| u32::try_from(rank.as_u64()?).ok();
    let ranks = |ranks: &Value| ranks.as_array().into_iter().flatten().filter_map(rank).collect();
    let mut found = Vec::new();
    for finding in profile["findings"].as_array().into_iter().flatten() {
        match string(&finding["kind"]) {
            "deadlock" => {
                let circles = finding["circles"].as_array().into_iter().flatten();
                found.extend(circles.map(|circle| ("circle".to_owned(), ranks(circle))));
                let knots = finding["knots"].as_array().into_iter().flatten();
                found.extend(knots.map(|knot| ("knot".to_owned(), ranks(knot))));
            }
            "different-roots" => found.push(("different_roots".to_owned(), ranks(&finding["ranks"]))),
            "waited-for" => found.push(("waited_for".to_owned(), rank(&finding["rank"]).into_iter().collect())),
            _ => {}
        }
    }
    found
}

/// What is wrong with the functions and places of open calls in a profile; `None` as long as not all of them have been open for `long_ns`.
pub fn misplaced_in(case: &Case, program: Program, profile: &Value, long_ns: u64) -> Option<Vec<String>> {
    let rows: Vec<&Value> = profile["ranks"].as_array().into_iter().flatten().collect();
    let mut threads = Vec::new();
    for (rank, calls) in (0_u32..).zip(case.calls) {
        let row = rows.iter().find(|row| row["rank"] == rank)?;
        let open = row["open_calls"].as_array()?;
        let is_long = |(function, _): &(&str, &str)| {
            // Of what ranks do outside of MPI a profile says nothing, and a call that is made again and again is never open for long.
            if *function == NOT_IN_MPI || polls(function) {
                return true;
            }
            let mut own = open.iter().filter(|call| plain(string(&call["function"])) == *function);
            own.any(|call| call["open_ns"].as_u64().is_some_and(|ns| ns >= long_ns))
        };
        if !calls.iter().all(is_long) {
            return None;
        }
        let thread = |call: &Value| {
            let site = serde_json::json!({ "text": call["site"] });
            serde_json::json!({ "member": { "rank": rank }, "doing": "mpi", "function": call["function"], "site": site })
        };
        threads.extend(open.iter().map(thread));
    }
    Some(misplaced_of(case, program, &serde_json::json!({ "threads": threads }), false))
}
