//! A report in the form of mpiP 3.5, for scripts that parse it. What differs from mpiP is told in docs/reports.md.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    io::{self, Write},
};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use mpiprobe_model::{FunctionRow, Profile, SaturatingSum as _};

use super::sites::{Place, Site, sites};

/// Columns of a heading.
const WIDTH: usize = 75;
/// Rows of the aggregate sections.
const TOP: usize = 20;

/// One call site of mpiP: a place, or, where no places are known, a function (as mpiP does with `-k 0`).
struct CallSite {
    id: usize,
    /// Without `MPI_`.
    call: String,
    place: Place,
    calls: u64,
    time_ns: u64,
    sent_bytes: u64,
    is_io: bool,
    is_rma: bool,
    /// Of each rank that has it, by its place in the profile.
    ranks: Vec<OfRank>,
}

struct OfRank {
    rank: usize,
    calls: u64,
    time_ns: u64,
    sent_bytes: u64,
    /// Longest and shortest call, ns; `None`: not known of this site.
    extremes_ns: Option<(u64, u64)>,
    /// Messages sent, the largest and the smallest, bytes; `None`: not known of this site.
    messages: Option<(u64, u64, u64)>,
}

pub(crate) fn mpip(profile: &Profile, to: &mut dyn Write) -> io::Result<()> {
    let sites = call_sites(profile);
    header(profile, to)?;
    times(profile, to)?;
    list(&sites, to)?;
    aggregate_time(profile, &sites, to)?;
    aggregate_bytes("Sent Message Size", "Sent%", &sites, |site| !site.is_io && !site.is_rma, to)?;
    aggregate_bytes("I/O Size", "I/O%", &sites, |site| site.is_io, to)?;
    aggregate_bytes("RMA Origin Size", "RMA%", &sites, |site| site.is_rma, to)?;
    site_times(profile, &sites, to)?;
    site_bytes("Message Sent statistics (all, sent bytes)", profile, &sites, |site| !site.is_io && !site.is_rma, to)?;
    site_bytes("I/O statistics (all, I/O bytes)", profile, &sites, |site| site.is_io, to)?;
    site_bytes("RMA statistics (all, origin bytes)", profile, &sites, |site| site.is_rma, to)?;
    section("End of Report", to)
}

fn section(title: &str, to: &mut dyn Write) -> io::Result<()> {
    let rule = "-".repeat(WIDTH);
    let head = format!("@--- {title} ");
    writeln!(to, "{rule}\n{head:-<WIDTH$}\n{rule}")
}

fn header(profile: &Profile, to: &mut dyn Write) -> io::Result<()> {
    let began: Option<Timestamp> = profile.began.parse().ok();
    let since = SignedDuration::try_from(std::time::Duration::from_nanos(profile.observed_ns)).unwrap_or_default();
    let clock = |time: Option<Timestamp>| {
        let time = time.map(|time| time.to_zoned(TimeZone::UTC).strftime("%Y %m %d %H:%M:%S").to_string());
        time.unwrap_or_else(|| "unknown".into())
    };
    let program = profile.ranks.first().map_or("unknown", |rank| rank.executable.as_str());
    let collector = profile.ranks.first();
    let pairs = [
        ("Version", format!("mpiprobe {}", profile.mpiprobe_version)),
        ("MPIP Build date", "none".into()),
        ("Start time", clock(began)),
        ("Stop time", clock(began.and_then(|began| began.checked_add(since).ok()))),
        ("Timer Used", "CLOCK_MONOTONIC".into()),
        ("MPIP env var", "[null]".into()),
        ("Collector Rank", collector.and_then(|rank| rank.rank).unwrap_or(0).to_string()),
        ("Collector PID", collector.map_or(0, |rank| rank.pid).to_string()),
        ("Final Output Dir", ".".into()),
        ("Report generation", "Single collector task".into()),
    ];
    writeln!(to, "@ mpiP\n@ Command : {program}")?;
    for (name, value) in pairs {
        writeln!(to, "@ {name:<25}: {value}")?;
    }
    for (number, rank) in profile.ranks.iter().enumerate() {
        writeln!(to, "@ {:<25}: {} {}", "MPI Task Assignment", task(profile, number), rank.host)?;
    }
    writeln!(to)
}

