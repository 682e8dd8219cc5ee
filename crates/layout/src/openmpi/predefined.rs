//! Where the predefined datatypes are.

use std::collections::BTreeSet;

use mpiprobe_common::{Layout, layout::Extent};

use super::{
    super::{names::datatype_name, predefined_name},
    DATATYPES, PointerArray, Target,
    check::MAX_DATATYPES,
};

/// More than all copies of them take in a program.
const MAX_COPIES: u64 = 1 << 20;

/// What the library has itself, and what the program has copies of.
pub(super) fn datatypes(layout: &Layout, target: &Target<'_>) -> [Extent; 2] {
    let Some(table) = PointerArray::of(target, DATATYPES) else { return [Extent::default(); 2] };
    let mut seen = BTreeSet::new();
    let named = table.iter().take(MAX_DATATYPES).filter(|handle| {
        // The table begins with the predefined ones: another one that a program gives such a name comes later.
        let name = datatype_name(layout, *handle, target.memory);
        name.and_then(|name| predefined_name(&name)).is_some_and(|name| seen.insert(name))
    });
    let data = &target.blueprint.data.writable;
    let is_own = |handle: &u64| data.iter().any(|range| range.contains(&handle.wrapping_sub(target.bias)));
    let (own, copies): (Vec<u64>, Vec<u64>) = named.partition(is_own);
    let copies = extent(&copies);
    [extent(&own), if copies.last - copies.first < MAX_COPIES { copies } else { Extent::default() }]
}

fn extent(addresses: &[u64]) -> Extent {
    match (addresses.iter().min(), addresses.iter().max()) {
        (Some(&first), Some(&last)) => Extent { first, last },
        _ => Extent::default(),
    }
}
