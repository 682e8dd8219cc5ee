//! From return addresses to the places in the source that called MPI.
//!
//! [`AddressMap`] is a process's table of code, copied while it lives: it turns an absolute address into a
//! [`ModuleAddress`], which is the same in every rank that runs the same file, wherever the file was loaded.
//! [`Symboliser`] makes a [`CallSite`](mpiprobe_model::CallSite) of that, later and at leisure, from DWARF, symbol tables
//! or nothing but the module's name.
//!
//! Where the caller is one of MPI's own [language layers](Layer), [`unwind_out_of_layers`] finds who called the layer.
//!
//! The files belong to other users and may be hostile. Reads have limits, DWARF is parsed against a [budget](budget), and
//! whatever fails costs the names, never the address.

mod address_map;
mod budget;
mod call_frames;
mod caught;
mod code;
mod debug_files;
mod demangle;
mod dwarf;
mod exported;
mod frame_index;
mod frame_rules;
mod image;
mod layer;
mod layer_calls;
mod module;
mod modules;
mod mpi_functions;
mod names;
mod naming;
mod symboliser;
mod symbols;
#[cfg(test)]
mod tests;
mod unwind;
mod vdso;

pub use address_map::{AddressMap, LayerRegion};
pub use caught::{caught, is_caught};
pub use frame_rules::{Cfa, FrameRules, RULED_REGISTERS, Rule};
pub use layer::Layer;
pub use layer_calls::{LayerCall, calls_of_layer};
pub use module::{Module, ModuleAddress, ModuleId, is_layer, may_call_for_itself};
pub use modules::Modules;
pub use naming::Naming;
pub use symboliser::Symboliser;
pub use unwind::{Frame, Registers, layer_frame_at, unwind_out_of_layers};
