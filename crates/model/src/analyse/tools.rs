//! What each layer between program and library costs: tools, and the library.

use std::{cmp::Reverse, collections::BTreeMap};

use mpiprobe_common::{ToolCallStats, ToolStats};
use mpiprobe_observe::ToolsSnapshot;

use super::{aggregate::percent, names};
use crate::{FunctionLayers, LibraryLayer, SaturatingSum as _, ToolCalls, ToolInfo, ToolLayer};

/// By function of the program's call, and tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers<'a> {
    by_function: BTreeMap<u16, BTreeMap<&'a str, OfTool>>,
}

/// One tool's share in one function.
#[derive(Clone, Debug, Default)]
struct OfTool {
    stats: ToolStats,
    own: BTreeMap<u16, ToolCallStats>,
}

impl<'a> Layers<'a> {
    /// Of one process. `tools` is by number; tools of one name are one.
    pub(super) fn of(snapshot: &ToolsSnapshot, tools: &'a [ToolInfo]) -> Self {
        let mut layers = Self::default();
        let name = |tool: u16| tools.get(usize::from(tool)).map_or("?", |tool| tool.name.as_str());
        for (key, stats) in &snapshot.calls {
            layers.tool(key.function, name(key.tool)).stats.merge(stats);
        }
        for (key, stats) in &snapshot.own {
            layers.tool(key.inside, name(key.tool)).own.entry(key.function).or_default().merge(stats);
        }
        layers
    }

    fn tool(&mut self, function: u16, tool: &'a str) -> &mut OfTool {
        self.by_function.entry(function).or_default().entry(tool).or_default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (&function, tools) in &other.by_function {
            for (&tool, more) in tools {
                let all = self.tool(function, tool);
                all.stats.merge(&more.stats);
                for (&function, calls) in &more.own {
                    all.own.entry(function).or_default().merge(calls);
                }
            }
        }
    }

    /// Probed calls of tools.
    pub(super) fn calls(&self) -> u64 {
        let tools = self.by_function.values().flat_map(BTreeMap::values);
        tools.flat_map(|tool| [tool.stats.calls, tool.stats.by_tools]).saturating_sum()
    }

    /// Most time first.
    pub(super) fn profile(&self) -> Vec<FunctionLayers> {
        let rows = self.by_function.iter().map(|(&function, tools)| row(function, tools));
        let mut rows: Vec<FunctionLayers> = rows.collect();
        rows.sort_by_key(|row| Reverse((row.time_ns, row.calls)));
        rows
    }
}

fn row(function: u16, tools: &BTreeMap<&str, OfTool>) -> FunctionLayers {
    let sum = |of: fn(&ToolStats) -> u64| tools.values().map(|tool| of(&tool.stats)).saturating_sum();
    let (to_library, to_library_ns) = (sum(|stats| stats.to_library), sum(|stats| stats.to_library_ns));
    // What one tool passes on to the next is in both.
    let twice = sum(|stats| stats.passed_on).saturating_sub(to_library);
    let time_ns = to_library_ns.saturating_add(sum(cost_ns));
    let mut layers: Vec<ToolLayer> = tools.iter().map(|(tool, of)| layer(tool, of, time_ns)).collect();
    layers.sort_by_key(|layer| Reverse(layer.time_ns));
    FunctionLayers {
        function: names::name(function.into()),
        calls: sum(|stats| stats.calls).saturating_sub(twice),
        time_ns,
        tools: layers,
        library: LibraryLayer { calls: to_library, time_ns: to_library_ns, percent: percent(to_library_ns, time_ns) },
    }
}

/// Time at the tool's entry, without that from the next layer's entry on.
fn cost_ns(stats: &ToolStats) -> u64 {
    stats.time_ns.saturating_sub(stats.passed_on_ns)
}

fn layer(tool: &str, OfTool { stats, own }: &OfTool, whole_ns: u64) -> ToolLayer {
    let own = own.iter().map(|(&function, calls)| ToolCalls {
        function: names::name(function.into()),
        calls: calls.calls,
        time_ns: calls.time_ns,
    });
    let mut own: Vec<ToolCalls> = own.collect();
    own.sort_by_key(|calls| Reverse((calls.time_ns, calls.calls)));
    ToolLayer {
        tool: tool.to_owned(),
        calls: stats.calls,
        time_ns: stats.time_ns,
        passed_on: stats.passed_on,
        cost_ns: cost_ns(stats),
        cost_percent: percent(cost_ns(stats), whole_ns),
        own_calls: stats.own_calls,
        own_calls_ns: stats.own_calls_ns,
        own,
        by_tools: stats.by_tools,
        by_mpi: stats.by_mpi,
        left: stats.left,
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::{ToolCallKey, ToolKey};

    use super::*;

    fn tool(name: &str) -> ToolInfo {
        ToolInfo { name: name.into(), path: format!("/lib/{name}"), functions: 1, not_probed: Vec::new() }
    }

    /// Ten calls of the program through two tools; the second one calls something itself.
    fn stacked() -> ToolsSnapshot {
        let outer = ToolStats { calls: 10, time_ns: 1000, passed_on: 10, passed_on_ns: 700, ..ToolStats::ZERO };
        let to_library = ToolStats { to_library: 10, to_library_ns: 400, ..ToolStats::ZERO };
        let inner = ToolStats { calls: 10, time_ns: 700, passed_on: 10, passed_on_ns: 400, ..to_library };
        let inner = ToolStats { own_calls: 10, own_calls_ns: 200, ..inner };
        let key = |tool| ToolKey { process: 1, tool, function: 3 };
        let own = ToolCallKey { process: 1, tool: 0, inside: 3, function: 5, reserved: 0 };
        ToolsSnapshot {
            calls: vec![(key(0), inner), (key(1), outer)],
            own: vec![(own, ToolCallStats { calls: 10, time_ns: 200 })],
        }
    }

    #[test]
    fn costs_of_the_layers_are_the_time_of_the_calls() {
        let tools = [tool("inner.so"), tool("outer.so")];
        let mut layers = Layers::of(&stacked(), &tools);
        layers.add(&Layers::of(&stacked(), &tools));
        let [row] = &layers.profile()[..] else { panic!("{layers:?}") };
        assert_eq!((row.calls, row.time_ns, layers.calls()), (20, 2000, 40));
        let costs: Vec<_> = row.tools.iter().map(|layer| (layer.tool.as_str(), layer.cost_ns)).collect();
        assert_eq!(costs, [("outer.so", 600), ("inner.so", 600)]);
        assert_eq!((row.library.calls, row.library.time_ns, row.library.percent), (20, 800, 40.0));
        assert_eq!(row.tools[1].own.iter().map(|own| (own.calls, own.time_ns)).collect::<Vec<_>>(), [(20, 400)]);
    }

    #[test]
    fn tools_side_by_side_add_up_too() {
        let side_by_side = ToolStats {
            calls: 10,
            time_ns: 100,
            passed_on: 10,
            passed_on_ns: 80,
            to_library: 10,
            to_library_ns: 80,
            ..ToolStats::ZERO
        };
        let key = |tool| ToolKey { process: 1, tool, function: 3 };
        let snapshot = ToolsSnapshot { calls: vec![(key(0), side_by_side), (key(1), side_by_side)], own: Vec::new() };
        let row = Layers::of(&snapshot, &[tool("a"), tool("b")]).profile().remove(0);
        assert_eq!((row.calls, row.time_ns, row.library.calls), (20, 200, 20));
    }
}
