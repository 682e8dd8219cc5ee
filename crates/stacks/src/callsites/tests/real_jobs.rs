//! Ranks of real jobs, at whatever addresses the kernel gave them.

use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use mpiprobe_discover::{ProcRoot, Process};
use mpiprobe_tests::{Job, Mpi, program};

use super::{
    super::{AddressMap, Layer, ModuleAddress, ModuleId, Modules, Symboliser},
    processor_time,
    program::line_of,
};

/// A function of the program, and those that it calls, may have this much on the stack, in bytes.
const STACK: usize = 64 << 10;

/// The stack of a process that waits in a system call, or soon will.
fn stack(process: &Process) -> Vec<u64> {
    let read = || std::fs::read_to_string(format!("/proc/{}/syscall", process.pid())).unwrap();
    let call = std::iter::repeat_with(read).find(|call| !call.starts_with("running")).unwrap();
    let sp = call.split_whitespace().rev().nth(1).unwrap();
    let sp = u64::from_str_radix(sp.trim_start_matches("0x"), 16).unwrap();
    let mut bytes = vec![0; STACK];
    // The stack may end before.
    let read = process.memory().unwrap().read_at(&mut bytes, sp).unwrap();
    bytes[..read].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Invariant SITES-MERGE.
#[test]
fn ranks_have_their_call_sites_and_layers_in_common() {
    let source = include_str!("../../../../../tests/programs/ring_use_mpi_f08.f90");
    let wanted = format!("ring_use_mpi_f08.f90:{} in ring_use_mpi_f08", line_of(source, "call gate(1)"));
    for mpi in Mpi::ALL {
        let job = Job::builder(mpi, program::RING_USE_MPI_F08).ranks(2).args(["1"]).gates(&["1"]);
        let mut job = job.spawn().unwrap();
        job.wait_for_gate("1").unwrap();
        let (root, mut modules, mut symboliser) =
            (ProcRoot::system().unwrap(), Modules::default(), Symboliser::default());
        let mut sites: Vec<Vec<ModuleAddress>> = Vec::new();
        for pid in job.ranks().unwrap().into_values() {
            let process = Process::open(&root, pid).unwrap();
            let start = processor_time();
            let mut map = AddressMap::of(&process, &mut modules).unwrap();
            let spent = processor_time().saturating_sub(start);
            println!("{mpi}: {} files in {spent:?}", modules.open_files());
            assert!(spent < Duration::from_secs(5), "{spent:?}");
            let located = stack(&process).into_iter().map(|word| map.locate(word, None, &mut modules));
            let located = located.filter(|at| at.module.path().ends_with("/ring_use_mpi_f08"));
            sites.push(located.filter(|at| symboliser.resolve(at).text == wanted).collect());
            let layers: Vec<_> = map.modules().filter(|module| module.layer().is_some()).collect();
            assert!(layers.iter().all(|module| module.layer() == Some(Layer::Fortran)));
            let mut names: Vec<_> = layers.iter().map(|module| module.path().rsplit('/').next().unwrap()).collect();
            names.sort_unstable();
            let expected = mpi.fortran_libraries();
            assert_eq!(names.len(), expected.len(), "{names:?}");
            assert!(expected.iter().all(|library| names.iter().any(|name| name.starts_with(library))), "{names:?}");
            assert!(map.modules().all(|module| !matches!(module.id(), ModuleId::Unread { .. })));
        }
        assert!(!sites[0].is_empty() && sites[0] == sites[1], "{sites:?}");
        job.open_gate("1").unwrap();
        job.wait().unwrap().success().unwrap();
    }
}
