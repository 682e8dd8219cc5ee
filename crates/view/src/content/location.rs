//! Where in the view one is: a screen, or something looked into from there.

use mpiprobe_model::analyse::RankId;

use crate::source::Running;

/// The screens, by their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Screen {
    #[default]
    Overview,
    Ranks,
    Functions,
    CallSites,
    Matrix,
    Communicators,
    Requests,
    Recent,
    Waiting,
    Stacks,
    Timeline,
}

impl Screen {
    pub const ALL: [Self; 11] = [
        Self::Overview,
        Self::Ranks,
        Self::Functions,
        Self::CallSites,
        Self::Matrix,
        Self::Communicators,
        Self::Requests,
        Self::Recent,
        Self::Waiting,
        Self::Stacks,
        Self::Timeline,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Ranks => "Ranks",
            Self::Functions => "Functions",
            Self::CallSites => "Call sites",
            Self::Matrix => "Matrix",
            Self::Communicators => "Communicators",
            Self::Requests => "Requests",
            Self::Recent => "Recent calls",
            Self::Waiting => "Waits",
            Self::Stacks => "Stacks",
            Self::Timeline => "Timeline",
        }
    }

    /// As it is called in the configuration.
    pub fn name(self) -> String {
        self.title().to_lowercase().replace(' ', "-")
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|screen| screen.name() == name)
    }

    /// The key that leads there.
    pub fn key(self) -> char {
        match self {
            Self::Overview => '1',
            Self::Ranks => '2',
            Self::Functions => '3',
            Self::CallSites => '4',
            Self::Matrix => '5',
            Self::Communicators => '6',
            Self::Requests => '7',
            Self::Recent => '8',
            Self::Waiting => '9',
            // The tenth.
            Self::Stacks => '0',
            Self::Timeline => 'T',
        }
    }

    /// The one so many places further, round in circles.
    #[must_use]
    pub fn step(self, steps: usize) -> Self {
        let from = Self::ALL.into_iter().position(|screen| screen == self).unwrap_or(0);
        Self::ALL.get((from + steps) % Self::ALL.len()).copied().unwrap_or(self)
    }
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    Screen(Screen),
    /// One rank: its functions.
    Rank(RankId),
    /// The threads of one rank.
    Threads(RankId),
    /// One function: what it is in each rank.
    Function(&'static str),
    /// What tools and library cost the calls of one function.
    Layers(&'static str),
    /// How long calls of a function have lasted and what they have moved: of one rank, or of all.
    Histogram(&'static str, Option<RankId>),
    /// One place that calls MPI, by a number made of it: what it is in each rank.
    Site(u64),
    /// One communicator, by its id: its functions.
    Communicator(u32),
    /// Part of the communication matrix.
    Block(Block),
}

/// Ranks by ranks, of which messages go from those to these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    pub from: u32,
    pub to: u32,
    /// Ranks on either side.
    pub side: u32,
}

impl Location {
    /// Places of a kind have their sorting in common.
    pub(crate) fn kind(self) -> LocationKind {
        match self {
            Self::Screen(screen) => LocationKind::Screen(screen),
            Self::Rank(_) => LocationKind::Rank,
            Self::Threads(_) => LocationKind::Threads,
            Self::Function(_) => LocationKind::Function,
            Self::Layers(_) => LocationKind::Layers,
            Self::Histogram(..) => LocationKind::Histogram,
            Self::Site(_) => LocationKind::Site,
            Self::Communicator(_) => LocationKind::Communicator,
            Self::Block(_) => LocationKind::Block,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LocationKind {
    Screen(Screen),
    Rank,
    Threads,
    Function,
    Layers,
    Histogram,
    Site,
    Communicator,
    Block,
}

/// Since when figures are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// The last seconds.
    #[default]
    Recent,
    /// The beginning of observation.
    Start,
}

impl Span {
    pub const ALL: [Self; 2] = [Self::Recent, Self::Start];

    /// As it is called in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recent => "recent",
            Self::Start => "start",
        }
    }
}

/// What the screen of recent calls shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentOf {
    /// The rank asked for.
    pub(crate) of: Option<RankId>,
    /// What there may be calls of.
    pub(crate) running: Running,
}

impl RecentOf {
    pub(crate) const NOBODY: Self = Self { of: None, running: Running::Live };
}
