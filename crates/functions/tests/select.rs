//! Selections of functions, as users type them.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use mpiprobe_functions::{FunctionId, FunctionSet, Group, SelectError, by_name_ignoring_case, select};
use proptest::prelude::*;

fn names(selection: &str) -> String {
    let set = select(selection).unwrap_or_else(|error| panic!("{selection}: {error}"));
    set.iter().map(|id| id.function().short_name()).collect::<Vec<_>>().join(" ")
}

fn message(selection: &str) -> String {
    select(selection).unwrap_err().to_string()
}

#[test]
fn keywords_groups_and_names_add() {
    assert_eq!(select("all"), Ok(FunctionSet::all()));
    assert_eq!(select("DEFAULT"), Ok(FunctionSet::default_functions()));
    assert_eq!(select("p2p"), Ok(FunctionSet::of_group(Group::PointToPoint)));
    assert_eq!(select("Point-to-Point"), Ok(FunctionSet::of_group(Group::PointToPoint)));
    assert_eq!(select("init/finalize"), Ok(FunctionSet::of_group(Group::InitFinalize)));
    assert_eq!(names("sync"), "Barrier Barrier_init Ibarrier");
    assert_eq!(names("mpi_wait, WAITANY ,PMPI_Waitall"), "Wait Waitall Waitany");
    assert_eq!(names("init"), names("Init/Finalize"));
    assert_eq!(names("MPI_Init"), "Init");
}

#[test]
fn a_name_stands_for_its_large_count_variant_too() {
    assert_eq!(names("Send"), "Send Send_c");
    assert_eq!(names("Send,-Send_c"), "Send");
    assert_eq!(names("Send_c"), "Send_c");
    assert_eq!(names("sync,Send,-send"), names("sync"));
}

#[test]
fn patterns_are_those_of_a_shell() {
    assert_eq!(names("Isend*"), "Isend Isend_c Isendrecv Isendrecv_c Isendrecv_replace Isendrecv_replace_c");
    assert_eq!(names("mpi_win_flush*"), "Win_flush Win_flush_all Win_flush_local Win_flush_local_all");
    assert_eq!(names("?send"), "Bsend Isend Rsend Ssend");
    assert_eq!(names("MPI_*"), names("all"));
    assert_eq!(select("MPI*"), Ok(FunctionSet::all()));
    assert_eq!(names("file_open,File_c*,-*_c2f,-*call*,-*_create_*"), "File_close File_open");
}

#[test]
fn items_apply_from_left_to_right() {
    assert_eq!(names("sync,-Ibarrier"), "Barrier Barrier_init");
    assert_eq!(names("-sync,sync"), names("default"));
    assert_eq!(names("sync,-sync,Wait"), "Wait");
    assert_eq!(names("sync, - Ibarrier"), "Barrier Barrier_init");
}

#[test]
fn a_selection_that_begins_by_removing_starts_from_the_default() {
    let mut expected = FunctionSet::default_functions();
    expected.remove(by_name_ignoring_case("Iprobe").unwrap());
    assert_eq!(select("-Iprobe"), Ok(expected));
    assert_eq!(select(" -Iprobe"), Ok(expected));
    assert!(select("-p2p").unwrap().iter().all(|id| id.function().group != Group::PointToPoint));
}

#[test]
fn the_default_is_what_communicates_waits_or_does_io() {
    let set = select("default").unwrap();
    let has = |name| set.contains(by_name_ignoring_case(name).unwrap());
    assert!(["Send", "Send_c", "Bcast", "Waitall", "Test", "Barrier", "Put", "File_open", "Init"].into_iter().all(has));
    assert!(!["Comm_rank", "Wtime", "Comm_dup", "Type_commit", "T_cvar_read", "Info_set"].into_iter().any(has));
}

#[test]
fn errors_name_the_item_and_what_was_meant() {
    assert_eq!(select("Sned"), Err(SelectError::Unknown { item: "Sned", nearest: Some("MPI_Send") }));
    assert_eq!(
        message("p2p,Sned"),
        "`Sned` is neither an MPI function nor a group of functions: did you mean `MPI_Send`?"
    );
    assert_eq!(select("colll"), Err(SelectError::Unknown { item: "colll", nearest: Some("coll") }));
    assert_eq!(select("deflaut"), Err(SelectError::Unknown { item: "deflaut", nearest: Some("default") }));
    assert_eq!(
        select("point-to-pont"),
        Err(SelectError::Unknown { item: "point-to-pont", nearest: Some("point-to-point") })
    );
    assert_eq!(
        message("-gethostbyname"),
        "`gethostbyname` is neither an MPI function nor a group of functions: \
         groups are p2p coll completion sync rma io init comm type query tool other"
    );
    assert_eq!(message("Foo*"), "no MPI function matches the pattern `Foo*`");
    assert_eq!(message("sync,-sync"), "`sync,-sync` selects no function: what it adds it takes out again");
    for empty in ["", " ", ",", "sync,", "sync,,coll", "-", "sync,-"] {
        assert_eq!(select(empty), Err(SelectError::EmptyItem), "{empty:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_selection_panics(selection in "\\PC*") {
        let _ = select(&selection).map_err(|error| error.to_string());
    }

    #[test]
    fn nothing_made_of_items_panics(
        items in prop::collection::vec("-?(all|default|p2p|io|Send|Wait[a-z]{0,3}|\\*|[*?_a-zA-Z]{0,9})", 0..8),
    ) {
        let selection = items.join(",");
        match select(&selection) {
            Ok(set) => prop_assert!(!set.is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn all_but_one_excludes_that_one(index in 0..mpiprobe_functions::COUNT) {
        let id = FunctionId::from_index(u16::try_from(index).unwrap()).unwrap();
        let selection = format!("all,-{}", id.function().name);
        let set = select(&selection).map(|set| (set.contains(id), set.len()));
        let removed = if id.function().large_count_variant().is_some() { 2 } else { 1 };
        prop_assert!(set == Ok((false, mpiprobe_functions::COUNT - removed)));
    }

    #[test]
    fn sets_hold_what_was_put_into_them(indices in prop::collection::btree_set(0..mpiprobe_functions::COUNT, 0..40)) {
        let ids: Vec<_> = indices.iter().filter_map(|&i| FunctionId::from_index(u16::try_from(i).ok()?)).collect();
        let mut set: FunctionSet = ids.iter().copied().collect();
        prop_assert_eq!(set.len(), ids.len());
        prop_assert_eq!(&set.iter().collect::<Vec<_>>(), &ids);
        for &id in &ids {
            set.remove(id);
        }
        prop_assert_eq!(set, FunctionSet::EMPTY);
    }
}
