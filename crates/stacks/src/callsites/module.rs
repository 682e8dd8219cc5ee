//! What an address belongs to: a program, a library, or memory of no file.

use std::fmt;
use std::sync::{Arc, OnceLock};

use mpiprobe_discover::{Root, foreign::charged, mappings::FileId};
use mpiprobe_functions::FunctionId;

use super::{
    call_frames::CallFrames,
    image::Image,
    layer::{Layer, LayerCode, Layers},
    mpi_functions::MpiFunctions,
    vdso,
};

/// What tells one module from another.
///
/// A build id is the same on every node and for every copy of a file. Without one, a file is told by what and when it is on
/// this node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleId {
    /// The linker's digest of the file's content, in lower-case hexadecimal.
    BuildId(String),
    /// Device and inode, size in bytes, and time of the last change in ns since 1970.
    File { file: FileId, size: u64, modified_ns: i128 },
    /// A file that could not be opened, with its name.
    Unread { file: FileId, path: String },
    /// Memory of no file, by the kernel's name for it, such as `[vdso]`.
    Memory(String),
}

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuildId(id) => write!(f, "build-id:{id}"),
            Self::File { file, size, modified_ns } => {
                write!(f, "file:{:02x}:{:02x}:{}:{size}:{modified_ns}", file.major, file.minor, file.inode)
            }
            Self::Unread { file, path } => {
                write!(f, "unread:{:02x}:{:02x}:{}:{path}", file.major, file.minor, file.inode)
            }
            Self::Memory(name) => write!(f, "memory:{name}"),
        }
    }
}

/// One file with code, or one kind of memory with code.
///
/// Holds the file open: its names can be looked up after the processes have ended and the file was deleted, and no other file
/// gets its inode number meanwhile.
#[derive(Debug)]
pub struct Module {
    pub(super) id: ModuleId,
    /// For people.
    pub(super) path: String,
    /// As the processes know it, to look for other files beside it; any bytes.
    pub(super) raw_path: Vec<u8>,
    /// Whether the name was gone when a process was looked at.
    pub(super) deleted: bool,
    /// `None` for memory, for files that could not be opened, and for those that are no ELF files.
    pub(super) image: Option<Image>,
    /// A user who has mapped it: whoever that is may have chosen what it says.
    pub(super) user: u32,
    /// Where names are to be looked up first, if not in mpiprobe's own root.
    pub(super) root: Option<Arc<Root>>,
    pub(super) layers: OnceLock<Layers>,
    pub(super) frames: OnceLock<Option<CallFrames>>,
    pub(super) mpi: OnceLock<MpiFunctions>,
}

impl Module {
    pub fn id(&self) -> &ModuleId {
        &self.id
    }

    /// The path in the process's own file system, or a name in brackets for memory of no file; printable.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    pub(super) fn memory(name: String) -> Self {
        let path = name.clone();
        let image = if name == vdso::NAME { vdso::image() } else { None };
        Self { image, ..Self::new(ModuleId::Memory(name), path) }
    }

    /// A module of which nothing more is known.
    pub(super) fn new(id: ModuleId, path: String) -> Self {
        Self {
            id,
            path,
            raw_path: Vec::new(),
            deleted: false,
            image: None,
            user: 0,
            root: None,
            layers: OnceLock::new(),
            frames: OnceLock::new(),
            mpi: OnceLock::new(),
        }
    }

    /// The offset that stands for a byte of the file: its ELF address, or the byte's own place in what is not ELF.
    pub(super) fn offset_of(&self, in_file: u64) -> u64 {
        let address = self.image.as_ref().and_then(|image| image.segments().address_of(in_file));
        address.unwrap_or(in_file)
    }
}

/// A code address that means the same in every process that has the module, wherever it is loaded.
#[derive(Debug, Clone)]
pub struct ModuleAddress {
    pub module: Arc<Module>,
    /// The address in the ELF file's own address space. Where there is no ELF file: bytes from the start of the file or of the
    /// mapping; for an address that nothing is mapped at, the address itself.
    pub offset: u64,
}

impl PartialEq for ModuleAddress {
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset && self.module.id == other.module.id
    }
}

impl Eq for ModuleAddress {}

impl std::hash::Hash for ModuleAddress {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.module.id, self.offset).hash(state);
    }
}

impl Module {
    /// The MPI function whose code is at `address` of the file, by the names that the file gives to it.
    pub fn mpi_function(&self, address: u64) -> Option<FunctionId> {
        self.mpi_entry(address).map(|(function, _)| function)
    }

    /// The same, and whether it is Fortran's, which is given addresses of its arguments.
    pub fn mpi_entry(&self, address: u64) -> Option<(FunctionId, bool)> {
        let of = |image| charged(self.user, || MpiFunctions::of(image));
        self.mpi.get_or_init(|| self.image.as_ref().map(of).unwrap_or_default()).at(address)
    }

    /// Whether this is a library that only passes calls on to MPI's C functions.
    pub fn layer(&self) -> Option<Layer> {
        self.layers().whole
    }

    /// The layer that code at this offset belongs to.
    pub(super) fn layer_at(&self, offset: u64) -> Option<Layer> {
        let layers = self.layers();
        layers.whole.or_else(|| layers.function(offset))
    }

    /// Its code that only passes calls on and whose callers are on the stack; `None` if there is none.
    pub(super) fn layer_code(&self) -> Option<LayerCode<'_>> {
        let layers = self.layers();
        match layers.whole {
            Some(layer) => layer.is_called_by_user().then_some(LayerCode::Whole),
            None if layers.functions.is_empty() => None,
            None => Some(LayerCode::Functions(layers)),
        }
    }

    fn layers(&self) -> &Layers {
        let of = |image| charged(self.user, || Layers::of(image));
        self.layers.get_or_init(|| self.image.as_ref().map(of).unwrap_or_default())
    }
}

impl ModuleAddress {
    /// The layer that a call was made by, if this is its return address.
    pub fn layer(&self) -> Option<Layer> {
        self.module.layer_at(self.offset.checked_sub(1)?)
    }
}

/// Whether a file is a language layer of MPI as a whole.
pub fn is_layer(module: &Module) -> bool {
    module.layer().is_some()
}

/// Whether code of layers in a file may call MPI on its own account: in a layer's library, and in a program that it is linked into. A
/// tool that intercepts Fortran's procedures only has their names.
pub fn may_call_for_itself(module: &Module) -> bool {
    is_layer(module) || module.image.as_ref().is_some_and(Image::is_program)
}
