//! Hash tables of the programs, with the types of [`mpiprobe_common::tables`].
#![expect(unsafe_code, reason = "what aya may copy to and from the kernel is a promise")]

use std::io;

use aya::maps::{HashMap, Map, MapData, MapError};
use aya_obj::generated::BPF_EXIST;
use bytemuck::Pod;

use super::AttachError;

/// A value of a table.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plain<T>(pub T);

// SAFETY: the type is plain by its own derivation, and this one has its representation.
unsafe impl<T: Pod> aya::Pod for Plain<T> {}

/// A hash table.
#[derive(Debug)]
pub(super) struct HashTable<'a, K: Pod, V: Pod> {
    name: &'static str,
    map: HashMap<&'a mut MapData, Plain<K>, Plain<V>>,
}

impl<'a, K: Pod, V: Pod> HashTable<'a, K, V> {
    pub(super) fn of(name: &'static str, map: &'a mut Map) -> Result<Self, AttachError> {
        let map = HashMap::try_from(map).map_err(|source| AttachError::Object { source: Box::new(source) })?;
        Ok(Self { name, map })
    }

    pub(super) fn get(&self, key: K) -> Option<V> {
        self.map.get(&Plain(key), 0).ok().map(|Plain(value)| value)
    }

    /// Puts an entry in, in the place of the one with its key if there is any.
    pub(super) fn insert(&mut self, key: K, value: V) -> Result<(), AttachError> {
        self.map.insert(Plain(key), Plain(value), 0).map_err(|error| self.failed(error))
    }

    /// Puts an entry in the place of the one with its key; an error if there is none.
    pub(super) fn replace(&mut self, key: K, value: V) -> Result<(), AttachError> {
        self.map.insert(Plain(key), Plain(value), BPF_EXIST.into()).map_err(|error| self.failed(error))
    }

    /// Takes an entry out. Not to be there is no error.
    pub(super) fn remove(&mut self, key: K) -> Result<(), AttachError> {
        match self.map.remove(&Plain(key)) {
            Ok(()) | Err(MapError::KeyNotFound | MapError::ElementNotFound) => Ok(()),
            Err(MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: MapError) -> AttachError {
        let source = match error {
            MapError::SyscallError(error) => error.io_error,
            error => io::Error::other(error),
        };
        AttachError::Table { table: self.name, source }
    }
}
