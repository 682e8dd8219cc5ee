//! The language.

use proptest::prelude::*;

use super::{Facts, Field, Filter, FilterError, Values, complete};

fn row() -> Facts<'static> {
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
fn comments_and_lines_are_blanks() {
    let filter: Filter = "# those that are late\n  rank == 7 # and not 8\n\tand bytes > 1kB".parse().unwrap();
    assert!(filter.keeps(&row()));
    assert_eq!(filter.line(), "rank == 7 and bytes > 1kB");
    assert!(r##"comm != "#2""##.parse::<Filter>().is_ok(), "in quotes it is a letter");
    assert!(Filter::is_blank(" \n # nothing\n"));
    assert!(!Filter::is_blank("rank"));
    assert!(!Filter::is_blank("\"open"));
    assert_eq!(mistake("rank == 1 # one\nand byts > 1").place(), (1, 4));
}

fn known() -> Values {
    let mut values = Values::default();
    for function in ["MPI_Send", "MPI_Recv", "MPI_Allreduce"] {
        values.add(Field::Function, function);
    }
    values.add(Field::Communicator, "row \"2\"");
    values.add(Field::Site, "a+b.c:1 in f");
    values
}

/// The texts that complete what stands before the bar, and from where on.
fn completed(text: &str) -> (usize, Vec<String>) {
    let (before, after) = text.split_once('|').unwrap();
    let completion = complete(&format!("{before}{after}"), before.chars().count(), &known());
    (completion.from, completion.candidates.into_iter().map(|candidate| candidate.text).collect())
}

#[test]
fn what_comes_next_is_offered() {
    let texts = |text: &str| completed(text).1;
    assert_eq!(texts("|").len(), Field::ALL.len() + 1);
    assert_eq!(completed("rank == 1 and by|"), (14, vec!["bytes ".to_owned()]));
    assert_eq!(texts("(no|"), ["not "]);
    assert_eq!(texts("func|"), ["func "]);
    assert_eq!(texts("fu| == 1"), ["func"], "the blank is there already");
    assert_eq!(completed("rank >|"), (5, vec!["> ".to_owned(), ">= ".to_owned()]));
    assert_eq!(texts("func !|"), ["!= ", "!~ "]);
    assert_eq!(texts("func i|"), ["in "]);
    assert_eq!(texts("func == |").len(), 3);
    assert_eq!(completed("func == \"mpi_s|"), (8, vec!["\"MPI_Send\"".to_owned()]));
    assert_eq!(texts("func == allr|"), ["\"MPI_Allreduce\""], "quotes are added");
    assert_eq!(texts("func in (\"MPI_Send\", \"MPI_R|"), ["\"MPI_Recv\""]);
    assert_eq!(texts("site ~ |"), [r#""a\+b\.c:1 in f""#], "a value as a pattern");
    assert_eq!(texts("comm == |"), ["'row \"2\"'"]);
    assert_eq!(completed("time > 5|"), (8, ["ns", "us", "µs", "ms", "s", "min", "h"].map(str::to_owned).to_vec()));
    assert_eq!(completed("time > 5m|"), (8, vec!["ms".to_owned(), "min".to_owned()]));
    assert_eq!(texts("mpi > 5|"), ["%"]);
    assert_eq!(texts("rank in 0..1|"), ["k", "M", "G"]);
    assert_eq!(texts("rank == 1 |"), ["and ", "or "]);
    assert_eq!(texts("(func == \"a\"|"), [" and ", " or ", " ) "]);
    assert_eq!(texts("rank in (1, 2) a|"), ["and "]);
    for nothing in ["rank == |", "$|", "nobody |", "rank in (1 |", "\"re|", "rank == 1 rank |"] {
        assert_eq!(texts(nothing), Vec::<String>::new(), "{nothing}");
    }
}

#[test]
fn depth_is_bounded() {
    assert!(mistake(&"(".repeat(10_000)).message.contains("inside each other"));
    assert!(mistake(&"not ".repeat(4_000)).message.contains("inside each other"));
}

#[test]
fn length_and_patterns_are_bounded() {
    let conditions = |number: usize, condition: &str| vec![condition; number].join(" or ");
    assert!(mistake(&conditions(100_000, "rank == 1")).message.contains("at most"));
    assert!(mistake(&conditions(33, "func ~ \"a\"")).message.contains("patterns"));
    assert!(conditions(1_200, "rank==1").parse::<Filter>().is_ok());
    assert!(conditions(32, "func ~ \"a\"").parse::<Filter>().is_ok());
}

proptest! {
    /// Whatever is offered fits where it is offered.
    #[test]
    fn nothing_cannot_be_completed(text in "\\PC*", cursor in 0usize..40) {
        let completion = complete(&text, cursor, &known());
        prop_assert!(completion.from <= cursor.min(text.chars().count()));
    }

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
