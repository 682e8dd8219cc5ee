//! `mpiprobe report`: tables that were kept, of one node and of several, whole and damaged.

use std::fs::{self, OpenOptions};
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use mpiprobe_common::file::{ENDED_THREADS_REGION, Header};
use mpiprobe_tests::reports::{NEEDS, say_the_same};
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profiler, Requirement, program, requirement};

use serde_json::Value;

use crate::check::{expect_counts, functions};
use crate::{is_debians, trial};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    let c = |name: &str, test: fn(Mpi) -> Result<(), Failed>| trial(mpi, Language::C, name, move || test(mpi));
    vec![
        c("report_is_the_profile_of_the_run", whole),
        {
            let needs = [&[Requirement::Mpi(mpi)], NEEDS.as_slice()].concat();
            let name = format!("{}::report_says_the_same_in_every_format", mpi.id());
            requirement::trial(name, &needs, move || formats(mpi))
        },
        c("run_writes_reports_and_plots_are_drawn_of_it", kept),
        c("report_while_the_job_runs", running),
        c("report_names_files_of_no_use", damaged),
        c("report_of_two_nodes", nodes),
        c("report_adds_up_hostile_figures", hostile),
    ]
}

/// A job that has ended and its tables.
fn ended(mpi: Mpi) -> Result<(Job, PathBuf, tempfile::TempDir), Failed> {
    let folder = tempfile::tempdir()?;
    let tables = folder.path().join("tables");
    let output = ["--output".as_ref(), tables.as_os_str()];
    let job = Job::builder(mpi, program::RING).ranks(3).args(["20"]).truth(true);
    let mut job = job.profiled(output)?.spawn()?;
    job.wait()?.success()?;
    Ok((job, tables, folder))
}

/// A page and a picture of a run that was recorded, and of what there is none.
fn kept(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [page, recording, picture] = ["ring.html", "ring.rec", "ring.svg"].map(|name| folder.path().join(name));
    let options = ["--report".as_ref(), page.as_os_str(), "--record".as_ref(), recording.as_os_str()];
    let job = Job::builder(mpi, program::RING).ranks(3).args(["20"]);
    let mut job = job.profiled(options)?.spawn()?;
    job.wait()?.success()?;
    let text = fs::read_to_string(&page)?;
    assert!(text.starts_with("<!doctype html>") && text.contains("Content-Security-Policy"), "{text:.300}");

    let plot = |kind: &str, source: &Path| -> Result<Ended, Failed> {
        let arguments = ["plot".as_ref(), kind.as_ref(), source.as_os_str(), "-o".as_ref(), picture.as_os_str()];
        Ok(Profiler::start(arguments)?.wait()?)
    };
    for kind in ["matrix", "histogram"] {
        let drawn = plot(kind, &recording)?;
        assert_eq!(drawn.status.code(), Some(0), "{}", drawn.printed());
        assert!(fs::read_to_string(&picture)?.starts_with("<svg"));
        // No file is overwritten.
        assert_eq!(plot(kind, &recording)?.status.code(), Some(1));
        fs::remove_file(&picture)?;
    }
    let refused = plot("matrix", &page)?;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.printed());
    assert!(!picture.exists(), "{}", refused.printed());

    let unknown = folder.path().join("ring.xyz");
    let options = ["--report".as_ref(), unknown.as_os_str()];
    let mut job = Job::builder(mpi, program::RING).ranks(1).args(["1"]).profiled(options)?.spawn()?;
    assert!(job.wait()?.success().is_err() && !unknown.exists());
    Ok(())
}

fn report(tables: &Path, more: &[&str]) -> Result<Ended, Failed> {
    let arguments = ["report".as_ref(), tables.as_os_str()];
    Ok(Profiler::start(arguments.into_iter().chain(more.iter().map(AsRef::as_ref)))?.wait()?)
}

fn files(tables: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut files: Vec<PathBuf> = fs::read_dir(tables)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn whole(mpi: Mpi) -> Result<(), Failed> {
    let (job, tables, folder) = ended(mpi)?;
    let reported = report(&tables, &["--json"])?;
    assert_eq!(reported.status.code(), Some(0), "{}", reported.printed());
    let profile = reported.profile()?;
    assert!(profile.complete && profile.end.as_deref() == Some("targets-ended"), "{profile:?}");
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    // Long after the end, too, it is known where calls were made.
    let flows = profile.ranks.iter().filter_map(|rank| rank.traffic.as_ref()).flat_map(|traffic| &traffic.flows);
    let sites: Vec<Option<&str>> = flows.map(|flow| flow.site.as_deref()).collect();
    assert!(
        !sites.is_empty() && sites.iter().all(|site| site.is_some_and(|site| site.contains("ring.c:"))),
        "{sites:?}"
    );

    let file = folder.path().join("profile.txt");
    let path = file.to_str().ok_or("no text")?;
    let reported = report(&tables, &["--filter", "func = \"MPI_Recv\"", "-o", path])?;
    assert_eq!((reported.status.code(), reported.stdout.len()), (Some(0), 0), "{}", reported.printed());
    let text = fs::read_to_string(&file)?;
    assert!(text.contains("MPI_Recv") && !text.contains("MPI_Isend"), "{text}");

    let nothing = tempfile::tempdir()?;
    let refused = report(nothing.path(), &[])?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.join("\n").contains("has no tables of MPI processes"), "{}", refused.printed());
    Ok(())
}

