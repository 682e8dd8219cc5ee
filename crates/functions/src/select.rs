//! The language of `--functions`: which functions to probe.

use core::error::Error;
use core::fmt;

use crate::lookup::without_prefix;
use crate::nearest::nearest_of;
use crate::{FunctionId, FunctionSet, Group, by_name_ignoring_case, glob, nearest};

/// Why a selection is none. Borrows the faulty item from the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectError<'a> {
    /// There is nothing between two commas, or nothing at all.
    EmptyItem,
    /// No function, group or keyword is called that.
    Unknown { item: &'a str, nearest: Option<&'static str> },
    /// The pattern matches no function.
    NoMatch { pattern: &'a str },
    /// Every function selected was taken out again.
    NothingLeft { selection: &'a str },
}

impl fmt::Display for SelectError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyItem => f.write_str(
                "an item of the selection is empty: name functions, groups, `all` or `default`, separated by commas",
            ),
            Self::Unknown { item, nearest } => {
                write!(f, "`{item}` is neither an MPI function nor a group of functions: ")?;
                if let Some(nearest) = nearest {
                    return write!(f, "did you mean `{nearest}`?");
                }
                f.write_str("groups are")?;
                Group::ALL.iter().try_for_each(|group| write!(f, " {}", group.key()))
            }
            Self::NoMatch { pattern } => write!(f, "no MPI function matches the pattern `{pattern}`"),
            Self::NothingLeft { selection } => {
                write!(f, "`{selection}` selects no function: what it adds it takes out again")
            }
        }
    }
}

impl Error for SelectError<'_> {}

const ALL: &str = "all";
const DEFAULT: &str = "default";

/// Parses a selection of functions, such as `default,-Iprobe`, `coll,sync` or `MPI_Send,*recv*`.
///
/// Items are separated by commas and apply from left to right; one that begins with `-` takes functions out. A
/// selection that begins by taking out starts from the default. An item is
/// - `all` or `default`;
/// - the key or title of a group ([`Group::key`], [`Group::title`]);
/// - the name of a function, with or without `MPI_`, which stands for its large-count variant, too;
/// - a pattern with `*` and `?` over such names.
///
/// Case does not matter. Where a name is a group's and a function's (`init`), it is the group's: write `MPI_Init`.
pub fn select(selection: &str) -> Result<FunctionSet, SelectError<'_>> {
    let mut set =
        if selection.trim_start().starts_with('-') { FunctionSet::default_functions() } else { FunctionSet::EMPTY };
    for item in selection.split(',').map(str::trim) {
        match item.strip_prefix('-') {
            Some(removed) => resolve(removed.trim_start())?.iter().for_each(|id| set.remove(id)),
            None => set.extend(resolve(item)?.iter()),
        }
    }
    if set.is_empty() { Err(SelectError::NothingLeft { selection }) } else { Ok(set) }
}

/// The functions that one item stands for.
fn resolve(item: &str) -> Result<FunctionSet, SelectError<'_>> {
    if item.is_empty() {
        return Err(SelectError::EmptyItem);
    }
    if glob::is_pattern(item) {
        let set: FunctionSet = FunctionId::all().filter(|id| is_match(item, *id)).collect();
        return if set.is_empty() { Err(SelectError::NoMatch { pattern: item }) } else { Ok(set) };
    }
    if item.eq_ignore_ascii_case(ALL) {
        return Ok(FunctionSet::all());
    }
    if item.eq_ignore_ascii_case(DEFAULT) {
        return Ok(FunctionSet::default_functions());
    }
    let is_group = |group: &Group| group.key().eq_ignore_ascii_case(item) || group.title().eq_ignore_ascii_case(item);
    if let Some(group) = Group::ALL.into_iter().find(is_group) {
        return Ok(FunctionSet::of_group(group));
    }
    match by_name_ignoring_case(item) {
        Some(id) => Ok([Some(id), id.function().large_count_variant()].into_iter().flatten().collect()),
        None => Err(SelectError::Unknown { item, nearest: suggestion(item) }),
    }
}

fn is_match(pattern: &str, id: FunctionId) -> bool {
    let function = id.function();
    glob::matches(pattern, function.name) || glob::matches(without_prefix(pattern), function.short_name())
}

/// What a misspelt item may have been meant to be: a group or keyword rather than a function that is no nearer.
fn suggestion(item: &str) -> Option<&'static str> {
    let groups = Group::ALL.iter().flat_map(|group| [group.key(), group.title()]);
    let words = nearest_of(item, groups.chain([ALL, DEFAULT]));
    let functions = FunctionId::all().map(|id| id.function().short_name());
    match (words, nearest_of(without_prefix(item), functions)) {
        (Some((word, edits)), Some((_, other))) if edits <= other => Some(word),
        (Some((word, _)), None) => Some(word),
        _ => nearest(item),
    }
}