/// The number of a rank; of one that is not known, its place.
fn task(profile: &Profile, number: usize) -> u64 {
    profile.ranks.get(number).and_then(|rank| rank.rank).map_or(number as u64, u64::from)
}

/// Time of all threads that use MPI, and in it that in MPI, s.
fn times(profile: &Profile, to: &mut dyn Write) -> io::Result<()> {
    section("MPI Time (seconds)", to)?;
    writeln!(to, "Task    AppTime    MPITime     MPI%")?;
    for (number, rank) in profile.ranks.iter().enumerate() {
        let share = percent(rank.mpi_percent);
        let (app, mpi) = (seconds(rank.thread_wall_ns), seconds(rank.mpi_ns));
        writeln!(to, "{:>4} {:>10} {:>10}    {share}", task(profile, number), Significant(app), Significant(mpi))?;
    }
    let (app, mpi) = (app_ns(profile), mpi_ns(profile));
    let share = percent(profile.totals.mpi_percent_of_all);
    writeln!(to, "{:>4} {:>10} {:>10}    {share}", "*", Significant(seconds(app)), Significant(seconds(mpi)))
}

/// As C's `printf` writes it, in five columns.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| format!("{:>5}", "nan"), |share| format!("{share:5.2}"))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn app_ns(profile: &Profile) -> u64 {
    profile.ranks.iter().map(|rank| rank.thread_wall_ns).saturating_sum()
}

fn mpi_ns(profile: &Profile) -> u64 {
    profile.ranks.iter().map(|rank| rank.mpi_ns).saturating_sum()
}

fn list(sites: &[CallSite], to: &mut dyn Write) -> io::Result<()> {
    section(&format!("Callsites: {}", sites.len()), to)?;
    let longest = |of: fn(&CallSite) -> String, least: usize| {
        sites.iter().map(|site| of(site).chars().count()).fold(least, usize::max)
    };
    let (files, parents) = (longest(file, 18), longest(parent, 24));
    writeln!(to, " ID Lev {:<files$} {:>5} {:<parents$} MPI_Call", "File/Address", "Line", "Parent_Funct")?;
    for site in sites {
        let line = site.place.line.map_or_else(String::new, |line| line.to_string());
        writeln!(
            to,
            "{:>3} {:>3} {:<files$} {line:>5} {:<parents$} {}",
            site.id,
            0,
            file(site),
            parent(site),
            site.call
        )?;
    }
    Ok(())
}

/// Columns are told by blanks: a name has none.
fn word(text: &str) -> String {
    let word: String = text.chars().map(|letter| if letter.is_whitespace() { '_' } else { letter }).collect();
    if word.is_empty() { "[unknown]".into() } else { word }
}

fn file(site: &CallSite) -> String {
    word(site.place.file.as_deref().unwrap_or(&site.place.text))
}

fn parent(site: &CallSite) -> String {
    word(site.place.function.as_deref().unwrap_or_default())
}

