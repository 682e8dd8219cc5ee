//! The keys in `docs/view.md`, from the key table.

use std::fmt::Write as _;

use mpiprobe_view::{BINDINGS, Section};

use crate::{generated, workspace::read};

const PAGE: &str = "docs/view.md";
const BEGIN: &str = "<!-- keys:begin -->\n";
const END: &str = "<!-- keys:end -->\n";

#[test]
fn key_table_of_the_view_page_is_current() {
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the keys");
    let (_, after) = rest.split_once(END).expect("the place for the keys has an end");
    generated::check(PAGE, &format!("{before}{BEGIN}{}{END}{after}", table()));
}

fn table() -> String {
    let mut table = String::from("| key | |\n|---|---|\n");
    for section in Section::ALL {
        let _ = writeln!(table, "| *{}* | |", section.title());
        for binding in BINDINGS.iter().filter(|binding| binding.section == section) {
            let keys: Vec<String> = binding.shown.split(' ').map(|key| format!("`{key}`")).collect();
            let _ = writeln!(table, "| {} | {} |", keys.join(" "), binding.what);
        }
    }
    table
}
