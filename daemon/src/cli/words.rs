//! What is asked of another process of mpiprobe's, in the words of the command line: of the node service, which reads them again.

use clap::{Parser as _, ValueEnum};
use form_urlencoded::Serializer;
use mpiprobe_discover::{JobChoice, Target};
use mpiprobe_functions::FunctionSet;

use super::{
    arguments::{Arguments, Command},
    asked::{asked_hang, options, traced},
};
use crate::{
    hang::{self, Form},
    session::{
        MaxOverhead, Options, Returns,
        trace::{LatestCalls, TraceOptions, TraceTo, When, typed_flight_span},
    },
};

/// What another process may be asked for. Where results go is the asker's own matter, and so is when it ends.
const OF_OBSERVATIONS: [&str; 24] = [
    "all-jobs",
    "comm",
    "functions",
    "ignore-pcontrol",
    "interval",
    "job",
    "max-communicators",
    "max-flows",
    "max-overhead",
    "max-processes",
    "max-requests",
    "max-stats",
    "max-threads",
    "nested",
    "once",
    "pid",
    "pid-of",
    "plain",
    "returns",
    "single-calls",
    "traffic",
    "view",
    "wait",
    "waits",
];
/// Of a view it is only said that there is one.
const ANY_VIEW: &str = "any";
const OF_TRACES: [&str; 15] = [
    "all-jobs",
    "comm",
    "dump-on-hang",
    "flight",
    "functions",
    "ignore-pcontrol",
    "job",
    "min-duration",
    "pid",
    "pid-of",
    "ranks",
    "single-calls",
    "wait",
    "waits",
    "window",
];
const OF_LOOKS: [&str; 9] = ["all-jobs", "all-threads", "depth", "dot", "folded", "job", "json", "pid", "pid-of"];

/// An observation that somebody else asks for.
pub fn parse_observation(words: Vec<String>) -> Result<Options, String> {
    let arguments = parsed(words, &OF_OBSERVATIONS, &[])?;
    let asked = &arguments.observe;
    if !asked.has_target() {
        return Err("what is to be observed? pid-of, pid, job or all-jobs says it".into());
    }
    if (asked.waits || asked.single_calls) && asked.returns == Returns::Off {
        return Err("waits needs to see when calls return".into());
    }
    // Whoever asks ends it.
    Ok(for_another(Options { json: true, is_viewed: asked.view.is_some(), ..options(asked, false) }))
}

/// A trace that somebody else asks for, and writes.
pub fn parse_trace(words: Vec<String>) -> Result<Options, String> {
    // Where it goes is said by whoever makes it.
    let arguments = parsed(words, &OF_TRACES, &["trace", "--output=-"])?;
    match &arguments.command {
        Some(Command::Trace(asked)) => Ok(for_another(traced(asked, false))),
        _ => Err("not a trace".into()),
    }
}

/// Whoever asks ends it, and looks at it, too.
fn for_another(asked: Options) -> Options {
    let trace = asked.trace.map(|trace| TraceOptions {
        to: TraceTo::Nobody,
        latest: match trace.latest {
            LatestCalls::None => LatestCalls::None,
            LatestCalls::HandedOn | LatestCalls::Kept => LatestCalls::HandedOn,
        },
        ..trace
    });
    Options { trace, duration: None, is_thrifty: true, ..asked }
}

/// The same of a look at stacks.
pub fn parse_hang(words: Vec<String>) -> Result<hang::Asked, String> {
    let arguments = parsed(words, &OF_LOOKS, &["hang"])?;
    match &arguments.command {
        Some(Command::Hang(asked)) => Ok(asked_hang(asked)),
        _ => Err("not a look at stacks".into()),
    }
}

