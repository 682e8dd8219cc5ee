//! What is wanted of many moments at once: the course of time by rank, function and group of functions. It is recorded beside each
//! profile, which takes a thousand times longer to read.

use std::collections::HashMap;

use mpiprobe_model::Profile;
use serde::{Deserialize, Serialize};

/// Amounts of one moment, as they add up since the beginning of observation. Columns of equal length; of those of others, what is
/// beyond the shortest is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub(crate) observed_ns: u64,
    /// Whether bytes are known.
    pub(crate) has_traffic: bool,
    hosts: Vec<String>,
    /// By rank, in the order of the profile: number of the host, and process.
    host: Vec<u32>,
    pid: Vec<u32>,
    /// Of each rank wall time of the threads that use MPI, time in MPI (ns), calls, bytes sent, bytes received.
    ranks: [Vec<u64>; 5],
    function: Vec<String>,
    /// Of each function calls, time in them (ns), bytes sent, bytes received.
    functions: [Vec<u64>; 4],
    group: Vec<String>,
    /// Of each group time (ns).
    groups: [Vec<u64>; 1],
}

/// A process image, the same in all moments: the node, the process number, and how many images it had before.
pub(crate) type Process = (String, u32, usize);

impl Sums {
    pub fn of(profile: &Profile) -> Self {
        let mut sums =
            Self { observed_ns: profile.observed_ns, has_traffic: profile.traffic.is_some(), ..Self::default() };
        let mut hosts = HashMap::new();
        for rank in &profile.ranks {
            let host = *hosts.entry(rank.host.as_str()).or_insert_with(|| {
                sums.hosts.push(rank.host.clone());
                u32::try_from(sums.hosts.len() - 1).unwrap_or(u32::MAX)
            });
            sums.host.push(host);
            sums.pid.push(rank.pid);
            let (sent, received) = rank.moved_bytes().unwrap_or_default();
            push(&mut sums.ranks, [rank.thread_wall_ns, rank.mpi_ns, rank.calls, sent, received]);
        }
        for row in profile.functions.iter().map(|function| &function.all) {
            let (sent, received) =
                row.traffic.as_ref().map_or((0, 0), |traffic| (traffic.sent.bytes, traffic.received.bytes));
            sums.function.push(row.name.to_owned());
            push(&mut sums.functions, [row.calls, row.time_ns, sent, received]);
        }
        for group in &profile.groups {
            sums.group.push(group.all.group.to_owned());
            push(&mut sums.groups, [group.all.time_ns]);
        }
        sums
    }

    /// Those of several nodes of one job as one.
    pub(crate) fn merge(parts: Vec<Self>) -> Self {
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            all.observed_ns = all.observed_ns.max(part.observed_ns);
            all.has_traffic |= part.has_traffic;
            let before = u32::try_from(all.hosts.len()).unwrap_or(u32::MAX);
            all.hosts.extend(part.hosts);
            all.host.extend(part.host.into_iter().map(|host| host.saturating_add(before)));
            all.pid.extend(part.pid);
            for (column, more) in all.ranks.iter_mut().zip(part.ranks) {
                column.extend(more);
            }
            add(&mut all.function, &mut all.functions, part.function, &part.functions);
            add(&mut all.group, &mut all.groups, part.group, &part.groups);
        }
        all
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = (Process, [u64; 5])> {
        let mut images: HashMap<(u32, u32), usize> = HashMap::new();
        self.host.iter().zip(&self.pid).zip(rows(&self.ranks)).map(move |((&host, &pid), figures)| {
            let image = images.entry((host, pid)).or_default();
            let name = usize::try_from(host).ok().and_then(|host| self.hosts.get(host)).cloned();
            let process = (name.unwrap_or_default(), pid, *image);
            *image += 1;
            (process, figures)
        })
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = (&str, [u64; 4])> {
        self.function.iter().map(String::as_str).zip(rows(&self.functions))
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (&str, [u64; 1])> {
        self.group.iter().map(String::as_str).zip(rows(&self.groups))
    }
}

fn push<const N: usize>(columns: &mut [Vec<u64>; N], figures: [u64; N]) {
    for (column, figure) in columns.iter_mut().zip(figures) {
        column.push(figure);
    }
}

fn rows<const N: usize>(columns: &[Vec<u64>; N]) -> impl Iterator<Item = [u64; N]> {
    let length = columns.iter().map(Vec::len).min().unwrap_or(0);
    (0..length)
        .map(|at| std::array::from_fn(|column| columns.get(column).and_then(|it| it.get(at)).copied().unwrap_or(0)))
}

/// What has the same name is the same.
fn add<const N: usize>(
    names: &mut Vec<String>,
    columns: &mut [Vec<u64>; N],
    more: Vec<String>,
    figures: &[Vec<u64>; N],
) {
    for (name, figures) in more.into_iter().zip(rows(figures)) {
        let Some(known) = names.iter().position(|known| *known == name) else {
            names.push(name);
            push(columns, figures);
            continue;
        };
        for (column, figure) in columns.iter_mut().zip(figures) {
            if let Some(sum) = column.get_mut(known) {
                *sum = sum.saturating_add(figure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::sample;

    use super::*;

    /// Two ranks of a node that have made so many calls each.
    fn node(host: &str, calls: u64) -> Sums {
        let mut profile = sample::profile(sample::ranks(2));
        profile.functions = vec![sample::function("MPI_Send", 2 * calls, 10)];
        for rank in &mut profile.ranks {
            (rank.host, rank.calls) = (host.into(), calls);
        }
        Sums::of(&profile)
    }

    #[test]
    fn nodes_are_one_job() {
        let all = Sums::merge(vec![node("a", 3), node("b", 5)]);
        let ranks: Vec<_> = all.ranks().map(|((host, _, image), figures)| (host, image, figures[2])).collect();
        assert_eq!(ranks, [("a".into(), 0, 3), ("a".into(), 0, 3), ("b".into(), 0, 5), ("b".into(), 0, 5)]);
        assert_eq!(all.functions().map(|(name, figures)| (name, figures[0])).collect::<Vec<_>>(), [("MPI_Send", 16)]);
    }

    #[test]
    fn images_of_a_process_are_told_apart() {
        let mut profile = sample::profile(sample::ranks(2));
        profile.ranks[1].pid = profile.ranks[0].pid;
        let images: Vec<usize> = Sums::of(&profile).ranks().map(|((.., image), _)| image).collect();
        assert_eq!(images, [0, 1]);
    }

    #[test]
    fn columns_of_others_may_be_of_any_length() {
        let mut sums = node("a", 3);
        sums.ranks[3].clear();
        sums.host = vec![7];
        sums.functions[0].extend([1, 2, 3]);
        assert_eq!((sums.ranks().count(), sums.functions().count()), (0, 1));
        sums.ranks[3] = vec![0];
        assert_eq!(sums.ranks().map(|((host, ..), _)| host).collect::<Vec<_>>(), [""]);
        let merged = Sums::merge(vec![sums, node("b", 5)]);
        assert!(merged.ranks().count() <= 4);
    }
}
