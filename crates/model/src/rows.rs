//! Rows of tables that profiles share.

use std::{
    ops::{Deref, DerefMut},
    slice,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows of a table. A copy of a profile, or a part of it, has the same ones; whoever changes one gets rows of its own.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rows<T>(Arc<Vec<T>>);

impl<T> Clone for Rows<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Rows<T> {
    fn from(rows: Vec<T>) -> Self {
        Self(Arc::new(rows))
    }
}

impl<T> FromIterator<T> for Rows<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        Vec::from_iter(rows).into()
    }
}

impl<T> Deref for Rows<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Clone> DerefMut for Rows<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

impl<'a, T> IntoIterator for &'a Rows<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Rows<T> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_changed_alone() {
        let rows: Rows<u32> = (0..3).collect();
        let mut copy = rows.clone();
        assert!(Arc::ptr_eq(&rows.0, &copy.0));
        copy[0] = 7;
        assert_eq!((rows.as_slice(), copy.as_slice()), ([0, 1, 2].as_slice(), [7, 1, 2].as_slice()));
    }

    #[test]
    fn they_are_written_and_read_as_a_list() {
        let rows: Rows<u32> = (0..3).collect();
        assert_eq!(serde_json::to_string(&rows).unwrap(), "[0,1,2]");
        assert_eq!(serde_json::from_str::<Rows<u32>>("[0,1,2]").unwrap(), rows);
    }
}
