//! Older kernels of Debian, in a machine that qemu plays: whether each takes mpiprobe's programs, in every way of attaching that it has, with
//! and without a trace, and whether they count exactly there.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use super::CampaignError;
use crate::{
    Mpi, Profile,
    compile::{self, cache_directory},
    mpi::find_command,
    profiler::binary,
    program,
};

/// Those that are tried where nothing else is said, and the ways of attaching that each has besides the one that is chosen.
const KERNELS: [(&str, &[&str]); 2] = [("6.1", &["perf-event"]), ("6.12", &["multi", "perf-event"])];
const QEMU: &str = "qemu-system-x86_64";
const BUSYBOX: &str = "/bin/busybox";
/// The packages of what is needed that a test machine does not have.
const NEEDED: &str = "qemu-system-x86 busybox-static";
const ROUNDS: u64 = 300;
/// Of each round: calls, and bytes that each sends.
const CALLS: [(&str, u64); 6] = [
    ("MPI_Sendrecv", 4),
    ("MPI_Irecv", 0),
    ("MPI_Iprobe", 0),
    ("MPI_Isend", 4),
    ("MPI_Waitall", 0),
    ("MPI_Barrier", 0),
];
/// Whoever observes only few functions is gone soon: kernels take a tenth of a second for the end of a probe that is a perf event.
const FUNCTIONS: &str = "Sendrecv,Irecv,Iprobe,Isend,Waitall,Barrier";
/// What the machine does: `observe NAME ARGUMENT...` prints the profile on a line behind that name.
const INIT: &str = r#"#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing
observe() {
    name=$1; shift
    # What the one before has said is not to be taken for this one's.
    rm -f /tmp/go /tmp/out /tmp/said
    alone ROUNDS /tmp/go > /tmp/out 2>&1 &
    alone=$!
    until grep -q ready /tmp/out 2> /dev/null; do sleep 0.1; done
    mpiprobe "$@" --json --functions FUNCTIONS --pid $alone > /tmp/profile 2> /tmp/said &
    observer=$!
    until grep -q observing /tmp/said 2> /dev/null || ! kill -0 $observer; do sleep 0.1; done
    touch /tmp/go
    wait $alone
    wait $observer
    status=$?
    echo
    echo "status of $name: $status"
    cat /tmp/said
    echo
    echo "profile of $name: $(tail -n 1 /tmp/profile)"
}
"#;

