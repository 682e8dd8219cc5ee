//! Whoever cannot wait for names gets places without them, and the names the next time.
//!
//! Invariant NAMES-COME-LATER.

use std::time::{Duration, Instant};

use super::{
    super::{Modules, Naming},
    program::Build,
};

#[test]
fn names_that_are_not_waited_for_come_later() {
    let build =
        Build::new("gcc", ("prog.c", "void mark(void);\nint main(void) {\n    mark();\n    return 0;\n}\n"), &["-g"]);
    let waiting = build.start();
    let at = waiting.locate(&mut Modules::default());
    let mut naming = Naming::default();
    let text = naming.resolve(&at, Instant::now()).text.clone();
    // Not by now, or it was very quick.
    assert!([format!("prog+{:#x}", at.offset).as_str(), "prog.c:3 in main"].contains(&text.as_str()), "{text}");
    // Asked for by others meanwhile.
    let until = Instant::now() + Duration::from_hours(1);
    assert_eq!(naming.resolve(&at, until).text, "prog.c:3 in main");
    assert_eq!(naming.pending(), 0);
}
