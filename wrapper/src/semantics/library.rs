//! The MPI library: what it fixes for all programs, and how it is asked about its objects.
//!
//! Only `PMPI_` functions are asked that look at an object and do nothing else, only about objects that a call has just used
//! with success, and what they say is remembered.

use core::{
    cell::UnsafeCell,
    ffi::{CStr, c_char, c_int, c_void},
    mem::transmute,
    ptr,
};

use mpiprobe_common::{
    Layout,
    file::LAYOUT_REGION,
    layout::{Interface, MPICH, OPEN_MPI, STANDARD_ABI, capability},
};

use crate::{file, imports, message::SavedErrno, next::after_this};

/// A question about the object of a handle: `MPI_Type_size`, `MPI_Comm_rank` and the like.
pub(super) type Ask = unsafe extern "C" fn(u64, *mut c_int) -> c_int;
/// The same with an answer of 64 bits: `MPI_Type_size_x`.
pub(super) type AskLarge = unsafe extern "C" fn(u64, *mut i64) -> c_int;
/// The same with a handle as the answer: `MPI_Comm_group`.
pub(super) type AskHandle = unsafe extern "C" fn(u64, *mut u64) -> c_int;
pub(super) type Translate = unsafe extern "C" fn(u64, c_int, *const c_int, u64, *mut c_int) -> c_int;
pub(super) type Free = unsafe extern "C" fn(*mut u64) -> c_int;
/// `MPI_Graph_neighbors_count`, `MPI_Dist_graph_neighbors_count`.
pub(super) type CountNeighbours = unsafe extern "C" fn(u64, c_int, *mut c_int) -> c_int;
pub(super) type CountBothWays = unsafe extern "C" fn(u64, *mut c_int, *mut c_int, *mut c_int) -> c_int;
/// `MPI_Graph_neighbors`, `MPI_Dist_graph_neighbors`: who they are, with their weights in the latter; as many as there is room for.
pub(super) type ListNeighbours = unsafe extern "C" fn(u64, c_int, c_int, *mut c_int) -> c_int;
pub(super) type ListBothWays =
    unsafe extern "C" fn(u64, c_int, *mut c_int, *mut c_int, c_int, *mut c_int, *mut c_int) -> c_int;
/// `MPI_Cart_get`: so many dimensions with their lengths, whether they are periodic, and where in them the process is.
pub(super) type AskGrid = unsafe extern "C" fn(u64, c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
/// `MPI_Group_from_session_pset`.
pub(super) type AskGroup = unsafe extern "C" fn(u64, *const c_char, *mut u64) -> c_int;
pub(super) type AskState = unsafe extern "C" fn(*mut c_int) -> c_int;

/// Handles are passed as whole registers: of a narrow one the library looks at the lower half.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    /// What is known without looking into objects.
    pub(super) layout: Layout,
    /// `MPI_Type_size_c` or `MPI_Type_size_x`. A library older than MPI 3 has the other one only, to which datatypes above 2 GiB are unknown.
    pub(super) large_type_size: Option<AskLarge>,
    pub(super) type_size: Option<Ask>,
    pub(super) comm_rank: Option<Ask>,
    pub(super) comm_size: Option<Ask>,
    pub(super) comm_remote_size: Option<Ask>,
    pub(super) comm_test_inter: Option<Ask>,
    pub(super) comm_group: Option<AskHandle>,
    pub(super) comm_remote_group: Option<AskHandle>,
    pub(super) win_group: Option<AskHandle>,
    pub(super) topo_test: Option<Ask>,
    pub(super) cart_dimensions: Option<Ask>,
    pub(super) cart_get: Option<AskGrid>,
    pub(super) graph_neighbours: Option<CountNeighbours>,
    pub(super) graph_neighbour_list: Option<ListNeighbours>,
    pub(super) distributed_neighbours: Option<CountBothWays>,
    pub(super) distributed_neighbour_lists: Option<ListBothWays>,
    pub(super) group_of_session: Option<AskGroup>,
    pub(super) translate_ranks: Option<Translate>,
    pub(super) free_group: Option<Free>,
    pub(super) initialized: Option<AskState>,
    pub(super) finalized: Option<AskState>,
}