fn parsed(words: Vec<String>, permitted: &[&str], command: &[&str]) -> Result<Arguments, String> {
    for word in &words {
        let name = word.trim_start_matches("--").split('=').next().unwrap_or_default();
        if !permitted.contains(&name) {
            let shown = mpiprobe_discover::printable(name.as_bytes());
            return Err(format!("{shown:?} cannot be asked for here; there are {}", permitted.join(", ")));
        }
    }
    let all = ["mpiprobe"].iter().chain(command).map(|&word| word.to_owned()).chain(words);
    Arguments::try_parse_from(all).map_err(|error| {
        let said = error.to_string();
        said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// What [`parse_observation`] understands as this, for a URL.
pub(super) fn query_of(options: &Options) -> String {
    query(options, options.trace.as_ref().map(|trace| trace.waits))
}

/// The same for agents, which hand on each call to where those of all nodes are looked at together.
pub(super) fn query_of_node(options: &Options) -> String {
    query(options, options.trace.as_ref().map(|_| false))
}

/// `waits`: whether they are looked for where calls are recorded; `None`: calls are not.
fn query(options: &Options, waits: Option<bool>) -> String {
    let default = Arguments::try_parse_from(["mpiprobe"]).map(|arguments| arguments.observe);
    let mut query = Serializer::new(String::new());
    add_targets(&mut query, &options.target, &options.jobs);
    let flags = [
        ("wait", options.wait),
        ("nested", options.nested),
        ("ignore-pcontrol", options.ignore_pcontrol),
        // The latter two have both.
        ("traffic", options.traffic && options.trace.is_none()),
        ("waits", waits == Some(true)),
        ("single-calls", waits == Some(false)),
        ("once", options.once),
        ("plain", options.once),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        query.append_pair(name, "");
    }
    if options.is_viewed {
        query.append_pair("view", ANY_VIEW);
    }
    query.append_pair("interval", &format!("{}ms", options.interval.as_millis()));
    if let Some(returns) = options.returns.to_possible_value() {
        query.append_pair("returns", returns.get_name());
    }
    let max_overhead = MaxOverhead::of(options.max_overhead);
    // Where each call is needed there is none.
    if max_overhead != MaxOverhead::default() && options.trace.is_none() {
        query.append_pair("max-overhead", &max_overhead.to_string());
    }
    add_functions(&mut query, options.functions);
    for communicator in &options.communicators {
        query.append_pair("comm", communicator);
    }
    if let Ok(default) = default {
        let limits = [
            ("max-processes", options.max_processes, default.max_processes),
            ("max-threads", options.max_threads, default.max_threads),
            ("max-flows", options.max_flows, default.max_flows),
            ("max-communicators", options.max_communicators, default.max_communicators),
            ("max-requests", options.max_requests, default.max_requests),
            ("max-stats", options.max_stats, default.max_stats),
        ];
        for (name, limit, _) in limits.into_iter().filter(|(_, limit, default)| limit != default) {
            query.append_pair(name, &limit.to_string());
        }
    }
    query.finish()
}

/// What [`parse_trace`] understands as this, for a URL.
pub(super) fn query_of_trace(options: &Options) -> String {
    let trace = options.trace.as_ref();
    let calls = trace.is_some_and(|trace| trace.latest != LatestCalls::None);
    trace_query(options, trace.is_some_and(|trace| trace.waits), calls)
}

/// The same for agents, as of [`query_of_node`].
pub(super) fn query_of_node_trace(options: &Options) -> String {
    trace_query(options, false, options.trace.as_ref().is_some_and(|trace| trace.waits))
}

/// `waits`: they are looked for; `calls`: each call is handed on, besides.
fn trace_query(options: &Options, waits: bool, calls: bool) -> String {
    let mut query = Serializer::new(String::new());
    add_targets(&mut query, &options.target, &options.jobs);
    let flags = [
        ("wait", options.wait),
        ("ignore-pcontrol", options.ignore_pcontrol),
        ("waits", waits),
        ("single-calls", calls),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        query.append_pair(name, "");
    }
    add_functions(&mut query, options.functions);
    if let Some(TraceOptions { selection, ranks, when, .. }) = &options.trace {
        match when {
            When::Always => {}
            When::Windows { .. } => {
                query.append_pair("window", &when.to_string());
            }
            // How much memory it may take, and where it is written, is a matter of whoever keeps it.
            When::Flight(flight) => {
                query.append_pair("flight", &typed_flight_span(flight.span));
                if let Some(patience) = flight.hang {
                    query.append_pair("dump-on-hang", &format!("{}ns", patience.as_nanos()));
                }
            }
        }
        if let Some(ranks) = ranks {
            query.append_pair("ranks", &ranks.to_string());
        }
        if selection.min_duration_ns > 0 {
            query.append_pair("min-duration", &format!("{}ns", selection.min_duration_ns));
        }
        for communicator in &selection.communicators {
            query.append_pair("comm", communicator);
        }
    }
    query.finish()
}

fn add_functions(query: &mut Serializer<'_, String>, functions: FunctionSet) {
    if functions != FunctionSet::default_functions() {
        let names: Vec<&str> = functions.iter().map(|id| id.function().name).collect();
        query.append_pair("functions", &names.join(","));
    }
}

/// What [`parse_hang`] understands as this, for a URL.
pub(super) fn query_of_hang(asked: &hang::Asked) -> String {
    let mut query = Serializer::new(String::new());
    add_targets(&mut query, &asked.target, &asked.jobs);
    let form = match asked.form {
        Form::Text => None,
        Form::Json => Some("json"),
        Form::Dot => Some("dot"),
        Form::Folded => Some("folded"),
    };
    for name in form.into_iter().chain(asked.all_threads.then_some("all-threads")) {
        query.append_pair(name, "");
    }
    if let Some(depth) = asked.depth {
        query.append_pair("depth", &depth.to_string());
    }
    query.finish()
}

fn add_targets(query: &mut Serializer<'_, String>, target: &Target, jobs: &JobChoice) {
    match target {
        Target::Name(name) => {
            query.append_pair("pid-of", name);
        }
        Target::Pids(pids) => {
            query.extend_pairs(pids.iter().map(|pid| ("pid", pid.to_string())));
        }
        Target::Any => {}
    }
    match jobs {
        JobChoice::Named(job) => {
            query.append_pair("job", job);
        }
        // Those who name pids mean all jobs of these.
        JobChoice::All if !matches!(target, Target::Pids(_)) => {
            query.append_pair("all-jobs", "");
        }
        JobChoice::All | JobChoice::Only => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::words_of_query;

    fn typed(words: &[&str]) -> Options {
        let arguments = Arguments::try_parse_from(["mpiprobe"].iter().chain(words)).unwrap();
        options(&arguments.observe, false)
    }

    #[test]
    fn what_is_asked_for_arrives_as_it_was_typed() {
        for asked in [
            &["--pid-of", "ring"][..],
            &["--pid-of", "a b&c=d+é%", "--wait", "--traffic", "--comm", "row*", "--comm", "w&x"],
            &["--pid", "5", "--pid", "7", "--interval", "50ms", "--returns", "off"],
            &["--job", "ompi:77@1000", "--functions", "p2p,-Send", "--max-threads", "77", "--max-stats", "99"],
            &["--pid-of", "x", "--max-overhead", "off"],
            &["--pid-of", "x", "--waits", "--functions", "p2p"],
            &["--pid-of", "x", "--single-calls"],
            &["--pid-of", "x", "--max-overhead", "0.5%"],
            &["--pid-of", "x", "--max-overhead", "1/1h 30m"],
            &["--all-jobs", "--nested", "--ignore-pcontrol", "--max-flows", "7", "--max-communicators", "8"],
            &[
                "--pid-of",
                "x",
                "--plain",
                "--once",
                "--max-requests",
                "9",
                "--max-processes",
                "3",
                "--functions",
                "all",
            ],
        ] {
            for is_viewed in [false, !asked.contains(&"--plain")] {
                let asked = Options { is_viewed, ..typed(asked) };
                let arrived = parse_observation(words_of_query(&query_of(&asked))).unwrap();
                let expected = for_another(Options { json: true, ..asked });
                assert_eq!(format!("{arrived:?}"), format!("{expected:?}"));
            }
        }
    }

    #[test]
    fn traces_arrive_as_they_were_typed() {
        for asked in [
            &["--pid-of", "ring"][..],
            &["--job", "4711", "--wait", "--ignore-pcontrol", "--functions", "coll"],
            &["--all-jobs", "--window", "200ms@every:10s", "--ranks", "0,4-7"],
            &["--pid", "5", "--pid", "7", "--waits"],
            &["--pid", "5", "--single-calls"],
            &["--pid-of", "x", "--flight", "90s", "--dump-on-hang", "1.5s"],
            &["--pid-of", "x", "--flight", "5000calls"],
            &["--pid-of", "a b&c", "--min-duration", "10us", "--comm", "row*", "--comm", "w&x"],
        ] {
            let asked = ["mpiprobe", "trace", "-o", "/tmp/x.trace", "--duration", "5s"].iter().chain(asked);
            let arguments = Arguments::try_parse_from(asked).unwrap();
            let Some(Command::Trace(typed)) = &arguments.command else { panic!("not a trace") };
            let asked = traced(typed, false);
            let arrived = parse_trace(words_of_query(&query_of_trace(&asked))).unwrap();
            assert_eq!(format!("{arrived:?}"), format!("{:?}", for_another(asked)));
        }
    }

    #[test]
    fn looks_at_stacks_arrive_as_they_were_typed() {
        for asked in
            [&["--pid-of", "ring", "--json"][..], &["--all-jobs", "--dot", "--depth", "3", "--all-threads"], &[]]
        {
            let arguments = Arguments::try_parse_from(["mpiprobe", "hang"].iter().chain(asked)).unwrap();
            let Some(Command::Hang(typed)) = &arguments.command else { panic!("{asked:?}") };
            let asked = asked_hang(typed);
            assert_eq!(parse_hang(words_of_query(&query_of_hang(&asked))).unwrap(), asked);
        }
    }

    #[test]
    fn nothing_else_can_be_asked_for() {
        for wrong in
            ["--record=/tmp/x", "--verbose", "-v", "ps", "--attach=multi", "--filter=rank = 1", "--engine=ebpf", ""]
        {
            let asked = vec!["--pid-of=ring".to_owned(), wrong.to_owned()];
            assert!(parse_observation(asked).unwrap_err().contains("cannot be asked for"), "{wrong}");
        }
        assert!(parse_observation(Vec::new()).unwrap_err().contains("what is to be observed"));
        assert!(parse_observation(vec!["--pid=0".into()]).unwrap_err().contains("invalid value"));
        assert!(parse_observation(vec!["--traffic=maybe".into(), "--pid=1".into()]).is_err());
        assert!(parse_hang(vec!["--traffic".into()]).is_err());
        for wrong in [
            "--output=/tmp/x",
            "--flight-memory=9GiB",
            "--attach=multi",
            "--hosts=n1",
            "--file-mode=666",
            "--duration=5s",
        ] {
            let asked = vec!["--pid-of=ring".to_owned(), wrong.to_owned()];
            assert!(parse_trace(asked).unwrap_err().contains("cannot be asked for"), "{wrong}");
        }
    }
}
