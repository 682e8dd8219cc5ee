//! What the view shows of the last calls of a rank of `recent`, whichever engine counts.

use libtest_mimic::Failed;

use crate::{
    Job, JobBuilder, Mpi, program,
    terminal::{FAST, Terminal, TerminalError},
};

/// Calls of the third part: more than any ring has room for.
const MANY: u32 = 1000;
const GATES: [&str; 5] = ["1", "2", "3", "4", "5"];
/// Wide enough for the longest call, and high enough for half of a ring.
const SIZE: (u16, u16) = (280, 60);
/// Rows of that which are looked at.
const LAST: u32 = 40;

/// A job of two ranks that stands at its first gate as soon as it is spawned.
pub fn job(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::RECENT).ranks(2).args([MANY.to_string()]).gates(&GATES).own_name()
}

/// Watches it by a view with these options until it ends.
///
/// # Panics
/// If the numbers of calls do not add up.
pub fn watch(mut job: Job, options: &[&str]) -> Result<(), Failed> {
    job.wait_for_gate("1")?;
    let mut terminal = Terminal::start(SIZE, [FAST, options, &["--pid-of", job.called()]].concat())?;
    terminal.wait_for(&["2/2 ranks", "LIVE"])?;
    pass(&mut job, "1", "2")?;

    // What was called before is not there.
    terminal.press("8")?;
    terminal.wait_for(&["Last 0 calls of rank 0", "No call has returned since they are written down."])?;
    pass(&mut job, "2", "3")?;
    wait_for_calls(&terminal, "Last 7 calls of rank 0", &second_part(1))?;
    terminal.press("l")?;
    wait_for_calls(&terminal, "Last 7 calls of rank 1", &second_part(0))?;

    // More than can be kept: the last ones are there, and how many are not is known.
    pass(&mut job, "3", "4")?;
    let expected: Vec<String> = (MANY - LAST..MANY).map(|number| format!("MPI_Send({}", sent(number))).collect();
    let shown = wait_for_calls(&terminal, "Last ", &expected)?;
    let (seen, missed) = counts(&shown).ok_or_else(|| format!("no numbers of calls:\n{shown}"))?;
    assert_eq!(seen + missed, 7 + MANY, "{shown}");
    assert!(missed > 0, "{shown}");

    // Nothing is written down while nobody looks.
    terminal.press("2")?;
    let mut shown = terminal.wait_for(&["2 ranks, "])?;
    // Until whoever observes has noticed, on a machine that has much to do: what comes after two further moments, it has.
    for _ in 0..2 {
        let before = moment(&shown).to_owned();
        shown = terminal.wait_until("a later moment", |shown| moment(shown) != before)?;
    }
    pass(&mut job, "4", "5")?;
    terminal.press("8")?;
    terminal.wait_for(&["Last 0 calls of rank ", "No call has returned since they are written down."])?;
    terminal.press("q")?;
    let left = terminal.left()?;
    assert_eq!(left.not_restored, Vec::<String>::new());
    let sends = group_thousands(2 * (5 + 1 + MANY + 10));
    let row = left.printed.lines().find(|line| line.trim_start().starts_with("MPI_Send ")).unwrap_or_default();
    assert!(row.split_whitespace().any(|word| word == sends), "{sends} sends: {}", left.printed);
    job.open_gate("5")?;
    job.wait()?.success()?;
    Ok(())
}

/// For how long it has been observed, as the first line has it.
fn moment(shown: &str) -> &str {
    shown.lines().find_map(|line| Some(line.split_once("LIVE ")?.1.trim())).unwrap_or_default()
}

/// From one gate to the next.
fn pass(job: &mut Job, gate: &str, next: &str) -> Result<(), Failed> {
    job.open_gate(gate)?;
    job.wait_for_gate(next)?;
    Ok(())
}

/// Of a rank whose neighbour on either side is `other`.
fn second_part(other: u32) -> Vec<String> {
    [
        format!("MPI_Isend(count=3, datatype=MPI_INT, dest={other}, tag=11, comm=MPI_COMM_WORLD, buf=0x"),
        "MPI_Recv(count=3, datatype=MPI_INT, source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG, comm=MPI_COMM_WORLD, \
         status=MPI_STATUS_IGNORE, buf=0x"
            .to_owned(),
        "MPI_Wait(status=MPI_STATUS_IGNORE, request=0x".to_owned(),
        format!(
            "MPI_Sendrecv(sendcount=1, sendtype=MPI_DOUBLE, dest={other}, sendtag=21, recvcount=2, recvtype=MPI_DOUBLE, \
             source={other}, recvtag=21, comm=MPI_COMM_WORLD, status=MPI_STATUS_IGNORE, sendbuf=0x"
        ),
        "MPI_Send(count=2, datatype=MPI_CHAR, dest=MPI_PROC_NULL, tag=31, comm=MPI_COMM_WORLD, buf=0x".to_owned(),
        // Which operation it is, not every engine knows of every library.
        "MPI_Allreduce(sendbuf=MPI_IN_PLACE, count=1, datatype=MPI_INT, op=".to_owned(),
        "MPI_Bcast(count=4, datatype=MPI_LONG, root=1, comm=MPI_COMM_WORLD, buffer=0x".to_owned(),
    ]
    .into()
}

/// The arguments of a send to nobody by its number.
fn sent(number: u32) -> String {
    format!("count={number}, datatype=MPI_INT, dest=MPI_PROC_NULL, tag={number}, comm=MPI_COMM_WORLD, buf=0x")
}

/// Waits until the last rows of the table with this title begin like that.
fn wait_for_calls(terminal: &Terminal, title: &str, expected: &[String]) -> Result<String, TerminalError> {
    let is_it = |shown: &str| {
        let calls: Vec<&str> = shown.lines().filter_map(|line| line.get(line.find(" MPI_")? + 1..)).collect();
        let last = calls.len().checked_sub(expected.len()).and_then(|first| calls.get(first..));
        last.is_some_and(|last| last.iter().zip(expected).all(|(call, expected)| call.starts_with(expected.as_str())))
            && shown.contains(title)
    };
    terminal.wait_until(&format!("{title}: {expected:#?}"), is_it)
}

/// How many calls are shown and how many were not seen, by the title: "Last 71 calls of rank 1, 936 between not seen".
fn counts(shown: &str) -> Option<(u32, u32)> {
    let title = shown.lines().find_map(|line| line.trim_start().strip_prefix("Last "))?;
    let number = |text: &str| text.replace(',', "").parse::<u32>().ok();
    let seen = number(title.split(' ').next()?)?;
    let missed = title.split(", ").nth(1)?;
    Some((seen, number(missed.split(' ').next()?)?))
}

/// "2,032"
fn group_thousands(number: u32) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}
