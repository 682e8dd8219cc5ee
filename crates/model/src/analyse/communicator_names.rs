//! What communicators are called.

use std::collections::BTreeMap;

use mpiprobe_common::flow::communicator_kind;

use super::{
    communicators::{Group, Recognised},
    names,
};

/// A communicator's name, and where it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    pub(super) text: String,
    /// The program has chosen it.
    pub(super) is_given: bool,
    /// Place of the communicator that it was made from.
    pub(super) parent: Option<usize>,
    pub(super) made_by: Option<&'static str>,
    /// The same without where it comes from.
    short: String,
}

/// Of all communicators, in their order.
pub(super) fn name(recognised: &Recognised<'_>) -> Vec<Name> {
    let mut numbers: BTreeMap<(Option<&str>, String), u32> = BTreeMap::new();
    let mut named: Vec<Name> = Vec::new();
    let world = |job| {
        let is_world = |group: &&Group<'_>| group.facts().kind == communicator_kind::WORLD && group.job() == job;
        recognised.groups.iter().position(|group| is_world(&group))
    };
    for group in &recognised.groups {
        let (made_by, parent) = origin(group, recognised);
        let told = group.known.iter().find_map(|known| known.communicator.made.as_ref());
        let parent = parent.or_else(|| world(group.job()).filter(|_| told.is_some_and(|(_, of_world)| *of_world)));
        let kind = group.facts().kind;
        let given = given(group);
        let is_given = given.is_some();
        let generated = match kind {
            communicator_kind::WORLD => "world".to_owned(),
            communicator_kind::OWN => "self".to_owned(),
            _ => {
                let job = group.job();
                let told = || told.map_or_else(|| "comm".to_owned(), |(how, _)| how.clone());
                let kind = made_by.map_or_else(told, short_name);
                // Those with a name of their own are counted too: it may come later.
                let number = numbers.entry((job, kind.clone())).or_default();
                *number += 1;
                format!("{kind}#{number}")
            }
        };
        let short = given.unwrap_or(generated);
        named.push(Name { text: short.clone(), is_given, parent, made_by, short });
    }
    for index in 0..named.len() {
        let parent = named.get(index).filter(|name| !name.is_given).and_then(|name| name.parent);
        let parent = parent.and_then(|parent| named.get(parent)).map(|parent| parent.short.clone());
        if let (Some(parent), Some(name)) = (parent, named.get_mut(index)) {
            name.text = format!("{} of {parent}", name.short);
        }
    }
    named
}

/// The name that the lowest rank knows; all members should have given the same one.
fn given(group: &Group<'_>) -> Option<String> {
    let is_predefined = |name: &str| {
        matches!(
            (group.facts().kind, name),
            (communicator_kind::WORLD, "MPI_COMM_WORLD") | (communicator_kind::OWN, "MPI_COMM_SELF")
        )
    };
    let named = group.known.iter().filter(|known| !known.communicator.name.is_empty());
    let first = named.min_by_key(|known| (known.world_rank, known.process))?;
    Some(first.communicator.name.clone()).filter(|name| !is_predefined(name))
}

fn origin(group: &Group<'_>, recognised: &Recognised<'_>) -> (Option<&'static str>, Option<usize>) {
    let mut functions = group.known.iter().filter_map(|known| known.communicator.facts.made_by_plus_1.checked_sub(1));
    let parents = group.known.iter().map(|known| (known.process, known.communicator.facts.parent));
    let mut parents = parents.filter(|&(_, number)| number != 0);
    let parent = parents.find_map(|(process, number)| recognised.index(process, number));
    (functions.next().map(names::name), parent)
}

/// `MPI_Comm_split` → `split`, `MPI_Cart_create` → `cart`.
fn short_name(function: &str) -> String {
    let name = function.strip_prefix("MPI_").unwrap_or(function).to_lowercase();
    let name = name.strip_prefix("comm_").unwrap_or(&name);
    let name = name.strip_suffix("_adjacent").unwrap_or(name);
    name.strip_suffix("_create").unwrap_or(name).to_owned()
}
