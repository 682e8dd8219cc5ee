//! All modules of all processes, each once.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use mpiprobe_discover::{
    Process, Root,
    foreign::{FileState, ForeignFile},
    mappings::{FileId, MappedFile},
    open_mapped::open_mapped,
};

use super::{
    image::Image,
    module::{Module, ModuleId},
};

/// The modules that somebody still refers to.
#[derive(Debug, Default)]
pub struct Modules {
    files: HashMap<FileId, Weak<Module>>,
    /// Of processes that have ended.
    named: HashMap<(FileId, String), Weak<Module>>,
    memory: HashMap<String, Arc<Module>>,
}

impl Modules {
    /// Files that are held open at once. A job has one or two hundred; each takes a descriptor.
    pub const MAX_FILES: usize = 512;
    /// Kinds of memory of no file: a program can give its own names to as many as it likes.
    const MAX_MEMORY: usize = 64;

    /// Files that are held open now.
    pub fn open_files(&self) -> usize {
        self.files.values().filter(|module| module.strong_count() > 0).count()
    }

    /// The module that a process has mapped.
    pub(super) fn file(&mut self, process: &Process, mapped: &MappedFile, root: Option<&Arc<Root>>) -> Arc<Module> {
        if let Some(module) = self.files.get(&mapped.id).and_then(Weak::upgrade) {
            return module;
        }
        if self.files.len() >= Self::MAX_FILES {
            self.files.retain(|_, module| module.strong_count() > 0);
        }
        let opened = if self.files.len() < Self::MAX_FILES { open(process, mapped, root) } else { None };
        if let Some(module) = opened {
            let module = Arc::new(module);
            self.files.insert(mapped.id, Arc::downgrade(&module));
            return module;
        }
        // Not to be remembered: nothing keeps the number of its inode from being given to another file.
        let path = mapped.display_path();
        let id = ModuleId::Unread { file: mapped.id, path: path.clone() };
        Arc::new(Module { deleted: mapped.is_deleted(), ..Module::new(id, path) })
    }

    /// The module that a process had mapped, which has ended: by its name, if the file was not changed after `began`, ns since 1970.
    pub(super) fn named(&mut self, mapped: &MappedFile, began: u64) -> Arc<Module> {
        let path = mapped.display_path();
        // It may have run on another node, where numbers of files are others: kept by name as well, as long as somebody uses it.
        if let Some(module) = self.named.get(&(mapped.id, path.clone())).and_then(Weak::upgrade) {
            return module;
        }
        let unread = || Module::new(ModuleId::Unread { file: mapped.id, path: path.clone() }, path.clone());
        let has_room = self.named.len() < Self::MAX_FILES;
        let module = Arc::new(if has_room { open_named(mapped, began).unwrap_or_else(unread) } else { unread() });
        self.named.insert((mapped.id, path), Arc::downgrade(&module));
        module
    }

    /// The module that stands for memory of that name.
    pub(super) fn memory(&mut self, name: &str) -> Arc<Module> {
        let name = if self.memory.len() < Self::MAX_MEMORY { name } else { "[anonymous]" };
        let module = self.memory.entry(name.to_owned()).or_insert_with(|| Arc::new(Module::memory(name.to_owned())));
        Arc::clone(module)
    }
}

fn open(process: &Process, mapped: &MappedFile, root: Option<&Arc<Root>>) -> Option<Module> {
    opened(open_mapped(process, mapped).ok()?, mapped, (process.user().ok()?, root))
}

fn open_named(mapped: &MappedFile, began: u64) -> Option<Module> {
    let root = Root::own().ok()?;
    let user = rustix::process::getuid().as_raw();
    let mut files = mapped.candidate_paths().into_iter().filter_map(|path| root.open_regular(&path, user).ok());
    let is_unchanged = |file: &ForeignFile| file.state().is_ok_and(|state| modified_ns(&state) <= i128::from(began));
    opened(files.find(is_unchanged)?, mapped, (user, None))
}

fn modified_ns(state: &FileState) -> i128 {
    i128::from(state.modified.0) * 1_000_000_000 + i128::from(state.modified.1)
}

fn opened(file: ForeignFile, mapped: &MappedFile, (user, root): (u32, Option<&Arc<Root>>)) -> Option<Module> {
    let state = file.state().ok()?;
    let image = Image::open(file);
    let id = match image.as_ref().and_then(Image::build_id) {
        Some(id) => ModuleId::BuildId(hexadecimal(id)),
        None => ModuleId::File { file: mapped.id, size: state.size, modified_ns: modified_ns(&state) },
    };
    Some(Module {
        raw_path: mapped.candidate_paths().into_iter().next().unwrap_or_default(),
        deleted: mapped.is_deleted(),
        image,
        user,
        root: root.cloned(),
        ..Module::new(id, mapped.display_path())
    })
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
