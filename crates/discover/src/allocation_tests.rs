use proptest::prelude::*;

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn shown(cgroups: &str, variables: &[(&'static str, &'static str)]) -> Vec<String> {
    let all = Allocation::of_process(cgroups.as_bytes(), &variables.iter().copied().collect());
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn cgroups_of_all_managers() {
    for (path, expected) in [
        // Slurm 22.05 and before: cgroup v1, and with several slurmd on a node.
        ("/slurm/uid_1000/job_3/step_0/task_1", Some("slurm:3.0")),
        ("/slurm_n1/uid_0/job_3/step_batch", Some("slurm:3.batch")),
        ("/slurm/uid_0/job_3", Some("slurm:3")),
        // cgroup v2.
        ("/system.slice/slurmstepd.scope/job_1/step_0/user/task_special", Some("slurm:1.0")),
        ("/system.slice/n1_slurmstepd.scope/job_1/step_extern/user/task_0", Some("slurm:1.extern")),
        // Slurm 26.05.
        ("/system.slice/n1_slurmstepd.scope/s4KHM82VCE5700/step_0/user/task_special", Some("slurm:s4KHM82VCE5700.0")),
        ("/pbs_jobs.service/jobid/123.server", Some("pbs:123.server")),
        ("/pbspro.slice/pbspro-12[3].server.slice", Some("pbs:12[3].server")),
        ("/torque/88.host", Some("pbs:88.host")),
        ("/lsf/cluster1/job.4711.2711.1600000000", Some("lsf:4711")),
        ("/kubepods/burstable/pod11-22/ID", Some("kubernetes:11-22.0123456789ab")),
        ("/kubepods/pod11-22/ID", Some("kubernetes:11-22.0123456789ab")),
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11_22.slice/cri-containerd-ID.scope",
            Some("kubernetes:11_22.0123456789ab"),
        ),
        ("/kubepods.slice/kubepods-pod11_22.slice/crio-ID.scope", Some("kubernetes:11_22.0123456789ab")),
        ("/docker/ID", Some("container:0123456789ab")),
        ("/system.slice/docker-ID.scope/init", Some("container:0123456789ab")),
        ("/machine.slice/libpod-ID.scope/container", Some("container:0123456789ab")),
        ("/libpod_parent/libpod-ID", Some("container:0123456789ab")),
        ("/user.slice/user-7.slice/user@7.service/user.slice/libpod-ID.scope", Some("container:0123456789ab?")),
        ("/system.slice/run-u7.service", Some("systemd:run-u7.service")),
        ("/system.slice/my-job.scope", Some("systemd:my-job.scope")),
        ("/user.slice/user-7.slice/user@7.service/app.slice/run-r1.scope", Some("systemd:run-r1.scope?")),
        ("/user.slice/user-7.slice/session-3.scope", None),
        ("/init.scope", None),
        ("/system.slice/ssh.service", None),
        ("/", None),
    ] {
        let path = path.replace("ID", ID);
        for line in [format!("0::{path}\n"), format!("4:memory:/\n5:freezer:{path}\n0::/\n")] {
            assert_eq!(shown(&line, &[]).first().map(String::as_str), expected, "{line}");
        }
    }
}

#[test]
fn names_that_users_have_made_are_no_evidence() {
    // Below what systemd leaves to a user, anybody is a Slurm job.
    let own = "0::/user.slice/user-7.slice/user@7.service/slurmstepd.scope/job_1/step_0\n";
    assert_eq!(shown(own, &[]), ["slurm:1.0?"]);
    // And in a container.
    let inside = format!("0::/docker/{ID}/system.slice/slurmstepd.scope/job_1/step_0\n");
    assert_eq!(shown(&inside, &[]), ["container:0123456789ab"]);
    // The manager's own word counts before it, in whatever hierarchy it is.
    let both = format!("{own}5:freezer:/slurm/uid_7/job_2/step_3\n");
    assert_eq!(shown(&both, &[]), ["slurm:2.3"]);
    // A batch system's word counts before that of systemd, and a step before the whole job.
    let several =
        "1:name=systemd:/system.slice/run-u1.scope\n2:cpu:/slurm/uid_7/job_2\n3:pids:/slurm/uid_7/job_2/step_3\n";
    assert_eq!(shown(several, &[]), ["slurm:2.3"]);
}

