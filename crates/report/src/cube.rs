//! A report as CUBE4 (`.cubex`), for the Cube browser and what reads its files: an archive of a description and, for each metric, the
//! values of every call path in every rank.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{self, Write},
};

use mpiprobe_model::Profile;

use super::sites::{Place, sites};

/// A function called in a call path.
struct Node {
    region: usize,
    children: Vec<Node>,
    /// By the place of the rank in the profile: calls, time (ns), bytes sent, bytes received.
    values: HashMap<usize, [u64; METRICS.len()]>,
}

/// Name, title, unit and data type.
const METRICS: [(&str, &str, &str, &str); 4] = [
    ("visits", "Visits", "occ", "UINT64"),
    ("time", "Time in MPI", "ns", "UINT64"),
    ("bytes_sent", "Bytes sent", "bytes", "UINT64"),
    ("bytes_received", "Bytes received", "bytes", "UINT64"),
];

/// Functions and places, numbered in the order in which they come.
#[derive(Default)]
struct Regions {
    numbers: HashMap<(String, String), usize>,
    all: Vec<(String, String, u32)>,
}

impl Regions {
    fn number(&mut self, name: &str, file: &str, line: u32) -> usize {
        let next = self.all.len();
        *self.numbers.entry((name.to_owned(), file.to_owned())).or_insert_with(|| {
            self.all.push((name.to_owned(), file.to_owned(), line));
            next
        })
    }
}

pub(crate) fn cube(profile: &Profile, to: &mut dyn Write) -> io::Result<()> {
    let mut regions = Regions::default();
    let root = tree(profile, &mut regions);
    let mut archive = tar::Builder::new(to);
    append(&mut archive, "anchor.xml", anchor(profile, &regions, &root).as_bytes())?;
    let mut nodes = Vec::new();
    depth_first(&root, &mut nodes);
    for metric in 0..METRICS.len() {
        append(&mut archive, &format!("{metric}.index"), &index(nodes.len())?)?;
        append(&mut archive, &format!("{metric}.data"), &data(profile, &nodes, metric))?;
    }
    archive.finish()
}

fn append<W: Write>(archive: &mut tar::Builder<W>, name: &str, content: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, content)
}

/// Program, the function that calls MPI, its place, and the MPI function; without call sites, program and MPI function.
fn tree(profile: &Profile, regions: &mut Regions) -> Node {
    let program = profile.ranks.first().map_or("program", |rank| {
        let path = rank.executable.as_str();
        path.rsplit('/').next().unwrap_or(path)
    });
    let mut root = Node { region: regions.number(program, "", 0), children: Vec::new(), values: HashMap::new() };
    let sites = sites(profile);
    for site in &sites {
        let path = path(&site.place, site.called(), regions);
        let leaf = root.descend(&path);
        for &(rank, amounts) in &site.ranks {
            leaf.add(rank, [amounts.calls, amounts.time_ns, amounts.sent_bytes, amounts.received_bytes]);
        }
    }
    if sites.is_empty() {
        for (number, rank) in profile.ranks.iter().enumerate() {
            for row in &rank.functions {
                let leaf = root.descend(&[regions.number(row.name, "MPI", 0)]);
                let moved = row.traffic.as_ref().map_or((0, 0), |moved| (moved.sent.bytes, moved.received.bytes));
                leaf.add(number, [row.calls, row.time_ns, moved.0, moved.1]);
            }
        }
    }
    root
}

fn path(place: &Place, function: &str, regions: &mut Regions) -> Vec<usize> {
    let file = place.file.as_deref().unwrap_or_default();
    let callers = [&place.caller, &place.function].into_iter().flatten();
    let mut path: Vec<usize> = callers.map(|name| regions.number(name, file, 0)).collect();
    let at = match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => place.text.clone(),
    };
    path.push(regions.number(&at, file, place.line.unwrap_or(0)));
    path.push(regions.number(function, "MPI", 0));
    path
}

impl Node {
    fn descend(&mut self, path: &[usize]) -> &mut Self {
        let Some((&region, rest)) = path.split_first() else { return self };
        let place = self.children.iter().position(|child| child.region == region).unwrap_or_else(|| {
            self.children.push(Self { region, children: Vec::new(), values: HashMap::new() });
            self.children.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "found, or made, just now")]
        self.children[place].descend(rest)
    }

    fn add(&mut self, rank: usize, amounts: [u64; METRICS.len()]) {
        let all = self.values.entry(rank).or_default();
        for (sum, amount) in all.iter_mut().zip(amounts) {
            *sum = sum.saturating_add(amount);
        }
    }
}

/// In the order in which exclusive metrics are kept.
fn depth_first<'a>(node: &'a Node, nodes: &mut Vec<&'a Node>) {
    nodes.push(node);
    for child in &node.children {
        depth_first(child, nodes);
    }
}

