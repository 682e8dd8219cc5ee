//! The kernel's own code in every process.

use crate::callsites::{modules::Modules, symbols::Symbols, vdso};

#[test]
fn its_functions_have_names_and_rules() {
    let module = Modules::default().memory(vdso::NAME);
    let symbols = Symbols::read_dynamic(module.image.as_ref().unwrap());
    let (_, range) = symbols.functions().find(|(name, _)| name.ends_with(b"clock_gettime")).unwrap();
    assert!(module.frame_rules(range.start).is_some());
    assert_eq!(module.offset_of(range.start), range.start);
}
