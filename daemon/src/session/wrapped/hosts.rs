//! One job on several nodes, where no launcher has given it a name: then each node knows its own part only.

use std::collections::{BTreeMap, BTreeSet};

use mpiprobe_model::analyse::{Identity, Observed};

/// How names of jobs begin that are made of a process's place on its node.
const UNNAMED: &str = "tree:";

/// The part of a job that ran on some nodes.
#[derive(Debug, Default)]
struct Part {
    size: Option<u32>,
    hosts: BTreeSet<String>,
    ranks: BTreeSet<u32>,
}

impl Part {
    fn add(&mut self, who: &Identity) {
        self.size = self.size.or(who.size);
        self.hosts.insert(who.host.clone());
        self.ranks.extend(who.rank);
    }

    /// Whether both can be parts of one job: of the same size, on different nodes, with different ranks.
    fn completes(&self, other: &Self) -> bool {
        self.size.is_some()
            && self.size == other.size
            && self.hosts.is_disjoint(&other.hosts)
            && self.ranks.is_disjoint(&other.ranks)
    }
}

/// Gives all parts of a job the name of its first one.
pub(super) fn unite_jobs(observed: &mut [Observed]) {
    let mut hosts = observed.iter().map(|observed| &observed.identity.host);
    let first = hosts.next();
    if hosts.all(|host| Some(host) == first) {
        return;
    }
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    for who in observed.iter().map(|observed| &observed.identity) {
        if let Some(job) = who.job.as_ref().filter(|job| job.starts_with(UNNAMED)) {
            // The same number may be another process's on another node.
            parts.entry(on(job, &who.host)).or_default().add(who);
        }
    }
    let mut united: Vec<(String, Part)> = Vec::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (name, part) in parts {
        if let Some((first, whole)) = united.iter_mut().find(|(_, whole)| whole.completes(&part)) {
            names.insert(name, first.clone());
            whole.hosts.extend(part.hosts);
            whole.ranks.extend(part.ranks);
        } else {
            names.insert(name.clone(), name.clone());
            united.push((name, part));
        }
    }
    for who in observed.iter_mut().map(|observed| &mut observed.identity) {
        let name = who.job.as_ref().and_then(|job| names.get(&on(job, &who.host)));
        who.job = name.cloned().or_else(|| who.job.take());
    }
}

fn on(job: &str, host: &str) -> String {
    format!("{job}@{host}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_model::RankState;
    use mpiprobe_model::analyse::{Beginning, SelfCost};

    fn rank(host: &str, job: &str, rank: u32, size: u32) -> Observed {
        let identity = Identity {
            host: host.into(),
            rank: Some(rank),
            size: Some(size),
            job: Some(job.into()),
            ..Identity::default()
        };
        Observed {
            process: 0,
            identity,
            state: RankState::Ended,
            stopped: false,
            since_ns: 0,
            beginning: Beginning::FirstCall,
            until_ns: None,
            failure: None,
            ended_in: Vec::new(),
            self_cost: SelfCost::default(),
        }
    }

    fn united(mut observed: Vec<Observed>) -> Vec<String> {
        unite_jobs(&mut observed);
        observed.into_iter().filter_map(|observed| observed.identity.job).collect()
    }

    #[test]
    fn parts_on_different_nodes_are_one_job() {
        let job = vec![rank("a", "tree:7", 0, 4), rank("a", "tree:7", 1, 4), rank("b", "tree:9", 2, 4)];
        assert_eq!(united(job), ["tree:7@a", "tree:7@a", "tree:7@a"]);
        // By chance the same number on both nodes.
        assert_eq!(united(vec![rank("a", "tree:7", 0, 2), rank("b", "tree:7", 1, 2)]), ["tree:7@a", "tree:7@a"]);
    }

    #[test]
    fn jobs_with_the_same_ranks_or_other_sizes_stay_apart() {
        assert_eq!(united(vec![rank("a", "tree:7", 0, 2), rank("b", "tree:9", 0, 2)]), ["tree:7@a", "tree:9@b"]);
        assert_eq!(united(vec![rank("a", "tree:7", 0, 2), rank("b", "tree:9", 1, 3)]), ["tree:7@a", "tree:9@b"]);
        assert_eq!(united(vec![rank("a", "tree:7", 0, 2), rank("a", "tree:9", 1, 2)]), ["tree:7", "tree:9"]);
        assert_eq!(united(vec![rank("a", "ompi:1", 0, 2), rank("b", "ompi:1", 1, 2)]), ["ompi:1", "ompi:1"]);
    }
}
