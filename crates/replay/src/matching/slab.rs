//! Things with names that are not used again.

/// Name of a thing in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

/// Things that come and go.
#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.free.pop()
            && let Some((generation, place)) = self.entries.get_mut(index as usize)
        {
            *place = Some(value);
            return Key { index, generation: *generation };
        }
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push((0, Some(value)));
        Key { index, generation: 0 }
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (generation, value) = self.entries.get_mut(key.index as usize)?;
        if *generation == key.generation { value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let (generation, value) = self.entries.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let value = value.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(|(_, value)| value.as_mut())
    }

    /// Takes everything.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.free.clear();
        self.entries.drain(..).filter_map(|(_, value)| value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_what_is_gone_name_nothing() {
        let mut slab = Slab::default();
        let (one, two) = (slab.insert(1), slab.insert(2));
        assert_eq!(slab.remove(one), Some(1));
        let three = slab.insert(3);
        assert_eq!((slab.remove(one), slab.get_mut(one)), (None, None));
        assert_eq!((slab.get_mut(two).copied(), slab.get_mut(three).copied()), (Some(2), Some(3)));
        assert_eq!(slab.len(), 2);
    }
}
