//! Tests on programs compiled here, and on this program itself.

mod address_maps;
mod debug_information;
mod hostile_files;
mod languages;
mod late_names;
mod layers;
mod own_program;
mod program;
mod real_jobs;
mod unwinding;
mod vdso;
