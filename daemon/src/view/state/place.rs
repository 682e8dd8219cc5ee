//! Where in the view one is: a screen, or something looked into from there.

use crate::analyse::RankId;

/// The screens, by their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Screen {
    #[default]
    Overview,
    Ranks,
    Functions,
}

impl Screen {
    pub const ALL: [Self; 3] = [Self::Overview, Self::Ranks, Self::Functions];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Ranks => "Ranks",
            Self::Functions => "Functions",
        }
    }

    /// The key that leads there.
    pub fn number(self) -> u8 {
        (1..).zip(Self::ALL).find(|(_, screen)| *screen == self).map_or(0, |(number, _)| number)
    }

    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The one so many places further, round in circles.
    #[must_use]
    pub fn step(self, steps: usize) -> Self {
        let index = (usize::from(self.number()) + steps + Self::ALL.len() - 1) % Self::ALL.len();
        Self::ALL.get(index).copied().unwrap_or(self)
    }
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Screen(Screen),
    /// One rank: its functions.
    Rank(RankId),
    /// One function: what it is in each rank.
    Function(&'static str),
}

impl Place {
    /// Places of a kind have their sorting in common.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Screen(screen) => Kind::Screen(screen),
            Self::Rank(_) => Kind::Rank,
            Self::Function(_) => Kind::Function,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Screen(Screen),
    Rank,
    Function,
}
