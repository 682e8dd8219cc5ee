//! Stacks of a job that never ran.

use std::time::Duration;

use mpiprobe_stacks::{Label, Member, Stacked};
use mpiprobe_view::Stacks;

use super::Synthetic;

/// Functions with their places, from the outside in.
type Frames = &'static [(&'static str, &'static str)];

const REDUCES: Frames = &[("main", "solve.c:57"), ("step", "solve.c:118"), ("dot", "cg.c:31"), ("MPI_Allreduce", "")];
const WAITS: Frames = &[("main", "solve.c:57"), ("step", "solve.c:112"), ("MPI_Waitall", "")];
const READS: Frames = &[("main", "solve.c:42"), ("load_mesh", "mesh.c:77"), ("read", "")];
const WORKS: Frames = &[("worker", "tasks.c:12"), ("update", "flux.c:310")];

impl Synthetic {
    /// What the view shows after a look: most ranks wait for the last one, which reads a file.
    pub fn stacks(&self) -> Stacks {
        let is_last = |rank: &u32| rank + 1 == self.ranks;
        let all = || 0..self.ranks;
        let stacked = |frames: Frames, ranks: Vec<u32>| Stacked {
            frames: frames.iter().map(|(name, place)| label(name, place)).collect(),
            members: ranks.into_iter().map(Member::Rank).collect(),
        };
        let mut stacks = vec![
            stacked(REDUCES, all().filter(|rank| rank % 3 != 1 && !is_last(rank)).collect()),
            stacked(WAITS, all().filter(|rank| rank % 3 == 1 && !is_last(rank)).collect()),
            stacked(READS, all().filter(is_last).collect()),
        ];
        if self.hybrid {
            stacks.push(stacked(WORKS, all().flat_map(|rank| [rank; 2]).collect()));
        }
        Stacks::Seen { stacks, took: Duration::from_millis(3) }
    }
}

fn label(name: &str, place: &str) -> Label {
    Label::new(name, (!place.is_empty()).then(|| place.to_owned()))
}
