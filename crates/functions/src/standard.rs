//! Versions of the MPI standard.

use core::fmt;

/// A version of the standard. Of a function's first version, 2.2 and 3.1 mean "that one or an earlier one".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standard {
    Mpi2_2,
    Mpi3_0,
    Mpi3_1,
    Mpi4_0,
    Mpi4_1,
    Mpi5_0,
}

impl Standard {
    pub const ALL: [Self; 6] = [Self::Mpi2_2, Self::Mpi3_0, Self::Mpi3_1, Self::Mpi4_0, Self::Mpi4_1, Self::Mpi5_0];

    /// "3.1".
    pub const fn number(self) -> &'static str {
        match self {
            Self::Mpi2_2 => "2.2",
            Self::Mpi3_0 => "3.0",
            Self::Mpi3_1 => "3.1",
            Self::Mpi4_0 => "4.0",
            Self::Mpi4_1 => "4.1",
            Self::Mpi5_0 => "5.0",
        }
    }

    /// The version of that number, exactly as [`Self::number`] gives it.
    pub fn from_number(number: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standard| standard.number() == number)
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPI {}", self.number())
    }
}
