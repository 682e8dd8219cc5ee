use super::*;

fn job() -> Job {
    let rank = |rank, pid| JobRank {
        rank: Some(rank),
        pid,
        namespace_pid: None,
        executable: "/home/a/ring".to_owned(),
        executable_deleted: false,
    };
    Job {
        id: JobKey::for_test("ompi:838205441"),
        kind: LauncherKind::OpenMpi,
        launcher: Some(Launcher { pid: 4709, command: "/usr/bin/mpirun -n 4 ./ring".to_owned() }),
        slurm_job: None,
        allocations: Vec::new(),
        user: User { id: 1000, name: "alice".to_owned() },
        size: Some(4),
        ranks: vec![rank(1, 4712), rank(3, 4711)],
        libraries: vec![JobLibrary {
            path: "/usr/lib/libmpi.so.40".to_owned(),
            deleted: false,
            implementation: Some("Open MPI 4.1.4".into()),
        }],
    }
}

#[test]
fn a_job_in_one_line() {
    let job = job();
    assert_eq!(job.to_string(), "ompi:838205441  ring  2 of 4 ranks  pids 4711-4712  user alice  by mpirun (pid 4709)");
    let mut single = Job { size: None, launcher: None, ..job };
    assert_eq!(single.to_string(), "ompi:838205441  ring  2 processes  pids 4711-4712  user alice");
    single.ranks.truncate(1);
    assert_eq!(single.to_string(), "ompi:838205441  ring  1 process  pid 4712  user alice");
}

#[test]
fn a_job_as_json() {
    assert_eq!(
        serde_json::to_value(job()).unwrap(),
        serde_json::json!({
            "id": "ompi:838205441",
            "kind": "open_mpi",
            "launcher": { "pid": 4709, "command": "/usr/bin/mpirun -n 4 ./ring" },
            "slurm_job": null,
            "allocations": [],
            "user": { "id": 1000, "name": "alice" },
            "size": 4,
            "ranks": [
                { "rank": 1, "pid": 4712, "namespace_pid": null, "executable": "/home/a/ring", "executable_deleted": false },
                { "rank": 3, "pid": 4711, "namespace_pid": null, "executable": "/home/a/ring", "executable_deleted": false },
            ],
            "libraries": [{ "path": "/usr/lib/libmpi.so.40", "deleted": false, "implementation": "Open MPI 4.1.4" }],
        })
    );
}

#[test]
fn runs_of_numbers() {
    assert_eq!(ranges(&[]), "");
    assert_eq!(ranges(&[3, 7, 8, 9, 11]), "3, 7-9, 11");
    assert_eq!(ranges(&[u32::MAX]), "4294967295");
}
