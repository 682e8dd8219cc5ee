use proptest::prelude::*;

use super::*;

fn info(variables: &[(&'static str, &'static str)], under_hydra: bool) -> RankInfo {
    RankInfo::from_environment(&variables.iter().copied().collect(), under_hydra)
}

fn numbers(info: &RankInfo) -> [Option<u32>; 4] {
    [info.rank, info.size, info.local_rank, info.local_size]
}

const OPEN_MPI: [(&str, &str); 6] = [
    ("PMIX_NAMESPACE", "838205441"),
    ("PMIX_RANK", "3"),
    ("OMPI_COMM_WORLD_RANK", "3"),
    ("OMPI_COMM_WORLD_SIZE", "8"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
];

const HYDRA: [(&str, &str); 4] =
    [("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "2")];

#[test]
fn open_mpi() {
    let info = info(&OPEN_MPI, false);
    assert_eq!(info.launcher, LauncherKind::OpenMpi);
    assert_eq!(numbers(&info), [Some(3), Some(8), Some(1), Some(2)]);
}

#[test]
fn hydra_of_mpich_and_of_intel() {
    let mpich = info(&HYDRA, true);
    assert_eq!(mpich.launcher, LauncherKind::Hydra);
    assert_eq!(numbers(&mpich), [Some(1), Some(4), Some(0), Some(2)]);
    let intel = info(&[&HYDRA[..], &[("I_MPI_HYDRA_UUID", "ab12")]].concat(), true);
    assert_eq!(intel.launcher, LauncherKind::IntelMpi);
    assert_eq!(numbers(&intel), numbers(&mpich));
}

#[test]
fn the_batch_scripts_task_is_not_the_rank() {
    let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64"), ("SLURM_LOCALID", "0"), ("SLURM_JOB_ID", "17")];
    let info = info(&[&batch[..], &OPEN_MPI].concat(), false);
    assert_eq!(info.launcher, LauncherKind::OpenMpi);
    assert_eq!(numbers(&info), [Some(3), Some(8), Some(1), Some(2)]);
}

#[test]
fn slurm_with_each_of_its_interfaces() {
    let step = [
        ("SLURM_JOB_ID", "17"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "5"),
        ("SLURM_STEP_NUM_TASKS", "6"),
        ("SLURM_NTASKS", "64"),
        ("SLURM_LOCALID", "1"),
    ];
    let pmix = [("PMIX_NAMESPACE", "slurm.pmix.17.0"), ("PMIX_RANK", "5")];
    let pmi_2 = [("PMI_RANK", "5"), ("PMI_SIZE", "6")];
    for variables in [step.to_vec(), [&step[..], &pmix].concat(), [&step[..], &pmi_2].concat()] {
        let info = info(&variables, false);
        assert_eq!(info.launcher, LauncherKind::Slurm, "{variables:?}");
        assert_eq!(numbers(&info), [Some(5), Some(6), Some(1), None], "{variables:?}");
    }
}

#[test]
fn a_pmix_server_in_a_slurm_allocation_has_no_size() {
    let variables =
        [("PMIX_NAMESPACE", "prterun-n1-77@1"), ("PMIX_RANK", "0"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64")];
    let info = info(&variables, false);
    assert_eq!(info.launcher, LauncherKind::Pmix);
    assert_eq!(numbers(&info), [Some(0), None, None, None]);
}

#[test]
fn mpich_started_from_a_rank_of_open_mpi() {
    let both = [&OPEN_MPI[..], &HYDRA].concat();
    assert_eq!(numbers(&info(&both, true)), [Some(1), Some(4), Some(0), Some(2)]);
    assert_eq!(numbers(&info(&both, false)), [Some(3), Some(8), Some(1), Some(2)]);
}

#[test]
fn cray_and_mvapich() {
    let pals = info(&[("PALS_RANKID", "2"), ("PALS_LOCAL_RANKID", "0"), ("PMI_RANK", "2"), ("PMI_SIZE", "3")], false);
    assert_eq!(pals.launcher, LauncherKind::Pals);
    assert_eq!(numbers(&pals), [Some(2), Some(3), Some(0), None]);
    let mvapich = info(&[("MV2_COMM_WORLD_RANK", "2"), ("MV2_COMM_WORLD_SIZE", "3"), ("PMI_RANK", "2")], false);
    assert_eq!(mvapich.launcher, LauncherKind::Mvapich);
    assert_eq!(numbers(&mvapich), [Some(2), Some(3), None, None]);
}

#[test]
fn nobody_started_it() {
    let info = info(&[("HOME", "/root")], false);
    assert_eq!(info.launcher, LauncherKind::None);
    assert_eq!(numbers(&info), [None; 4]);
}

#[test]
fn malformed_and_contradicting_values_are_unknown() {
    for bad in ["", "-1", "+1", " 1", "1x", "99999999999", "4294967295", "٣"] {
        assert_eq!(numbers(&info(&[("PMI_RANK", bad), ("PMI_SIZE", "4")], true)), [None; 4], "{bad:?}");
    }
    assert_eq!(numbers(&info(&[("PMI_RANK", "1"), ("PMI_SIZE", "four")], true)), [Some(1), None, None, None]);
    assert_eq!(numbers(&info(&[("PMI_RANK", "4"), ("PMI_SIZE", "4")], true)), [None; 4]);
}

proptest! {
    #[test]
    fn any_environment_is_survived(bytes: Vec<u8>, rank in "\\PC{0,12}", size in "[0-9]{0,12}", hydra: bool) {
        let mut environment = format!("PMI_RANK={rank}\0PMI_SIZE={size}\0").into_bytes();
        environment.extend(bytes);
        let info = RankInfo::from_environment(&Environment::new(environment, false), hydra);
        if let (Some(rank), Some(size)) = (info.rank, info.size) {
            prop_assert!(rank < size);
        }
    }
}