#[test]
fn the_environment_is_a_hint() {
    let slurm = [("SLURM_JOB_ID", "99"), ("SLURM_STEP_ID", "4294967291")];
    assert_eq!(shown("0::/\n", &slurm), ["slurm:99.batch?"]);
    // Contradicted by evidence.
    assert_eq!(shown("0::/system.slice/slurmstepd.scope/job_1/step_0\n", &slurm), ["slurm:1.0"]);
    // Of something else.
    assert_eq!(shown(&format!("0::/docker/{ID}\n"), &slurm), ["container:0123456789ab", "slurm:99.batch?"]);
    assert_eq!(shown("", &[("PBS_JOBID", "5.host"), ("LSB_JOBID", "6")]), ["pbs:5.host?", "lsf:6?"]);
    // The number of a job whose cgroup has another name: only if it says that it is that job.
    let named = "0::/system.slice/slurmstepd.scope/s4KHM82VCE5700/step_0\n";
    let number = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0"), ("SLURM_JOB_SLUID", "s4KHM82VCE5700")];
    assert_eq!(shown(named, &number), ["slurm:s4KHM82VCE5700.0", "slurm:7.0?"]);
    assert_eq!(shown(named, &slurm), ["slurm:s4KHM82VCE5700.0"]);
    assert_eq!(shown("", &[("SLURM_JOB_ID", "a b"), ("PBS_JOBID", "\u{1b}[2J")]), [""; 0]);
}

#[test]
fn what_people_type() {
    let one = |path: &str| Allocation::of_path(&path.replace("ID", ID)).unwrap();
    let slurm = one("/slurm/uid_0/job_3/step_0");
    for text in ["3", "3.0", "slurm:3", "slurm:3.0"] {
        assert!(slurm.is_meant_by(text), "{text}");
    }
    for text in ["", "slurm", "slurm:", "30", "3.", "3.1", "pbs:3", ".0"] {
        assert!(!slurm.is_meant_by(text), "{text}");
    }
    let pbs = one("/pbs_jobs/jobid/123.server");
    assert!(pbs.is_meant_by("123") && pbs.is_meant_by("123.server") && !pbs.is_meant_by("12"));
    let docker = one("/docker/ID");
    assert!(docker.is_meant_by(ID) && docker.is_meant_by(&ID[..12]) && !docker.is_meant_by(&ID[..11]));
    let pod = one("/kubepods/pod11-22/ID");
    assert!(pod.is_meant_by("11-22") && pod.is_meant_by(&ID[..16]) && !pod.is_meant_by("11"));
}

/// Invariant PRINTABLE.
#[test]
fn hostile_names_are_none() {
    for hostile in [
        "/slurm/uid_0/job_\u{1b}[2J/step_0".to_owned(),
        "/slurm/uid_0/job_99999999999/step_0".to_owned(),
        "/slurm/uid_0/job_/step_0".to_owned(),
        "/slurm/job_3/step_0".to_owned(),
        "/pbs_jobs/jobid/1 2".to_owned(),
        "/system.slice/a\u{202e}b.scope".to_owned(),
        format!("/torque/1{}", "2".repeat(200)),
        format!("{}/slurm/uid_0/job_3/step_0", "/x".repeat(MOST_COMPONENTS)),
    ] {
        assert_eq!(shown(&format!("0::{hostile}\n"), &[]), [""; 0], "{hostile:?}");
    }
    // A step that is no name is none; the job is one all the same.
    assert_eq!(shown("0::/slurm/uid_0/job_3/step_\u{7}\n", &[]), ["slurm:3"]);
}

proptest! {
    /// Invariant BOUNDED-READS.
    #[test]
    fn never_panics(content: Vec<u8>, path in "[a-z/:.0-9_-]{0,300}") {
        let none = Environment::default();
        prop_assert!(Allocation::of_process(&content, &none).len() <= 1);
        for allocation in Allocation::of_process(format!("0::/slurm/uid_0/{path}\n").as_bytes(), &none) {
            prop_assert!(allocation.id.len() <= 128 && allocation.id.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
