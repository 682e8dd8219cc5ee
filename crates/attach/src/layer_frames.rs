//! The table of ways out of language layers.

use aya::maps::{HashMap, MapData, MapError};
use mpiprobe_common::LayerFrame;

use super::{AttachError, Tables, pod::Plain};

/// Frames of calls that layers make, by [`mpiprobe_common::layer::call_key`].
#[derive(Debug)]
pub struct LayerFrames<'a> {
    map: HashMap<&'a mut MapData, u64, Plain<LayerFrame>>,
}

impl<'a> LayerFrames<'a> {
    pub fn of(tables: &'a mut Tables) -> Result<Self, AttachError> {
        let map = HashMap::try_from(tables.map_mut("LAYER_FRAMES")?)
            .map_err(|source| AttachError::Object { source: Box::new(source) })?;
        Ok(Self { map })
    }

    /// An error if there is no room for more.
    pub fn insert(&mut self, key: u64, frame: LayerFrame) -> Result<(), MapError> {
        self.map.insert(key, Plain(frame), 0)
    }
}