fn index(nodes: usize) -> io::Result<Vec<u8>> {
    let nodes = i32::try_from(nodes).map_err(io::Error::other)?;
    let mut bytes = b"CUBEX.INDEX".to_vec();
    bytes.extend(1_i32.to_le_bytes());
    bytes.extend(0_i16.to_le_bytes());
    // All that follow are listed.
    bytes.push(1);
    bytes.extend(nodes.to_le_bytes());
    for node in 0..nodes {
        bytes.extend(node.to_le_bytes());
    }
    Ok(bytes)
}

/// Hosts and the places of their ranks in the profile, as they come in the description, by which values are ordered.
fn locations(profile: &Profile) -> Vec<(&str, usize)> {
    let mut all: Vec<_> = profile.ranks.iter().enumerate().map(|(place, rank)| (rank.host.as_str(), place)).collect();
    all.sort_unstable();
    all
}

/// By call path, and of each, by location.
fn data(profile: &Profile, nodes: &[&Node], metric: usize) -> Vec<u8> {
    let mut bytes = b"CUBEX.DATA".to_vec();
    let order = locations(profile);
    bytes.reserve(nodes.len() * order.len() * 8);
    for node in nodes {
        for &(_, rank) in &order {
            let value = node.values.get(&rank).and_then(|values| values.get(metric)).copied().unwrap_or(0);
            bytes.extend(value.to_le_bytes());
        }
    }
    bytes
}

fn anchor(profile: &Profile, regions: &Regions, root: &Node) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<cube version=\"4.7\">\n");
    let _ = writeln!(text, "<attr key=\"Creator\" value=\"mpiprobe {}\"/>", escaped(profile.mpiprobe_version));
    let _ = writeln!(text, "<doc><mirrors></mirrors></doc>\n<metrics title=\"Metric tree\">");
    for (number, (name, title, unit, kind)) in METRICS.iter().enumerate() {
        let _ = writeln!(
            text,
            "<metric id=\"{number}\" type=\"EXCLUSIVE\" viztype=\"NORMAL\"><disp_name>{title}</disp_name><uniq_name>{name}</uniq_name>\
             <dtype>{kind}</dtype><uom>{unit}</uom><val></val><url></url><descr></descr></metric>"
        );
    }
    text.push_str("</metrics>\n<program title=\"Call tree\">\n");
    for (number, (name, file, line)) in regions.all.iter().enumerate() {
        let (name, file) = (escaped(name), escaped(file));
        let paradigm = if file == "MPI" { "mpi" } else { "user" };
        let line = if *line == 0 { -1 } else { i64::from(*line) };
        let _ = writeln!(
            text,
            "<region id=\"{number}\" mod=\"{file}\" begin=\"{line}\" end=\"{line}\"><name>{name}</name><mangled_name>{name}</mangled_name>\
             <paradigm>{paradigm}</paradigm><role>function</role><url></url><descr></descr></region>"
        );
    }
    let mut next = 0;
    cnode(root, &mut next, &mut text);
    text.push_str("</program>\n<system title=\"System tree\">\n");
    system(profile, &mut text);
    text.push_str("</system>\n</cube>\n");
    text
}

fn cnode(node: &Node, next: &mut usize, text: &mut String) {
    let _ = writeln!(text, "<cnode id=\"{next}\" calleeId=\"{}\">", node.region);
    *next += 1;
    for child in &node.children {
        cnode(child, next, text);
    }
    text.push_str("</cnode>\n");
}

/// Machine, nodes, ranks, each with one location.
fn system(profile: &Profile, text: &mut String) {
    text.push_str("<systemtreenode Id=\"0\"><name>machine</name><class>machine</class>\n");
    let order = locations(profile);
    for (number, ranks) in order.chunk_by(|one, other| one.0 == other.0).enumerate() {
        let host = escaped(ranks.first().map_or("?", |(host, _)| host));
        let _ = writeln!(text, "<systemtreenode Id=\"{}\"><name>{host}</name><class>node</class>", number + 1);
        for own in ranks {
            let id = order.binary_search(own).unwrap_or_default();
            let rank = profile.ranks.get(own.1).and_then(|rank| rank.rank).map_or(own.1 as u64, u64::from);
            let _ = writeln!(
                text,
                "<locationgroup Id=\"{id}\"><name>MPI Rank {rank}</name><rank>{rank}</rank><type>process</type>\
                 <location Id=\"{id}\"><name>Master thread</name><rank>0</rank><type>thread</type></location></locationgroup>"
            );
        }
        text.push_str("</systemtreenode>\n");
    }
    text.push_str("</systemtreenode>\n");
}

/// Text that XML takes, and nothing that XML has no way to write.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}
