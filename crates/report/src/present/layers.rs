//! What each layer between program and library costs, as text.

use mpiprobe_model::{FunctionLayers, Profile, ToolLayer};

use super::{
    table::{TextOptions, left, right, section, table},
    units::{count, duration, ns, percent},
};

/// Functions that are shown, of those with most time.
const FUNCTIONS: usize = 20;

/// Tools before the library, function by function, and what they call themselves; empty without tools.
pub(super) fn layers(options: &TextOptions, profile: &Profile) -> String {
    if profile.layers.is_empty() {
        return String::new();
    }
    let columns = [
        left("function"),
        left("layer"),
        right("calls"),
        right("time").spare(),
        right("cost"),
        right("a call").spare(),
        right("cost %"),
        right("own calls").spare_first(),
        right("in them").spare_first(),
    ];
    let library = library(profile);
    let shown = profile.layers.iter().take(options.rows(FUNCTIONS));
    let rows = shown.flat_map(|function| rows(function, library));
    // The rest of a probe is outside the durations that it measures, so it is in those around them.
    let cost = &profile.own_cost;
    let (up_to, inside_ns) = cost.inside_ns.map_or(("up to ", 0.0), |ns| ("", ns));
    let note = format!(
        "cost: time at the layer's entry without that from the next one's on; {up_to}{} a call of the next one are mpiprobe's\n",
        duration((cost.per_call_ns - inside_ns).max(0.0))
    );
    section(
        "Layers, all ranks: the program's calls through tools",
        &(table(options, &columns, rows)
            + &options.more(options.rows(FUNCTIONS), profile.layers.len(), "functions")
            + &note
            + &own(options, profile)),
    )
}

/// The bottom layer, where there is one only.
pub fn library(profile: &Profile) -> &str {
    match &profile.engine.libraries[..] {
        [library] => &library.implementation,
        _ => "MPI",
    }
}

fn rows(function: &FunctionLayers, library: &str) -> Vec<Vec<String>> {
    let tools = function.tools.iter().filter(|layer| layer.calls > 0).map(|layer| {
        let own = if layer.own_calls == 0 {
            [String::new(), String::new()]
        } else {
            [count(layer.own_calls), ns(layer.own_calls_ns)]
        };
        let mut row = row(&layer.tool, layer.calls, layer.time_ns, layer.cost_ns, layer.cost_percent);
        row.extend(own);
        row
    });
    let below = &function.library;
    let library = (below.calls > 0).then(|| row(library, below.calls, below.time_ns, below.time_ns, below.percent));
    let mut name = function.function;
    let rows = tools.chain(library).map(|mut row| {
        // Once, at the top.
        row.insert(0, std::mem::take(&mut name).to_owned());
        row
    });
    rows.collect()
}

fn row(layer: &str, calls: u64, time_ns: u64, cost_ns: u64, share: f64) -> Vec<String> {
    let each = if calls == 0 { 0.0 } else { cost_ns as f64 / calls as f64 };
    vec![layer.to_owned(), count(calls), ns(time_ns), ns(cost_ns), duration(each), percent(share)]
}

/// Calls that tools have made themselves: in the tables of functions like all others.
fn own(options: &TextOptions, profile: &Profile) -> String {
    let columns = [left("tool"), left("inside"), left("own calls of"), right("calls"), right("time")];
    let calls = |function: &FunctionLayers, layer: &ToolLayer| {
        let own = layer.own.iter().map(|own| {
            vec![layer.tool.clone(), function.function.into(), own.function.into(), count(own.calls), ns(own.time_ns)]
        });
        own.collect::<Vec<_>>()
    };
    let of_function =
        |function: &FunctionLayers| function.tools.iter().flat_map(|layer| calls(function, layer)).collect::<Vec<_>>();
    let rows: Vec<_> = profile.layers.iter().flat_map(of_function).collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", table(options, &columns, rows)) }
}