fn aggregate_time(profile: &Profile, sites: &[CallSite], to: &mut dyn Write) -> io::Result<()> {
    section("Aggregate Time (top twenty, descending, milliseconds)", to)?;
    writeln!(
        to,
        "{:<20} {:>4} {:>10} {:>6} {:>6} {:>10} {:>6}",
        "Call", "Site", "Time", "App%", "MPI%", "Count", "COV"
    )?;
    let mut sorted: Vec<&CallSite> = sites.iter().filter(|site| site.time_ns > 0).collect();
    sorted.sort_by_key(|site| std::cmp::Reverse(site.time_ns));
    for site in sorted.into_iter().take(TOP) {
        writeln!(
            to,
            "{:<20} {:>4} {:>10} {:6.2} {:6.2} {:>10} {:6.2}",
            site.call,
            site.id,
            Significant(milliseconds(site.time_ns)),
            share(site.time_ns, app_ns(profile)),
            share(site.time_ns, mpi_ns(profile)),
            site.calls,
            variation(site)
        )?;
    }
    Ok(())
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Standard deviation over mean of the times of the ranks that have the site.
fn variation(site: &CallSite) -> f64 {
    let number = site.ranks.len() as f64;
    let mean = site.time_ns as f64 / number.max(1.0);
    if site.ranks.len() < 2 || mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = site.ranks.iter().map(|rank| (rank.time_ns as f64 - mean).powi(2)).sum();
    (squares / (number - 1.0)).sqrt() / mean
}

fn aggregate_bytes(
    title: &str,
    percent: &str,
    sites: &[CallSite],
    is_of_it: fn(&CallSite) -> bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut sorted: Vec<&CallSite> = sites.iter().filter(|site| site.sent_bytes > 0 && is_of_it(site)).collect();
    if sorted.is_empty() {
        return Ok(());
    }
    sorted.sort_by_key(|site| std::cmp::Reverse(site.sent_bytes));
    let all = sorted.iter().map(|site| site.sent_bytes).saturating_sum();
    section(&format!("Aggregate {title} (top twenty, descending, bytes)"), to)?;
    writeln!(to, "{:<20} {:>4} {:>10} {:>10} {:>10} {percent:>6}", "Call", "Site", "Count", "Total", "Avrg")?;
    for site in sorted.into_iter().take(TOP) {
        writeln!(
            to,
            "{:<20} {:>4} {:>10} {:>10} {:>10} {:6.2}",
            site.call,
            site.id,
            site.calls,
            Significant(site.sent_bytes as f64),
            Significant(site.sent_bytes as f64 / site.calls.max(1) as f64),
            share(site.sent_bytes, all)
        )?;
    }
    Ok(())
}

/// By name, site and rank.
fn by_name(sites: &[CallSite]) -> Vec<&CallSite> {
    let mut sorted: Vec<&CallSite> = sites.iter().collect();
    sorted.sort_by(|a, b| (&a.call, a.id).cmp(&(&b.call, b.id)));
    sorted
}

fn site_times(profile: &Profile, sites: &[CallSite], to: &mut dyn Write) -> io::Result<()> {
    let rows: usize = sites.iter().map(|site| site.ranks.len() + 1).sum();
    section(&format!("Callsite Time statistics (all, milliseconds): {rows}"), to)?;
    let row = |to: &mut dyn Write, site: &CallSite, rank: &str, calls: u64, of: [f64; 3], app: f64, mpi: f64| {
        let [max, mean, min] = of.map(Significant);
        writeln!(
            to,
            "{:<17} {:>4} {rank:>4} {calls:>6} {max:>8} {mean:>8} {min:>8} {app:6.2} {mpi:6.2}",
            site.call, site.id
        )
    };
    writeln!(
        to,
        "{:<17} {:>4} {:>4} {:>6} {:>8} {:>8} {:>8} {:>6} {:>6}",
        "Name", "Site", "Rank", "Count", "Max", "Mean", "Min", "App%", "MPI%"
    )?;
    for site in by_name(sites) {
        for own in &site.ranks {
            let (max, min) = known_ms(own.extremes_ns);
            let base = profile.ranks.get(own.rank).map_or((0, 0), |rank| (rank.thread_wall_ns, rank.mpi_ns));
            let of = [max, mean_ms(own.time_ns, own.calls), min];
            let rank = task(profile, own.rank).to_string();
            row(to, site, &rank, own.calls, of, share(own.time_ns, base.0), share(own.time_ns, base.1))?;
        }
        let all: Option<Vec<(u64, u64)>> = site.ranks.iter().map(|own| own.extremes_ns).collect();
        let all = all.and_then(|all| all.into_iter().reduce(|one, other| (one.0.max(other.0), one.1.min(other.1))));
        let (max, min) = known_ms(all);
        let of = [max, mean_ms(site.time_ns, site.calls), min];
        row(to, site, "*", site.calls, of, share(site.time_ns, app_ns(profile)), share(site.time_ns, mpi_ns(profile)))?;
        writeln!(to)?;
    }
    Ok(())
}

fn known_ms(extremes_ns: Option<(u64, u64)>) -> (f64, f64) {
    extremes_ns.map_or((f64::NAN, f64::NAN), |(max, min)| (milliseconds(max), milliseconds(min)))
}

fn mean_ms(ns: u64, calls: u64) -> f64 {
    if calls == 0 { 0.0 } else { milliseconds(ns) / calls as f64 }
}

fn site_bytes(
    title: &str,
    profile: &Profile,
    sites: &[CallSite],
    is_of_it: fn(&CallSite) -> bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    let sites: Vec<&CallSite> =
        by_name(sites).into_iter().filter(|site| site.sent_bytes > 0 && is_of_it(site)).collect();
    if sites.is_empty() {
        return Ok(());
    }
    section(&format!("Callsite {title}"), to)?;
    writeln!(
        to,
        "{:<17} {:>4} {:>4} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "Name", "Site", "Rank", "Count", "Max", "Mean", "Min", "Sum"
    )?;
    let row = |to: &mut dyn Write, site: &CallSite, rank: &str, calls: u64, max: f64, min: f64, sum: u64| {
        let mean = sum as f64 / calls.max(1) as f64;
        let [max, mean, min, sum] = [max, mean, min, sum as f64].map(Significant);
        writeln!(to, "{:<17} {:>4} {rank:>4} {calls:>7} {max:>9} {mean:>9} {min:>9} {sum:>9}", site.call, site.id)
    };
    for site in sites {
        for own in site.ranks.iter().filter(|own| own.sent_bytes > 0) {
            let (max, min) = own.messages.map_or((f64::NAN, f64::NAN), |(_, max, min)| (max as f64, min as f64));
            row(to, site, &task(profile, own.rank).to_string(), own.calls, max, min, own.sent_bytes)?;
        }
        let senders: Vec<&OfRank> = site.ranks.iter().filter(|own| own.sent_bytes > 0).collect();
        let all: Option<Vec<_>> = senders.iter().map(|own| own.messages).collect();
        let all = all.and_then(|all| all.into_iter().reduce(|one, other| (0, one.1.max(other.1), one.2.min(other.2))));
        let (max, min) = all.map_or((f64::NAN, f64::NAN), |(_, max, min)| (max as f64, min as f64));
        row(to, site, "*", senders.iter().map(|own| own.calls).saturating_sum(), max, min, site.sent_bytes)?;
        writeln!(to)?;
    }
    Ok(())
}

fn call_sites(profile: &Profile) -> Vec<CallSite> {
    let known = sites(profile);
    if known.is_empty() { of_functions(profile) } else { of_places(profile, &known) }
}

fn call_site(number: usize, function: &str, place: Place, group: &str) -> CallSite {
    let (is_io, is_rma) =
        (group == mpiprobe_functions::Group::Io.title(), group == mpiprobe_functions::Group::OneSided.title());
    let call = function.strip_prefix("MPI_").unwrap_or(function).to_owned();
    CallSite { id: number + 1, call, place, calls: 0, time_ns: 0, sent_bytes: 0, is_io, is_rma, ranks: Vec::new() }
}

fn of_places(profile: &Profile, known: &[Site]) -> Vec<CallSite> {
    let group = |name: &str| profile.functions.iter().find(|row| row.all.name == name).map_or("", |row| row.all.group);
    let function = |rank: usize, name: &str| profile.ranks.get(rank)?.functions.iter().find(|row| row.name == name);
    // How many sites of a function each rank has.
    let mut numbers: HashMap<&str, Vec<u32>> = HashMap::new();
    for site in known {
        let of_ranks = numbers.entry(site.function).or_insert_with(|| vec![0; profile.ranks.len()]);
        for (rank, _) in &site.ranks {
            if let Some(number) = of_ranks.get_mut(*rank) {
                *number += 1;
            }
        }
    }
    let make = |(number, site): (usize, &Site)| {
        let name = site.called();
        let mut found = call_site(number, name, site.place.clone(), group(site.function));
        for &(rank, amounts) in &site.ranks {
            // Extremes are known of functions: of a site, where it is the function's only one in the rank.
            let is_only = numbers.get(site.function).and_then(|of_ranks| of_ranks.get(rank)) == Some(&1);
            let row = function(rank, site.function).filter(|_| is_only);
            let own = OfRank { sent_bytes: amounts.sent_bytes, ..of_row(rank, row, amounts.calls, amounts.time_ns) };
            found.ranks.push(own);
        }
        let all = &site.all;
        (found.calls, found.time_ns, found.sent_bytes) = (all.calls, all.time_ns, all.sent_bytes);
        found
    };
    known.iter().enumerate().map(make).collect()
}

fn of_row(rank: usize, row: Option<&FunctionRow>, calls: u64, time_ns: u64) -> OfRank {
    let timed = row.filter(|row| row.calls > row.untimed_calls);
    let sent = row.and_then(|row| row.traffic.as_ref()).map(|traffic| &traffic.sent);
    OfRank {
        rank,
        calls,
        time_ns,
        sent_bytes: sent.map_or(0, |sent| sent.bytes),
        extremes_ns: timed.map(|row| (row.max_ns, row.min_ns)),
        messages: sent.map(|sent| (sent.messages, sent.max_bytes, sent.min_bytes)),
    }
}

fn of_functions(profile: &Profile) -> Vec<CallSite> {
    let make = |(number, function): (usize, &mpiprobe_model::FunctionProfile)| {
        let name = function.all.name;
        let place = Place { text: "[unknown]".into(), ..Place::default() };
        let mut found = call_site(number, name, place, function.all.group);
        for (number, rank) in profile.ranks.iter().enumerate() {
            if let Some(row) = rank.functions.iter().find(|row| row.name == name) {
                found.ranks.push(of_row(number, Some(row), row.calls, row.time_ns));
            }
        }
        (found.calls, found.time_ns) = (function.all.calls, function.all.time_ns);
        found.sent_bytes = found.ranks.iter().map(|own| own.sent_bytes).saturating_sum();
        found
    };
    profile.functions.iter().enumerate().map(make).collect()
}

/// A number as C's `%.3g` prints it.
struct Significant(f64);

impl fmt::Display for Significant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value) = *self;
        if value == 0.0 {
            return f.pad("0");
        }
        if !value.is_finite() {
            return f.pad("nan");
        }
        // Rounded first: 999.6 has four digits before the point then. There are a million numbers, and their digits are dear: once each.
        let scientific = format!("{value:.2e}");
        let (number, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (first, others) = number.split_once('.').unwrap_or((number, ""));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let zeros = usize::try_from(-1 - exponent).unwrap_or(0);
        let mut text = String::with_capacity(16);
        match usize::try_from(exponent) {
            Err(_) if exponent >= -4 => {
                text.extend(["0.", "000".get(..zeros).unwrap_or_default(), first, others]);
                shorten(&mut text);
            }
            Ok(before @ 0..3) => {
                let (whole, part) = others.split_at_checked(before).unwrap_or((others, ""));
                text.extend([first, whole, ".", part]);
                shorten(&mut text);
            }
            _ => {
                text.push_str(number);
                shorten(&mut text);
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(text, "e{sign}{:02}", exponent.unsigned_abs())?;
            }
        }
        f.pad(&text)
    }
}

