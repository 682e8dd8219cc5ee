//! The HTML report, and the page of a comparison, in a real browser without a screen: what it shows is what the JSON says, what can be done with it works, and
//! nothing that others have named becomes markup. What happens in the browser is in `crates/report/web/test/`.
//!
//! Invariant TEXT-IS-TEXT.

mod made;
mod pictures;

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::{Requirement, browser::Browser, requirement, synthetic::Synthetic};

use made::Made;

fn main() {
    let tests = vec![
        trial("figures", || check("figures", Made::recording("four", Synthetic::HYBRID, 24))),
        trial("figures_of_one_moment", || check("figures", Made::moment("one", Synthetic::HYBRID))),
        trial("figures_without_traffic", || {
            check("figures", Made::moment("untold", Synthetic { traffic: false, ..Synthetic::SMALL }))
        }),
        trial("nobody", || check("figures", Made::moment("nobody", Synthetic::EMPTY))),
        trial("use", || check("use", Made::recording("used", Synthetic::HYBRID, 24))),
        trial("hostile", || check("hostile", Made::hostile("hostile"))),
        trial("comparison", || check("comparison", Made::comparison("compared", false))),
        trial("comparison_of_sizes", || check("comparison", Made::scaling("scaled"))),
        trial("hostile_comparison", || check("comparison", Made::comparison("hostile_compared", true))),
        trial("source", || check("source", Made::with_source("source"))),
        trial("pictures_of_the_documents", pictures::current),
        trial("large", || check("large", Made::long("large", Synthetic::LARGE, 600))),
    ];
    mpiprobe_tests::run(Arguments::from_args(), tests);
}

fn check(script: &str, made: Result<Made, Failed>) -> Result<(), Failed> {
    let made = made?;
    Browser::check(script, &made.page, &made.json)
}

fn trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let needs = [Requirement::Page, Requirement::Command("node"), Requirement::Command("chromium")];
    requirement::trial(name, &needs, test)
}