/// Every figure, on a job with something of everything.
fn formats(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [tables, data] = ["tables", "data"].map(|name| folder.path().join(name));
    let output = ["--output".as_ref(), tables.as_os_str()];
    let job = Job::builder(mpi, program::REPORT).ranks(4).args([data.to_str().ok_or("no text")?]);
    let mut job = job.profiled(output)?.spawn()?;
    job.wait()?.success()?;
    say_the_same(&tables, &folder.path().join("reports"))?;

    let kept = folder.path().join("reports/profile.json");
    let many = report(&kept, &["--format", "csv"])?;
    assert!(many.status.code() == Some(1) && many.stderr.join("\n").contains("-o DIR"), "{}", many.printed());
    let directory = folder.path().join("reports/csv");
    let exists = report(&kept, &["--format", "csv", "-o", directory.to_str().ok_or("no text")?])?;
    assert!(exists.status.code() == Some(1), "{}", exists.printed());
    let full = report(&kept, &["-o", "/dev/full"])?;
    assert!(full.status.code() == Some(1) && full.stderr.join("\n").contains("exists already"), "{}", full.printed());
    let markdown = report(&kept, &["--format", "markdown"])?.stdout.join("\n");
    assert!(markdown.contains("## Functions, all ranks") && markdown.contains("MPI\\_Isend"), "{markdown}");
    Ok(())
}

fn running(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true);
    let mut job = job.profiled(["--output".as_ref(), folder.path().as_os_str()])?.spawn()?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    let profile = report(folder.path(), &["--json"])?.profile()?;
    assert!(profile.end.is_none() && profile.ranks.iter().all(|rank| rank.state == "running"), "{profile:?}");
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)
}

/// Others are reported all the same.
fn damaged(mpi: Mpi) -> Result<(), Failed> {
    let (_job, tables, _folder) = ended(mpi)?;
    let whole = files(&tables)?;
    let first = whole.first().ok_or("no tables")?;
    let copy = |name: &str| -> Result<PathBuf, Failed> {
        let path = tables.join(name);
        fs::copy(first, &path)?;
        Ok(path)
    };
    let write = |path: &Path, at: usize, bytes: &[u8]| -> Result<(), Failed> {
        Ok(OpenOptions::new().write(true).open(path)?.write_all_at(bytes, at as u64)?)
    };
    write(&copy("older.mpiprobe")?, offset_of!(Header, version), &[1])?;
    write(&copy("other.mpiprobe")?, offset_of!(Header, functions), &[0; 8])?;
    write(&copy("making.mpiprobe")?, 0, &[0; 8])?;
    fs::write(tables.join("foreign.mpiprobe"), vec![b'x'; 100_000])?;
    fs::write(tables.join("empty.mpiprobe"), "")?;
    fs::create_dir(tables.join("folder.mpiprobe"))?;
    std::os::unix::fs::symlink(first, tables.join("link.mpiprobe"))?;
    let cut = copy("cut.mpiprobe")?;
    OpenOptions::new().write(true).open(cut)?.set_len(20_000)?;
    // Numbers that nobody can believe.
    let hostile = copy("hostile.mpiprobe")?;
    for at in
        [offset_of!(Header, threads), offset_of!(Header, flows), offset_of!(Header, stats), offset_of!(Header, code)]
    {
        write(&hostile, at, &[0xff; 8])?;
    }
    let ended_threads = ENDED_THREADS_REGION;
    let length = usize::try_from(ended_threads.end() - ended_threads.offset)?;
    write(&hostile, usize::try_from(ended_threads.offset)?, &vec![0xff; length])?;

    let reported = report(&tables, &["--json"])?;
    assert_eq!(reported.status.code(), Some(3), "{}", reported.printed());
    let profile = reported.profile()?;
    for (name, why) in [
        ("older", "another version"),
        ("other", "another version"),
        ("making", "still being made"),
        ("foreign", "no file of the wrapper's"),
        ("empty", "ends too soon"),
        ("folder", ""),
        ("link", ""),
    ] {
        let is_named = |what: &&String| what.contains(&format!("{name}.mpiprobe")) && what.contains(why);
        assert!(
            profile.incomplete_because.iter().any(|what| is_named(&what)),
            "{name}: {:?}",
            profile.incomplete_because
        );
    }
    assert!(profile.incomplete_because.iter().any(|what| what.contains("ends too soon") && what.contains("process")));
    // The three that are whole, and the one that lies.
    assert_eq!(profile.ranks.len(), 4, "{profile:?}");

    for path in whole.iter().chain([&hostile]) {
        fs::remove_file(path)?;
    }
    fs::remove_file(tables.join("cut.mpiprobe"))?;
    let refused = report(&tables, &[])?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.join("\n").contains("older.mpiprobe"), "{}", refused.printed());
    Ok(())
}

