use super::*;
use crate::fake::FakeProc;

fn ancestry(proc: &FakeProc, pid: u32) -> Ancestry {
    let root = proc.root();
    let stat = Process::open(&root, pid).unwrap().stat().unwrap();
    Genealogy::default().ancestry(&root, stat.parent, stat.start_ticks)
}

#[test]
fn names_of_launchers() {
    for name in ["mpirun", "mpiexec.hydra", "mpirun.openmpi", "hydra_pmi_proxy", "hydra_bstrap_pr", "slurmstepd"] {
        assert!(is_launcher(name.as_bytes()), "{name}");
    }
    for name in ["mpirunner", "ring", "prun", "", "hydra", "mpi"] {
        assert!(!is_launcher(name.as_bytes()), "{name}");
    }
}

#[test]
fn the_outermost_of_a_chain_of_launchers_started_the_job() {
    let proc = FakeProc::new();
    proc.process(10, 1, "bash", &["bash"]);
    proc.process(11, 10, "mpiexec", &["mpiexec", "-n", "2", "./ring"]);
    proc.process(12, 11, "hydra_pmi_proxy", &["/usr/bin/hydra_pmi_proxy", "--control-port", "vm:5", "--pgid", "2"]);
    proc.process(13, 12, "wrapper.sh", &["sh", "wrapper.sh"]);
    proc.process(14, 13, "ring", &["./ring"]);
    let found = ancestry(&proc, 14);
    assert_eq!(found.launcher, Some(Launcher { pid: 11, command: "mpiexec -n 2 ./ring".to_owned() }));
    assert_eq!(found.launcher.unwrap().program(), "mpiexec");
    assert_eq!(found.nearest, Some(12));
    assert!(found.under_hydra);
    assert_eq!(found.hydra.unwrap().to_string(), "hydra:vm:5/2");
}

#[test]
fn a_rank_that_calls_mpirun_is_where_the_walk_ends() {
    let proc = FakeProc::new();
    proc.process(11, 1, "mpirun", &["mpirun", "outer"]);
    proc.process(12, 11, "outer", &["outer"]);
    proc.process(13, 12, "mpirun", &["mpirun", "inner"]);
    proc.process(14, 13, "inner", &["inner"]);
    let found = ancestry(&proc, 14);
    assert_eq!(found.launcher.unwrap().command, "mpirun inner");
    assert!(!found.under_hydra);
}

#[test]
fn a_parent_younger_than_its_child_is_a_stranger() {
    let proc = FakeProc::new();
    proc.process(20, 1, "mpirun", &["mpirun"]);
    proc.process(14, 20, "inner", &["inner"]);
    assert_eq!(ancestry(&proc, 14).launcher, None);
}

#[test]
fn a_circle_of_parents_ends() {
    let proc = FakeProc::new();
    proc.process_started_at(14, 15, "a", &["a"], 7);
    proc.process_started_at(15, 14, "b", &["b"], 7);
    assert_eq!(ancestry(&proc, 14).launcher, None);
}

#[test]
fn a_proxy_that_calls_itself_anything_is_no_name() {
    let proc = FakeProc::new();
    proc.process(12, 1, "hydra_pmi_proxy", &["hydra_pmi_proxy", "--control-port", "a b\u{1b}[2J"]);
    proc.process(14, 12, "ring", &["ring"]);
    assert_eq!(ancestry(&proc, 14).hydra, None);
}
