//! The configuration, and the tables, which are listed in `mpiprobe_common::tables`.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    macros::map,
    maps::{
        Array, Array as Mapped, HashMap as GrowingHash, HashMap as Hash, PerCpuArray as PerProcessor, ProgramArray as Programs,
        RingBuf as Ring, Stack,
    },
};
use mpiprobe_common::{Config, with_every_table};

/// Set by the daemon before load.
#[unsafe(no_mangle)]
static CONFIG: Config = Config::DEFAULT;

/// Fields of the configuration as the loader has set them: read volatile, because the loader rewrites the section behind
/// the compiler's back, so that initial values must not be folded in.
pub mod configured {
    use core::ptr::read_volatile;

    use mpiprobe_common::{EnvironmentFields, OpenCalls, config::{COMM_LENGTH, Namespace}};

    use super::CONFIG;

    macro_rules! fields {
        ($($field:ident: $type:ty),* $(,)?) => {$(
            #[inline(always)]
            pub fn $field() -> $type {
                // SAFETY: a field of a live static, aligned and initialised.
                unsafe { read_volatile(&raw const CONFIG.$field) }
            }
        )*};
    }

    fields! {
        exec_name: [u8; COMM_LENGTH],
        exec_uid: u32,
        has_unchosen: u32,
        nested: u32,
        open_calls: OpenCalls,
        pcontrol_plus_1: u32,
        phase_slots: u32,
        process_slots: u32,
        read_call_sites: u32,
        unseen_outer: u32,
        read_stack: u32,
        recent: u32,
        rings: u32,
        ring_lines: u32,
        budget: u32,
        stats_entries: u32,
        thread_slots: u32,
        trace: u32,
        flow_slots: u32,
        traffic: u32,
        communicator_slots: u32,
        handle_stores: u32,
        many_handle_stores: u32,
        call_cache_slots: u32,
        job: u32,
        environment: EnvironmentFields,
        namespace: Namespace,
    }
}

/// A table as the kernel is asked for it: where it is not as large as by default, the loader says so.
macro_rules! table {
    (Array $size:expr) => { Array::with_max_entries($size, 0) };
    (Mapped $size:expr) => { Mapped::with_max_entries($size, BPF_F_MMAPABLE) };
    (PerProcessor $size:expr) => { PerProcessor::with_max_entries($size, 0) };
    (Hash $size:expr) => { Hash::with_max_entries($size, 0) };
    (GrowingHash $size:expr) => { GrowingHash::with_max_entries($size, BPF_F_NO_PREALLOC) };
    (Stack $size:expr) => { Stack::with_max_entries($size, 0) };
    (Programs $size:expr) => { Programs::with_max_entries($size, 0) };
    (Ring $size:expr) => { Ring::with_byte_size($size, 0) };
}

macro_rules! declare {
    ($config:ident; $($(#[$doc:meta])* $name:ident: $kind:ident<$($type:ty),*> = $size:expr;)*) => {$(
        $(#[$doc])*
        #[map]
        pub static $name: $kind<$($type),*> = table!($kind {
            let $config = &Config::DEFAULT;
            let _ = $config;
            $size
        });
    )*};
}

with_every_table!(declare);