/// `soak kernels [VERSION...]`.
pub fn main(versions: &[String]) -> ExitCode {
    let chosen =
        KERNELS.into_iter().filter(|(known, _)| versions.is_empty() || versions.iter().any(|one| one == known));
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() || chosen.len() < versions.len() {
        eprintln!("kernels: there are {}", KERNELS.map(|(version, _)| version).join(", "));
        return ExitCode::from(2);
    }
    let mut failed = false;
    for (version, ways) in chosen {
        match boot(version, ways) {
            Ok(tried) => println!("{version}: exact counts {tried}"),
            Err(error) => {
                eprintln!("{version}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn wrong(what: impl Into<String>) -> CampaignError {
    CampaignError::wrong(0, what)
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> CampaignError {
    let what = what.to_owned();
    move |error| wrong(format!("{what}: {error}"))
}

/// In which ways it was observed.
fn boot(version: &str, ways: &[&str]) -> Result<String, CampaignError> {
    if find_command(QEMU).is_none() || !Path::new(BUSYBOX).exists() {
        return Err(wrong(format!("needs more: apt-get install --no-install-recommends {NEEDED}")));
    }
    let directory = tempfile::tempdir().map_err(failed("a directory"))?;
    let mut observed: Vec<(String, String)> = Vec::new();
    for way in [""].iter().chain(ways) {
        let attach = if way.is_empty() { String::new() } else { format!(" --attach {way}") };
        observed.push((format!("traffic{attach}"), format!("--traffic{attach}")));
        observed.push((format!("trace{attach}"), format!("trace -o /tmp/trace{}{attach}", observed.len())));
    }
    let commands: Vec<String> =
        observed.iter().map(|(name, arguments)| format!("observe '{name}' {arguments}\n")).collect();
    let init = INIT.replace("ROUNDS", &ROUNDS.to_string()).replace("FUNCTIONS", FUNCTIONS)
        + &commands.concat()
        + "poweroff -f\n";
    let image = directory.path().join("initrd");
    make_image(&directory.path().join("root"), &init, &image)?;
    let output = Command::new(QEMU)
        .args(["-accel", "tcg", "-m", "3000", "-smp", "2", "-nographic", "-no-reboot"])
        .args(["-append", "console=ttyS0 panic=-1 quiet", "-kernel"])
        .arg(kernel(version)?)
        .arg("-initrd")
        .arg(&image)
        .stdin(Stdio::null())
        .output()
        .map_err(failed(QEMU))?;
    let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    for (name, _) in &observed {
        check(&said, name).map_err(|what| wrong(format!("{name}: {what}\n{}", without_profiles(&said))))?;
    }
    let names: Vec<&str> = observed.iter().map(|(name, _)| name.as_str()).collect();
    Ok(names.join(", "))
}

fn without_profiles(said: &str) -> String {
    said.lines().filter(|line| !line.starts_with("profile of ")).collect::<Vec<_>>().join("\n")
}

/// Whether the profile behind a name has what the program has done.
fn check(said: &str, name: &str) -> Result<(), String> {
    if !said.lines().any(|line| line == format!("status of {name}: 0")) {
        return Err("mpiprobe has failed".into());
    }
    let prefix = format!("profile of {name}: ");
    let profile = said.lines().find_map(|line| line.strip_prefix(&prefix)).ok_or("no profile")?;
    let profile: Profile = serde_json::from_str(profile).map_err(|error| error.to_string())?;
    let rank = profile.ranks.first().ok_or("no process")?;
    let flows = &rank.traffic.as_ref().ok_or("no traffic")?.flows;
    for (function, bytes) in CALLS {
        let calls = rank.completed().get(function).copied().unwrap_or_default();
        let sent: u64 = flows.iter().filter(|flow| flow.function == function).map(|flow| flow.sent_bytes).sum();
        if (calls, sent) != (ROUNDS, ROUNDS * bytes) {
            return Err(format!("{function}: {calls} calls, {sent} bytes sent"));
        }
    }
    if profile.complete { Ok(()) } else { Err(format!("not complete: {:?}", profile.lost())) }
}

/// The newest kernel of a version that Debian has, unpacked.
fn kernel(version: &str) -> Result<PathBuf, CampaignError> {
    const SCRIPT: &str = r#"set -e; cd "$1"
        name=$(apt-cache search --names-only "^linux-image-$2\..*-cloud-amd64-unsigned\$" | cut -d ' ' -f 1 | sort -V | tail -n 1)
        [ -n "$name" ] || { echo "Debian has no linux-image-$2*-cloud-amd64-unsigned here: apt-get update?" >&2; exit 1; }
        [ -d "$name" ] || { apt-get download "$name" >&2; dpkg-deb -x "$name"_*.deb "$name".new; rm "$name"_*.deb; mv "$name".new "$name"; }
        echo "$1/$name"/boot/vmlinuz-*"#;
    let directory = cache_directory().join("kernels");
    fs::create_dir_all(&directory).map_err(failed("a directory"))?;
    let output = Command::new("sh").args(["-c", SCRIPT, "sh"]).arg(&directory).arg(version).output();
    let output = output.map_err(failed("sh"))?;
    if !output.status.success() {
        return Err(wrong(format!("no kernel: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// A root with mpiprobe, the program and what they load, as the kernel unpacks it into memory.
fn make_image(root: &Path, init: &str, image: &Path) -> Result<(), CampaignError> {
    const SCRIPT: &str = r#"set -e; root=$1; image=$2; shift 2
        mkdir -p "$root"/bin "$root"/proc "$root"/sys "$root"/dev "$root"/tmp "$root"/run "$root"/etc
        cp /bin/busybox "$root"/bin; for name in $(busybox --list); do [ "$name" = busybox ] || ln -s busybox "$root"/bin/"$name"; done
        strip -o "$root"/bin/mpiprobe "$1"; cp "$2" "$root"/bin/alone
        for file in "$1" "$2"; do ldd "$file" | grep -o '/[^ ]*'; done | sort -u | while read -r library; do
            mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"; done
        echo 'root:x:0:0:root:/:/bin/sh' > "$root"/etc/passwd; echo '127.0.0.1 localhost' > "$root"/etc/hosts
        cat > "$root"/init; chmod +x "$root"/init
        cd "$root"; find . | busybox cpio -o -H newc > "$image" 2> /dev/null"#;
    let alone = compile::executable(Mpi::Mpich, program::ALONE).map_err(|error| wrong(error.to_string()))?;
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).args([root, image]).arg(binary()?).arg(alone);
    let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(failed("sh"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(init.as_bytes()).map_err(failed("writing what the machine does"))?;
    }
    let output = child.wait_with_output().map_err(failed("sh"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(wrong(format!("no image: {}", String::from_utf8_lossy(&output.stderr))))
}
