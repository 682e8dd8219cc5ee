//! The keys in `docs/view.md`, from the key table.

use std::fmt::Write as _;

use mpiprobe_view::{BINDINGS, Binding, Section, TIMELINE_BINDINGS, TIMELINE_SECTIONS};

use crate::{generated, workspace::read};

const PAGE: &str = "docs/view.md";

#[test]
fn key_tables_of_the_view_page_are_current() {
    let page = read(PAGE);
    let page = with(&page, "keys", &table(&Section::ALL, BINDINGS));
    generated::check(PAGE, &with(&page, "timeline-keys", &table(TIMELINE_SECTIONS, TIMELINE_BINDINGS)));
}

/// The page with another table in the place of that name.
#[expect(clippy::expect_used, reason = "a helper that cannot go on fails its test")]
fn with(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->\n"));
    let (before, rest) = page.split_once(&begin).expect("the page has a place for the keys");
    let (_, after) = rest.split_once(&end).expect("the place for the keys has an end");
    format!("{before}{begin}{table}{end}{after}")
}

fn table<A>(sections: &[Section], bindings: &[Binding<A>]) -> String {
    let mut table = String::from("| key | |\n|---|---|\n");
    for &section in sections {
        let _ = writeln!(table, "| *{}* | |", section.title());
        for binding in bindings.iter().filter(|binding| binding.section == section) {
            let keys: Vec<String> = binding.shown.split(' ').map(|key| format!("`{key}`")).collect();
            let _ = writeln!(table, "| {} | {} |", keys.join(" "), binding.what);
        }
    }
    table
}