struct LibraryCell(UnsafeCell<Option<Library>>);

// SAFETY: written once, by the thread that makes the file, before any thread has a slot; read by threads that have one.
unsafe impl Sync for LibraryCell {}

static LIBRARY: LibraryCell = LibraryCell(UnsafeCell::new(None));

/// The library; `None`: there is none that is known.
#[inline]
pub(crate) fn known() -> Option<&'static Library> {
    // SAFETY: see `LibraryCell`.
    unsafe { (*LIBRARY.0.get()).as_ref() }
}

/// Finds it. To be called once, before any thread has a slot; `path` is its file's, if known.
pub(crate) fn find(path: &[u8]) {
    let Some(interface) = interface(path) else { return };
    let mut layout = Layout {
        known: capability::CONSTANTS | capability::BUILTIN_SIZES,
        handles: interface.handles,
        constants: interface.constants,
        status: interface.status,
        ..Layout::default()
    };
    if interface.handles == OPEN_MPI.handles {
        fill_addresses(&mut layout);
    }
    // SAFETY: each has the type that the standard gives to the function of that name, with handles widened.
    let library = unsafe {
        Library {
            layout,
            large_type_size: after_this(c"PMPI_Type_size_c")
                .or_else(|| after_this(c"PMPI_Type_size_x"))
                .map(|f| transmute::<*mut c_void, AskLarge>(f)),
            type_size: after_this(c"PMPI_Type_size").map(|f| transmute::<*mut c_void, Ask>(f)),
            comm_rank: after_this(c"PMPI_Comm_rank").map(|f| transmute::<*mut c_void, Ask>(f)),
            comm_size: after_this(c"PMPI_Comm_size").map(|f| transmute::<*mut c_void, Ask>(f)),
            comm_remote_size: after_this(c"PMPI_Comm_remote_size").map(|f| transmute::<*mut c_void, Ask>(f)),
            comm_test_inter: after_this(c"PMPI_Comm_test_inter").map(|f| transmute::<*mut c_void, Ask>(f)),
            comm_group: after_this(c"PMPI_Comm_group").map(|f| transmute::<*mut c_void, AskHandle>(f)),
            comm_remote_group: after_this(c"PMPI_Comm_remote_group").map(|f| transmute::<*mut c_void, AskHandle>(f)),
            win_group: after_this(c"PMPI_Win_get_group").map(|f| transmute::<*mut c_void, AskHandle>(f)),
            topo_test: after_this(c"PMPI_Topo_test").map(|f| transmute::<*mut c_void, Ask>(f)),
            cart_dimensions: after_this(c"PMPI_Cartdim_get").map(|f| transmute::<*mut c_void, Ask>(f)),
            cart_get: after_this(c"PMPI_Cart_get").map(|f| transmute::<*mut c_void, AskGrid>(f)),
            graph_neighbours: after_this(c"PMPI_Graph_neighbors_count")
                .map(|f| transmute::<*mut c_void, CountNeighbours>(f)),
            graph_neighbour_list: after_this(c"PMPI_Graph_neighbors")
                .map(|f| transmute::<*mut c_void, ListNeighbours>(f)),
            distributed_neighbour_lists: after_this(c"PMPI_Dist_graph_neighbors")
                .map(|f| transmute::<*mut c_void, ListBothWays>(f)),
            distributed_neighbours: after_this(c"PMPI_Dist_graph_neighbors_count")
                .map(|f| transmute::<*mut c_void, CountBothWays>(f)),
            group_of_session: after_this(c"PMPI_Group_from_session_pset")
                .map(|f| transmute::<*mut c_void, AskGroup>(f)),
            translate_ranks: after_this(c"PMPI_Group_translate_ranks").map(|f| transmute::<*mut c_void, Translate>(f)),
            free_group: after_this(c"PMPI_Group_free").map(|f| transmute::<*mut c_void, Free>(f)),
            initialized: after_this(c"PMPI_Initialized").map(|f| transmute::<*mut c_void, AskState>(f)),
            finalized: after_this(c"PMPI_Finalized").map(|f| transmute::<*mut c_void, AskState>(f)),
        }
    };
    if let Some(place) = file::place(LAYOUT_REGION, 0) {
        // SAFETY: an entry of the file that nobody else writes.
        unsafe { place.as_ptr().write(library.layout) };
    }
    // SAFETY: see `LibraryCell`.
    unsafe { *LIBRARY.0.get() = Some(library) };
}

