//! The language.

use proptest::prelude::*;

use super::{Facts, Field, Filter, FilterError};

fn row() -> Facts {
    Facts::default()
        .text(Field::Function, "MPI_Allreduce")
        .number(Field::Rank, 7)
        .number(Field::Bytes, 2_000_000.0)
        .number(Field::Time, 5e6)
        .maybe_text(Field::Communicator, None)
}

fn keeps(text: &str) -> bool {
    text.parse::<Filter>().unwrap().keeps(&row())
}

fn mistake(text: &str) -> FilterError {
    text.parse::<Filter>().unwrap_err()
}

#[test]
fn conditions_hold_or_not() {
    for text in [
        r#"func ~ "All.*" and bytes > 1MiB and rank in 0..15"#,
        r#"func == "MPI_Allreduce""#,
        r#"not func ~ "^All""#,
        r#"func !~ "Recv""#,
        "rank in (1, 3, 5..7)",
        "rank = 7",
        "rank != 8 and (rank < 3 or rank >= 7)",
        "time >= 5ms and time < 0.006s",
        "bytes == 2MB",
        r#""allred""#,
        "not rank == 8\nand bytes > 0",
    ] {
        assert!(keeps(text), "{text}");
    }
    for text in ["rank > 7", "rank in 8..15", r#"func ~ "^All""#, "time > 1s", r#""recv""#, "rank == 7 and bytes < 1kB"]
    {
        assert!(!keeps(text), "{text}");
    }
}

#[test]
fn and_binds_closer_than_or() {
    assert!(keeps("rank == 7 or rank == 8 and rank == 9"));
    assert!(!keeps("(rank == 7 or rank == 8) and rank == 9"));
}

/// What a row has no field for does not rule it out; what is not known of it does.
#[test]
fn rows_that_do_not_tell_are_kept() {
    assert!(keeps("tag == 3"));
    assert!(keeps("not tag == 3"));
    assert!(keeps("rank == 7 and tag == 3"));
    assert!(!keeps("rank == 8 and tag == 3"));
    assert!(!keeps(r#"comm == "row""#));
}

#[test]
fn mistakes_are_marked_where_they_are() {
    let place = |text: &str| (mistake(text).at, mistake(text).length);
    assert_eq!(place("rank == 1 and byts > 1"), (14, 4));
    assert_eq!(place("rank =="), (7, 1));
    assert_eq!(place("time > 5"), (7, 1));
    assert_eq!(place("bytes > 5ms"), (8, 3));
    assert_eq!(place("bytes > 5qB"), (9, 2));
    assert_eq!(place("(rank == 1"), (10, 1));
    assert_eq!(place("rank == 1 rank == 2"), (10, 4));
    assert_eq!(place(r#"func ~ "(""#), (7, 3));
    assert_eq!(place(r#"func == "abc"#), (8, 4));
    assert_eq!(place("rank ~ \"1\""), (5, 1));
    assert_eq!(place(""), (0, 1));
    let error = mistake("rank == 1 and\nbyts > 1");
    assert_eq!(error.place(), (1, 0));
    assert_eq!(error.to_string(), "column 1: there is no field byts; is it bytes?\n  byts > 1\n  ^^^^");
}

#[test]
fn depth_is_bounded() {
    assert!(mistake(&"(".repeat(100_000)).message.contains("inside each other"));
    assert!(mistake(&"not ".repeat(100_000)).message.contains("inside each other"));
}

proptest! {
    #[test]
    fn no_text_makes_it_fail(text in "\\PC*") {
        if let Err(error) = text.parse::<Filter>() {
            prop_assert!(error.at <= text.chars().count());
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn no_tokens_make_it_fail(words in proptest::collection::vec(prop_oneof![
        Just("rank"), Just("func"), Just("time"), Just("=="), Just("~"), Just("in"), Just(".."), Just("("), Just(")"), Just(","),
        Just("1"), Just("5ms"), Just("\"a\""), Just("and"), Just("or"), Just("not")], 0..12)) {
        if let Ok(filter) = words.join(" ").parse::<Filter>() {
            filter.keeps(&row());
        }
    }
}
