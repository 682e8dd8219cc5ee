//! Time in MPI as folded stacks, which flame graphs are drawn from: program, function, place, MPI function, and time in ns.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use mpiprobe_model::Profile;

use super::sites::sites;

pub(crate) fn folded(profile: &Profile, to: &mut dyn Write) -> io::Result<()> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let program = |rank: usize| {
        let path = profile.ranks.get(rank).map_or("?", |rank| rank.executable.as_str());
        frame(path.rsplit('/').next().unwrap_or(path))
    };
    let sites = sites(profile);
    for site in &sites {
        let place = &site.place;
        let mut frames: Vec<String> =
            [&place.caller, &place.function].into_iter().flatten().map(|name| frame(name)).collect();
        match (&place.file, place.line) {
            (Some(file), Some(line)) => frames.push(frame(&format!("{file}:{line}"))),
            _ if frames.is_empty() => frames.push(frame(&place.text)),
            _ => {}
        }
        frames.push(frame(site.called()));
        for &(rank, amounts) in site.ranks.iter().filter(|(_, amounts)| amounts.time_ns > 0) {
            let time = stacks.entry(format!("{};{}", program(rank), frames.join(";"))).or_insert(0);
            *time = time.saturating_add(amounts.time_ns);
        }
    }
    if sites.is_empty() {
        // Without call sites there are functions still.
        for (number, rank) in profile.ranks.iter().enumerate() {
            for row in rank.functions.iter().filter(|row| row.time_ns > 0) {
                let time = stacks.entry(format!("{};{}", program(number), row.name)).or_insert(0);
                *time = time.saturating_add(row.time_ns);
            }
        }
    }
    for (stack, ns) in stacks {
        writeln!(to, "{stack} {ns}")?;
    }
    Ok(())
}

/// A frame has no semicolon and no line in it.
fn frame(name: &str) -> String {
    name.replace([';', '\n', '\r'], "_")
}
