//! The layout of a process's MPI library before the observer has looked at the process: by what is known of the library from its file,
//! or from another process. So a process is understood from its first call after `MPI_Init` on, whoever else gets no time.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_attach_cookie};
use mpiprobe_common::{
    Layout, ThreadState,
    config::STAGE_ATTRIBUTE,
    flow::PREPARED,
    layout::{
        capability,
        template::{self, LAYOUT_WORDS, SEARCHED, Template, found, rule},
    },
};

use super::{completed, next, user::User};
use crate::{
    atomic::{add, barrier},
    maps::{LAYOUTS, LIBRARIES, LIBRARY_OF},
    statistics::process_counters,
};

/// Whether the layout of the thread's process is to be looked for here.
#[inline(always)]
pub fn is_wanted(thread: &ThreadState, layout: &Layout) -> bool {
    layout.known & (capability::COMMUNICATORS | capability::SETTLED) == 0 && thread.completed.is_recalled != PREPARED
}

/// Finds the layout of the process that has just completed a call, and goes on with that.
#[inline(always)]
pub fn prepare(context: &impl EbpfContext) {
    let Some((thread, ..)) = completed() else { return };
    thread.completed.is_recalled = PREPARED;
    // SAFETY: the helper takes the program's own context.
    let cookie = unsafe { bpf_get_attach_cookie(context.as_ptr()) };
    install(thread.process, thread.text_base, cookie);
    next(context, STAGE_ATTRIBUTE);
}

/// Answers 0; a function that is not inlined has to answer.
#[inline(never)]
fn install(process: u32, text_base: u64, cookie: u64) -> u32 {
    // SAFETY: the value is copied at once.
    let Some(&number) = (unsafe { LIBRARY_OF.get(&cookie) }) else { return 0 };
    let (Some(template), Some(layout)) = (LIBRARIES.get_ptr(number), LAYOUTS.get_ptr_mut(process)) else { return 0 };
    if text_base == 0 {
        return 0;
    }
    // SAFETY: map value pointers. A template is written before its number is given out. Threads that are here at once write the same,
    // and the observer writes a layout as a whole, and again if it was changed here meanwhile.
    let (template, layout) = unsafe { (&*template, &mut *layout) };
    let bias = text_base.wrapping_sub(template.code);
    if fill(template, layout, bias) != 0 {
        return 0;
    }
    layout.handles = template.layout.handles;
    barrier();
    layout.known |= template.early;
    let mut partial = 0;
    if template.search.stride != 0 {
        let seen = search(template, layout, bias);
        if seen & found::PREDEFINED == 0 {
            return 0;
        }
        if seen & found::COMMUNICATORS == 0 {
            partial = capability::PARTIAL;
        }
        if seen & found::DATATYPES == 0 {
            partial |= capability::DATATYPES;
        }
    }
    if is_right(layout) == 0 {
        return 0;
    }
    let known = template.layout.known & !(partial & capability::DATATYPES) | partial & capability::PARTIAL;
    barrier();
    layout.known = known | capability::PROVISIONAL;
    // What was found out before is looked at again.
    if let Some(counters) = process_counters(process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).communicators_freed, 1) };
    }
    0
}

/// The words of the layout. Not 0: one of them is not there yet.
#[inline(never)]
fn fill(template: &Template, layout: &mut Layout, bias: u64) -> u32 {
    let from = (&raw const template.layout).cast::<u64>();
    let to = (layout as *mut Layout).cast::<u64>();
    for index in 0..LAYOUT_WORDS {
        let how = template.rules[index];
        if how == rule::KEPT {
            continue;
        }
        // SAFETY: both are as many words as are gone through.
        unsafe {
            match template::resolve(how, *from.add(index), bias, &User) {
                Some(word) => *to.add(index) = word,
                None => return 1,
            }
        }
    }
    0
}

/// Looks at the places where objects may be found. Gives what was [`found`].
#[inline(never)]
fn search(template: &Template, layout: &mut Layout, bias: u64) -> u32 {
    let mut seen = 0;
    for index in 0..SEARCHED {
        if index as u32 >= template.search.count {
            break;
        }
        seen |= template::look(&template.search, template.search.places[index].wrapping_add(bias), layout, &User);
    }
    seen
}

/// Whether the predefined communicators are what they must be: 1, else 0.
#[inline(never)]
fn is_right(layout: &mut Layout) -> u32 {
    let right = template::find_own_job(layout, &User).is_some() && template::holds(layout, &User) == Some(true);
    right as u32
}
