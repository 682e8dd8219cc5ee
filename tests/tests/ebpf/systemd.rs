//! The node service under the unit that is shipped, and a systemd that is the first process of a namespace.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Ended, Job, Mpi, Profiler, Requirement, program, requirement, second_user::nobody_else, systemd::Systemd,
};

use crate::{
    check::{complete, expect_counts, functions},
    service::wait_until,
};

/// What `systemd-analyze security` may give a unit, in tenths.
const EXPOSURE: &str = "16";

/// What hands metrics on.
const PUSH: &str = "mpiprobe-push.service";

/// The child of the service's main process that has no rights.
const KILL_WORKER: &str = r#"for child in $(cat /proc/$1/task/$1/children); do
[ "$(cat /proc/$child/comm)" != mpiprobe-worker ] || { kill -KILL $child; exit; }
done
exit 1"#;

pub(crate) fn tests() -> Vec<Trial> {
    let mpi = Mpi::OpenMpi;
    let needs = [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Mpi(mpi),
        Requirement::Command("unshare"),
        Requirement::Command("nsenter"),
        Requirement::Command("setpriv"),
        Requirement::File("/lib/systemd/systemd"),
    ];
    vec![requirement::trial(format!("{}::the_service_under_systemd", mpi.id()), &needs, move || shipped(mpi))]
}

fn job(mpi: Mpi, systemd: &Systemd) -> Result<Job, Failed> {
    let job = Job::builder(mpi, program::RING).ranks(2).args(["20"]).gates(&["start", "2", "3"]).truth(true);
    let mut job = job.own_name().around(systemd.as_user()).spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

/// As the user does it.
fn observe(systemd: &Systemd, job: &Job) -> Result<Profiler, Failed> {
    let arguments = ["--json", "--interval", "1h", "--pid-of", job.called()];
    let mut profiler = Profiler::spawn(systemd.client(arguments))?;
    let begun = profiler.wait_for("mpiprobe: observing ");
    begun.map_err(|error| format!("{error}\n{}", systemd.journal()))?;
    Ok(profiler)
}

fn expect_told(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(1), "{}", ended.printed());
}

/// A client is answered: what was killed has been started again.
fn expect_back(systemd: &Systemd, job: &Job) -> Result<(), Failed> {
    let mut last = String::new();
    let back = wait_until(|| {
        let listed = systemd.asked(["ps", "--json"])?;
        last = listed.printed();
        Ok(listed.status.success() && last.contains(job.called()))
    });
    back.map_err(|_| format!("{last}\n{}", systemd.journal()).into())
}

/// Invariant NOBODY-NEEDS-THE-SERVICE.
fn shipped(mpi: Mpi) -> Result<(), Failed> {
    let systemd = Systemd::boot(nobody_else())?;
    let enabled = systemd.systemctl(["enable", "--now", "mpiprobe.socket"])?;
    assert!(enabled.status.success(), "{}", String::from_utf8_lossy(&enabled.stderr));
    for unit in ["mpiprobe.service", PUSH] {
        let analysed = systemd.command(["systemd-analyze", "security", "--threshold", EXPOSURE, unit]);
        let analysed = Profiler::spawn(analysed)?.wait()?;
        assert!(analysed.status.success() && analysed.stdout.len() > 20, "{}", analysed.printed());
    }

    // The first client starts it.
    let mut exact = job(mpi, &systemd)?;
    assert_eq!(systemd.property("ActiveState")?, "inactive");
    expect_back(&systemd, &exact)?;
    assert_eq!(systemd.property("ActiveState")?, "active", "{}", systemd.journal());
    let main = systemd.property("MainPID")?;

    // Other settings come in mid-observation, which goes on.
    let profiler = observe(&systemd, &exact)?;
    exact.open_gate("start")?;
    exact.wait_for_gate("2")?;
    systemd.write("etc/mpiprobe/service.toml", "[quota]\nobservations = 1\n")?;
    let reloaded = systemd.systemctl(["reload", "mpiprobe.service"])?;
    assert!(reloaded.status.success(), "{}", String::from_utf8_lossy(&reloaded.stderr));
    wait_until(|| {
        let refused = systemd.asked(["--json", "--duration", "10ms", "--pid-of", exact.called()])?;
        Ok(refused.printed().contains("as many as one user may have"))
    })?;
    exact.open_gate("2")?;
    exact.open_gate("3")?;
    exact.wait()?.success()?;
    expect_counts(&complete(&profiler.wait()?)?, &exact.snapshot()?, None, &functions("default")?)?;
    assert_eq!(systemd.property("MainPID")?, main);

    // The worker is killed, then all that is left.
    let mut unharmed = job(mpi, &systemd)?;
    let observed = observe(&systemd, &unharmed)?;
    unharmed.open_gate("start")?;
    unharmed.wait_for_gate("2")?;
    let worker = Profiler::spawn(systemd.command(["sh", "-c", KILL_WORKER, "sh", &main]))?.wait()?;
    assert!(worker.status.success(), "{}", worker.printed());
    expect_told(&observed.wait()?);
    expect_back(&systemd, &unharmed)?;
    assert_eq!(systemd.property("MainPID")?, main, "the supervisor goes on");
    let observed = observe(&systemd, &unharmed)?;
    unharmed.open_gate("2")?;
    unharmed.wait_for_gate("3")?;
    let killed = systemd.systemctl(["kill", "--kill-whom=main", "--signal=KILL", "mpiprobe.service"])?;
    assert!(killed.status.success(), "{}", String::from_utf8_lossy(&killed.stderr));
    expect_told(&observed.wait()?);
    expect_back(&systemd, &unharmed)?;
    let again = systemd.property("MainPID")?;
    assert!(again != main && again != "0", "{}", systemd.journal());
    let before = unharmed.snapshot()?;
    let profiler = observe(&systemd, &unharmed)?;
    unharmed.open_gate("3")?;
    unharmed.wait()?.success()?;
    let truth = unharmed.snapshot()?;
    expect_counts(&complete(&profiler.wait()?)?, &truth, Some(&before), &functions("default")?)?;
    // As if nobody had looked.
    for (rank, image) in &exact.snapshot()?.ranks {
        let other = truth.rank(*rank)?;
        assert_eq!(other.calls("MPI_Send").completed, image.calls("MPI_Send").completed, "rank {rank}");
    }
    pushes(&systemd)
}

/// The other unit has the port opened, asks there, and finds no collector here. systemd opens no port for what runs already.
fn pushes(systemd: &Systemd) -> Result<(), Failed> {
    for words in [&["stop", "mpiprobe.service"][..], &["enable", "--now", PUSH]] {
        let done = systemd.systemctl(words)?;
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let told = "the collector at http://localhost:4318/v1/metrics does not answer: ";
    let mut said = String::new();
    let is_told = wait_until(|| {
        said = systemd.journal_of(PUSH);
        Ok(said.contains(told))
    });
    is_told.map_err(|_| format!("{said}\n{}", systemd.journal()).into())
}