/// The tables of one rank, made to come from another node with another clock.
fn nodes(mpi: Mpi) -> Result<(), Failed> {
    let (job, tables, _folder) = ended(mpi)?;
    let other = OpenOptions::new().read(true).write(true).open(files(&tables)?.first().ok_or("no tables")?)?;
    let mut host = [0; 64];
    host[..6].copy_from_slice(b"node-2");
    other.write_all_at(&host, offset_of!(Header, host) as u64)?;
    other.write_all_at(&[7; 16], offset_of!(Header, boot) as u64)?;
    let mut unix = [0; 8];
    other.read_exact_at(&mut unix, offset_of!(Header, began_unix_ns) as u64)?;
    // The clock of that node has gone for a thousand seconds less: the same moment is so much later by the time of day.
    let later = u64::from_ne_bytes(unix) + 1_000_000_000_000;
    other.write_all_at(&later.to_ne_bytes(), offset_of!(Header, began_unix_ns) as u64)?;

    let reported = report(&tables, &["--json"])?;
    let profile = reported.profile()?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    assert_eq!(profile.jobs.iter().map(|job| job.ranks).collect::<Vec<_>>(), [3], "{profile:?}");
    assert_eq!(profile.ranks.iter().filter(|rank| rank.host == "node-2").count(), 1);
    assert!((1_000_000_000_000..1_100_000_000_000).contains(&profile.observed_ns), "{}", profile.observed_ns);
    let text = report(&tables, &[])?.stdout.join("\n");
    assert!(text.lines().any(|line| line.ends_with("host")) && text.contains("node-2"), "{text}");
    Ok(())
}

/// Two ranks whose figures together are more than a number can be: whoever owns tables can write that. Nothing panics, in builds that
/// look for overflows, and nothing wraps, in those that do not.
/// Invariant SUMS-END.
fn hostile(mpi: Mpi) -> Result<(), Failed> {
    type Damage = fn(u64, u64) -> u64;
    const HALF: u64 = u64::MAX / 2 + 1;
    let (_job, tables, folder) = ended(mpi)?;
    let whole = files(&tables)?;
    // A time, or a number of bytes; of counts all, which keys are not.
    let is_figure = |word: u64| word > u64::from(u16::MAX) && word < 1 << 60;
    let damages: [(&str, Damage); 4] = [
        ("half", |_, _| HALF),
        ("most", |_, _| u64::MAX),
        ("some", |place, word| if place.is_multiple_of(3) { HALF } else { word }),
        ("mixed", |place, word| match place % 4 {
            0 => u64::MAX,
            1 => word,
            2 => HALF + place,
            _ => u64::MAX / 3,
        }),
    ];
    for (name, damage) in damages {
        let place = folder.path().join(name);
        fs::create_dir(&place)?;
        for table in &whole {
            let mut bytes = fs::read(table)?;
            let body = bytes.get_mut(size_of::<Header>()..).ok_or("no tables")?;
            for (number, word) in (0..).zip(body.as_chunks_mut().0) {
                let value = u64::from_ne_bytes(*word);
                if is_figure(value) {
                    *word = damage(number, value).to_ne_bytes();
                }
            }
            fs::write(place.join(table.file_name().ok_or("no name")?), bytes)?;
        }
        for arguments in [["--json"].as_slice(), &[]] {
            let ended = report(&place, arguments)?;
            let said = ended.stderr.join("\n");
            assert!(
                matches!(ended.status.code(), Some(0 | 3)) && !said.contains("panicked"),
                "{name}: {}",
                ended.printed()
            );
        }
        let profile = report(&place, &["--json"])?.profile()?;
        let times = |function: &str| -> Vec<u64> {
            let rows = profile.ranks.iter().flat_map(|rank| &rank.functions);
            rows.filter(|row| row.name == function).map(|row| row.time_ns).collect()
        };
        // It is not less than what any rank has had of it, up to what counting has cost, which is subtracted from both.
        let least = times("MPI_Recv").into_iter().max().unwrap_or(0).saturating_sub(1 << 30);
        let json: Value = serde_json::from_str(&report(&place, &["--json"])?.stdout.join("\n"))?;
        let functions = json.get("functions").and_then(Value::as_array).ok_or("no functions")?;
        let all = functions.iter().find(|row| row.get("name").is_some_and(|name| name == "MPI_Recv"));
        let sum = all.and_then(|row| row.get("time_ns")?.as_u64());
        assert!(sum.is_some_and(|sum| sum >= least), "{name}: {sum:?}, {least}");
    }
    Ok(())
}