/// Takes away what stands behind the point for nothing.
fn shorten(text: &mut String) {
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::{
        Amounts, FlowRow, FunctionTraffic, Partner, RankTraffic, Volume,
        sample::{self, SECOND, function},
    };

    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        let shown = |value: f64| Significant(value).to_string();
        let printed = [0.0, 1.0, 0.0523, 12.345, 999.6, 1234.0, 0.000_012_3, 40.0, 100.0, 0.000_1, 4.01e14].map(shown);
        assert_eq!(
            printed,
            ["0", "1", "0.0523", "12.3", "1e+03", "1.23e+03", "1.23e-05", "40", "100", "0.0001", "4.01e+14"]
        );
        assert_eq!((shown(f64::NAN), format!("{:>8}", Significant(1.5))), ("nan".into(), "     1.5".into()));
    }

    /// Two ranks that send from one place, and the first from another one.
    fn job() -> Profile {
        let mut profile = sample::profile(sample::ranks(2));
        for (number, rank) in (1..).zip(&mut profile.ranks) {
            let calls = 10 * number;
            let mut row = function("MPI_Send", calls, 1_000_000).all;
            let sent =
                Volume { messages: calls, bytes: 100 * calls, min_bytes: 100, max_bytes: 100, ..Volume::default() };
            row.traffic = Some(FunctionTraffic { sent, ..FunctionTraffic::default() });
            (rank.calls, rank.mpi_ns, rank.mpi_percent) = (calls, calls * 1_000_000, Some(0.1));
            rank.thread_wall_ns = 10 * SECOND;
            rank.functions = vec![row].into();
            let flow = |place: &str, calls: u64| FlowRow {
                function: "MPI_Send",
                started_by: None,
                communicator: None,
                partner: Partner::Rank,
                peer: Some(0),
                call_site: 1,
                site: Some(place.into()),
                amounts: Amounts { calls, time_ns: calls * 1_000_000, sent_bytes: 100 * calls, ..Amounts::default() },
                completed: 0,
                pending_ns: 0,
                waited_ns: 0,
            };
            let flows = match number {
                1 => vec![flow("ring.c:42 in main", 4), flow("my ring.c:50 in step", 6)],
                _ => vec![flow("ring.c:42 in main", calls)],
            };
            rank.traffic = Some(RankTraffic { flows: flows.into(), ..RankTraffic::default() });
        }
        profile.functions = vec![function("MPI_Send", 30, 1_000_000)];
        profile
    }

    fn printed(profile: &Profile) -> String {
        let mut text = Vec::new();
        mpip(profile, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn sections_and_columns_are_those_of_mpip() {
        let text = printed(&job());
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("@--- ")).collect();
        assert!(heads.iter().all(|head| head.len() == WIDTH), "{heads:#?}");
        let titles: Vec<&str> =
            heads.iter().map(|head| head.trim_start_matches("@--- ").trim_end_matches('-').trim()).collect();
        assert_eq!(
            titles,
            [
                "MPI Time (seconds)",
                "Callsites: 2",
                "Aggregate Time (top twenty, descending, milliseconds)",
                "Aggregate Sent Message Size (top twenty, descending, bytes)",
                "Callsite Time statistics (all, milliseconds): 5",
                "Callsite Message Sent statistics (all, sent bytes)",
                "End of Report",
            ]
        );
        for line in [
            "@ mpiP",
            "@ Start time               : 2026 03 01 12:00:00",
            "@ Stop time                : 2026 03 01 12:00:10",
            "@ MPI Task Assignment      : 1 node1",
            "   0         10       0.01     0.10",
            "   *         20       0.03     0.00",
            "  1   0 ring.c                42 main                     Send",
            "  2   0 my_ring.c             50 step                     Send",
            "Send                    1         24   0.12  80.00         24   0.94",
            "Send                    1         24    2.4e+03        100  80.00",
            // Two places of one function in a rank: whose the longest call was is not known.
            "Send                 1    0      4      nan        1      nan   0.04  40.00",
            "Send                 1    1     20        1        1        1   0.20 100.00",
            "Send                 1    *     24      nan        1      nan   0.12  80.00",
            "Send                 1    1      20       100       100       100     2e+03",
        ] {
            assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
        }
    }

    #[test]
    fn without_places_functions_are_the_sites() {
        let mut profile = job();
        for rank in &mut profile.ranks {
            rank.traffic = None;
        }
        let text = printed(&profile);
        assert!(text.contains("Callsites: 1 -"), "{text}");
        assert!(text.contains("  1   0 [unknown]                [unknown]                Send"), "{text}");
    }
}