/// Which binary interface the library has; `None`: there is no MPI.
fn interface(path: &[u8]) -> Option<Interface> {
    const ABI: &[u8] = b"libmpi_abi";
    if after_this(c"ompi_mpi_comm_world").is_some() {
        Some(OPEN_MPI)
    } else if path.windows(ABI.len()).any(|part| part == ABI) {
        Some(STANDARD_ABI)
    } else if after_this(c"PMPI_Init").is_some() {
        Some(MPICH)
    } else {
        None
    }
}

/// Open MPI's handles are addresses of its variables, as the program sees them: which may have a copy of its own.
fn fill_addresses(layout: &mut Layout) {
    let constants = &mut layout.constants;
    constants.comm_world = address(c"ompi_mpi_comm_world");
    constants.comm_self = address(c"ompi_mpi_comm_self");
    constants.comm_null = address(c"ompi_mpi_comm_null");
    constants.datatype_null = address(c"ompi_mpi_datatype_null");
    constants.request_null = address(c"ompi_request_null");
    constants.message_null = address(c"ompi_message_null");
    constants.message_no_proc = address(c"ompi_message_no_proc");
    constants.no_op = address(c"ompi_mpi_op_no_op");
    let empty = address(c"ompi_request_empty");
    if empty != 0 {
        (constants.request_complete_first, constants.request_complete_last) = (empty, empty);
    }
}

fn address(name: &CStr) -> u64 {
    // SAFETY: a name that ends in NUL.
    let found = unsafe { imports::dlsym(libc::RTLD_DEFAULT, name) };
    // One that was loaded later is not among what all see.
    if found.is_null() { after_this(name).map_or(0, |found| found as u64) } else { found as u64 }
}

impl Library {
    /// What the library answers to a question about an object.
    pub(super) fn ask(question: Option<Ask>, handle: u64) -> Option<i32> {
        let _errno = SavedErrno::save();
        let mut answer = 0;
        // SAFETY: by the contract of this module, of an object that exists.
        let result = unsafe { question?(handle, &raw mut answer) };
        if result == 0 { Some(answer) } else { None }
    }

    /// Bytes of data in a datatype.
    pub(super) fn size_of(&self, datatype: u64) -> Option<u64> {
        let Some(question) = self.large_type_size else {
            // What does not fit is "undefined", which is negative.
            return Self::ask(self.type_size, datatype).and_then(|size| u64::try_from(size).ok());
        };
        let _errno = SavedErrno::save();
        let mut answer = 0;
        // SAFETY: by the contract of this module, of an object that exists.
        let result = unsafe { question(datatype, &raw mut answer) };
        if result == 0 { u64::try_from(answer).ok() } else { None }
    }

    /// Whether `MPI_COMM_WORLD` may be asked about.
    pub(super) fn has_world(&self) -> bool {
        let _errno = SavedErrno::save();
        let ask = |question: Option<AskState>| {
            let mut answer = 0;
            // SAFETY: these may be called at any time.
            let result = question.map_or(1, |question| unsafe { question(ptr::from_mut(&mut answer)) });
            result == 0 && answer != 0
        };
        ask(self.initialized) && !ask(self.finalized)
    }
}
