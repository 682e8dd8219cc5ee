//! One function of the C binding.

use crate::{Argument, Group, Operation, Role, Standard};

/// A function of the C binding of MPI; `MPI_X` and `PMPI_X` are one function, a large-count variant is another.
#[derive(Debug)]
pub struct Function {
    /// "MPI_Send".
    pub name: &'static str,
    pub group: Group,
    pub arguments: &'static [Argument],
    /// Version that brought it, see [`Standard`].
    pub since: Standard,
    /// Version that removed it, although libraries go on exporting it.
    pub removed: Option<Standard>,
    /// Probed unless the user says otherwise.
    pub default: bool,
    /// Called in a loop until something happens.
    pub polling: bool,
    pub operation: Operation,
    pub fortran: Fortran,
    pub(crate) large_count: LargeCount,
}

/// Which Fortran bindings a function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fortran {
    /// `mpif.h` and the `mpi` module.
    pub f90: bool,
    /// The `mpi_f08` module.
    pub f08: bool,
}

/// How a function relates to the large-count functions, whose names end in `_c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeCount {
    None,
    /// Has that large-count variant.
    Variant(FunctionId),
    /// Is the large-count variant of that one.
    Of(FunctionId),
}

impl Function {
    /// Whether this is a large-count variant, such as `MPI_Send_c`.
    pub const fn is_large_count(&self) -> bool {
        matches!(self.large_count, LargeCount::Of(_))
    }

    /// Of a large-count variant the ordinary function: `MPI_Send` of `MPI_Send_c`.
    pub const fn large_count_of(&self) -> Option<FunctionId> {
        match self.large_count {
            LargeCount::Of(id) => Some(id),
            LargeCount::None | LargeCount::Variant(_) => None,
        }
    }

    /// Of an ordinary function the large-count variant: `MPI_Send_c` of `MPI_Send`.
    pub const fn large_count_variant(&self) -> Option<FunctionId> {
        match self.large_count {
            LargeCount::Variant(id) => Some(id),
            LargeCount::None | LargeCount::Of(_) => None,
        }
    }

    /// Whether that version of the standard has it.
    pub fn is_in(&self, standard: Standard) -> bool {
        self.since <= standard && self.removed.is_none_or(|removed| standard < removed)
    }

    /// The name without `MPI_`.
    pub fn short_name(&self) -> &'static str {
        self.name.strip_prefix("MPI_").unwrap_or(self.name)
    }

    /// Index of the first argument of that role.
    pub fn position(&self, role: Role) -> Option<usize> {
        self.arguments.iter().position(|argument| argument.role == role)
    }
}

/// A function by its place in [`FUNCTIONS`](crate::table::FUNCTIONS). Stable within a build, not between versions of the table.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u16);

impl FunctionId {
    /// For the generated table, whose ids are right by construction.
    pub(crate) const fn generated(index: u16) -> Self {
        Self(index)
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The same as a number, as the tables have it.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether it may be called before MPI is initialised (MPI 4.1, 11.4.1, "MPI functionality that is always available"), apart from what
    /// initialises it or begins a session, and what is done in that.
    pub fn may_precede_init(self) -> bool {
        const ALWAYS: [&str; 11] = [
            "MPI_Initialized",
            "MPI_Finalized",
            "MPI_Get_version",
            "MPI_Get_library_version",
            "MPI_Info_",
            "MPI_Errhandler_",
            "MPI_Error_",
            "MPI_Add_error_",
            "MPI_Remove_error_",
            "MPI_T_",
            "MPI_Abi_",
        ];
        let function = self.function();
        function.group != Group::InitFinalize && ALWAYS.iter().any(|prefix| function.name.starts_with(prefix))
    }
}
