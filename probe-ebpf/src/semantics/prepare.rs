//! The layout of a process's MPI library before the observer has looked at the process: by what is known of the library from its file,
//! or from another process. So a process is understood from its first call after `MPI_Init` on, whoever else gets no time.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_attach_cookie};
use mpiprobe_common::{
    Layout, ThreadState,
    tables::Stage,
    flow::PREPARED,
    layout::{
        capability,
        template::{self, LAYOUT_WORDS, SEARCHED, Template, found, rule},
    },
};

use super::{completed, next, user::User};
use crate::{
    apart::given,
    atomic::{add, barrier, from_here_on},
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
    install_layout(thread.process, thread.text_base, cookie);
    next(context, Stage::Attribute);
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn install_layout(process: u32, text_base: u64, cookie: u64) -> u32 {
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
    if fill_layout(template, layout, bias) != 0 {
        return 0;
    }
    layout.handles = template.layout.handles;
    barrier();
    layout.known |= template.early;
    let mut partial = 0;
    if template.search.stride != 0 {
        let seen = search_objects(template, layout, bias);
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
    if is_layout_right(layout) == 0 {
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
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn fill_layout(template: *const Template, layout: *mut Layout, bias: u64) -> u32 {
    given!(template, layout);
    for index in 0..LAYOUT_WORDS as u32 {
        if fill_word(template, layout, index, bias) != 0 {
            return 1;
        }
    }
    0
}

/// One of the words. Not 0: it is not there yet.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn fill_word(template: *const Template, layout: *mut Layout, index: u32, bias: u64) -> u32 {
    given!(template, layout);
    let index = from_here_on(index.into()) as usize;
    if index >= LAYOUT_WORDS {
        return 1;
    }
    // SAFETY: all three are as many words, or rules for them.
    unsafe {
        let how = *(&raw const template.rules).cast::<u32>().add(index);
        if how == rule::KEPT {
            return 0;
        }
        let word = *(&raw const template.layout).cast::<u64>().add(index);
        match template::resolve(how, word, bias, &User) {
            Some(word) => *(layout as *mut Layout).cast::<u64>().add(index) = word,
            None => return 1,
        }
    }
    0
}

/// Looks at the places where objects may be found. Gives what was [`found`] if that is enough, else nothing.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn search_objects(template: *const Template, layout: *mut Layout, bias: u64) -> u32 {
    given!(template, layout);
    let mut seen = 0;
    for index in 0..SEARCHED {
        if index as u32 >= template.search.count {
            break;
        }
        seen |= look_at_place(template, layout, template.search.places[index].wrapping_add(bias));
    }
    judge_objects(template, seen, layout)
}

/// Looks at one of them, and at where it leads.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn look_at_place(template: *const Template, layout: *mut Layout, place: u64) -> u32 {
    let seen = look_at_object(template, layout, place);
    match template::led_to(place, &User) {
        Some(object) if seen == found::NOTHING => look_at_object(template, layout, object),
        _ => seen,
    }
}

/// Looks at what may be an object.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn look_at_object(template: *const Template, layout: *mut Layout, place: u64) -> u32 {
    given!(template, layout);
    template::look(&template.search, place, layout, &User)
}

/// What was found at all places; nothing, if that is not enough.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn judge_objects(template: *const Template, seen: u32, layout: *mut Layout) -> u32 {
    given!(template, layout);
    template::judge(&template.search, seen, layout, &User).unwrap_or(found::NOTHING)
}

/// Whether the predefined communicators are what they must be: 1, else 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_layout_right(layout: *mut Layout) -> u32 {
    given!(layout);
    let right = template::find_own_job(layout, &User).is_some() && template::holds(layout, &User) == Some(true);
    right as u32
}
