//! The truth library and the harness, checked against what the programs' sources say they call.
fn main() {
    use mpiprobe_tests::{Job, Mpi, program};
    for mpi in Mpi::ALL {
        let start = std::time::Instant::now();
        let mut job =
            Job::builder(mpi, program::RING).args(["20"]).gates(&["start", "1", "3"]).truth(true).spawn().unwrap();
        job.wait_for_gate("start").unwrap();
        println!("{:?}", job.ranks().unwrap());
        job.open_gate("start").unwrap();
        job.wait_for_gate("1").unwrap();
        println!("{:?}", job.snapshot().unwrap().rank(2).unwrap().completed());
        job.open_gate("1").unwrap();
        job.wait_for_gate("3").unwrap();
        job.open_gate("3").unwrap();
        let f = job.wait().unwrap().success().unwrap();
        println!("{f:?} {:?}", job.snapshot().unwrap().rank(2).unwrap());
        println!("{:?}", start.elapsed());
    }
}
