//! Tells the programs how to get from calls of language layers to the user's code, and which calls are the layers' own.

use std::collections::HashMap;

use mpiprobe_attach::{LayerFrames, Observer, Tables};
use mpiprobe_common::{
    LayerFrame, ProcessLayers,
    layer::{EarlyQuery, LAYER_RANGES, LayerRange, MOST_OFFSET, call_key},
};
use mpiprobe_stacks::callsites::{AddressMap, LayerRegion, Module, ModuleId, calls_of_layer, may_call_for_itself};

/// The layers that have been told, each once, with their numbers.
#[derive(Debug, Default)]
pub(super) struct Layers {
    numbers: HashMap<ModuleId, u64>,
}

impl Layers {
    /// Tells what layers a process has. Calls through a layer that there is no room for are charged to the layer. Gives whether
    /// local questions were counted before that are, or may be, a layer's own.
    pub(super) fn tell(&mut self, tables: &mut Tables, observer: &Observer, slot: u32, map: &AddressMap) -> bool {
        let mut layers = ProcessLayers::default();
        let regions: Vec<LayerRegion> = map.layers().collect();
        for (range, region) in layers.ranges.iter_mut().zip(&regions) {
            let module = self.number(tables, &region.module);
            *range = LayerRange { start: region.range.start, end: region.range.end, bias: region.bias, module };
        }
        if regions.len() > LAYER_RANGES {
            tracing::warn!("a process has more code of language layers than there is room for");
        }
        let used = || layers.ranges.iter().filter(|range| range.end > 0);
        layers.around = match (used().map(|range| range.start).min(), used().map(|range| range.end).max()) {
            (Some(start), Some(end)) => LayerRange { start, end, ..LayerRange::NONE },
            _ => LayerRange::EMPTY,
        };
        observer.set_layers(slot, &layers);
        let (queries, more) = observer.early_queries(slot);
        // A tool that intercepts Fortran calls, too, has procedures but asks nothing by them.
        let mut judged = regions.iter().filter(|region| may_call_for_itself(&region.module));
        judged.any(|region| if more > 0 { calls_for_itself(region) } else { has_own(region, &queries) })
    }

    fn number(&mut self, tables: &mut Tables, module: &Module) -> u64 {
        if let Some(&number) = self.numbers.get(module.id()) {
            return number;
        }
        let number = self.numbers.len() as u64;
        self.numbers.insert(module.id().clone(), number);
        match LayerFrames::of(tables) {
            Ok(mut table) => insert(&mut table, number, module),
            Err(error) => tracing::warn!("calls through {} stay there: {error}", module.path()),
        }
        number
    }
}

/// Whether there is any place from which a layer calls on its own account.
fn calls_for_itself(region: &LayerRegion) -> bool {
    calls_of_layer(&region.module).iter().any(|call| call.frame.may_be_own())
}

/// Whether some of these local questions were a layer's own.
fn has_own(region: &LayerRegion, queries: &[EarlyQuery]) -> bool {
    let range = LayerRange { start: region.range.start, end: region.range.end, ..LayerRange::NONE };
    let of_region = || queries.iter().filter(|query| range.contains(query.return_address()));
    if of_region().next().is_none() {
        return false;
    }
    // All code of the file is decoded for it.
    let calls = calls_of_layer(&region.module);
    let is_own = |query: &EarlyQuery| {
        let offset = query.return_address().wrapping_sub(region.bias);
        let call = calls.binary_search_by_key(&offset, |call| call.offset);
        let call = call.ok().and_then(|place| calls.get(place));
        call.is_some_and(|call| call.frame.is_own(query.own_of_layers(), query.question()))
    };
    of_region().any(is_own)
}

fn insert(table: &mut LayerFrames<'_>, number: u64, module: &Module) {
    for call in calls_of_layer(module) {
        if call.frame == LayerFrame::default() || call.offset > MOST_OFFSET {
            continue;
        }
        if let Err(error) = table.insert(call_key(number, call.offset), call.frame) {
            tracing::warn!("some calls through {} stay there: {error}", module.path());
            return;
        }
    }
}
