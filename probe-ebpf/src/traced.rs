//! Programs that write calls down as they return, besides what those of the same names do that know nothing of it: loaded in their place
//! where somebody may want the course of events.

use core::ffi::c_void;

use aya_ebpf::{
    macros::{uprobe, uretprobe},
    programs::{ProbeContext, RetProbeContext},
};

use crate::{answer, call, current, semantics};

#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn traced_session(context: *mut c_void) -> u32 {
    answer::<true>(&ProbeContext::new(context))
}

#[uprobe]
pub fn traced_entry(context: ProbeContext) -> u32 {
    call::entry::<true>(&context);
    0
}

#[uretprobe]
pub fn traced_leave(context: RetProbeContext) -> u32 {
    let answer = call::leave::<true, true>(&context, current::id());
    semantics::go_on(&context, answer);
    0
}

#[uprobe]
pub fn traced_attribute(context: ProbeContext) -> u32 {
    semantics::attribute::<true>(&context);
    0
}

#[uprobe]
pub fn traced_measure(context: ProbeContext) -> u32 {
    semantics::measure::<true>(&context);
    0
}

#[uprobe]
pub fn traced_sum(context: ProbeContext) -> u32 {
    semantics::sum::<true>(&context);
    0
}

#[uprobe]
pub fn traced_post(context: ProbeContext) -> u32 {
    semantics::post::<true>(&context);
    0
}

#[uprobe]
pub fn traced_settle(context: ProbeContext) -> u32 {
    semantics::settle::<true>(&context);
    0
}

#[uprobe]
pub fn traced_follow(context: ProbeContext) -> u32 {
    semantics::follow::<true>(&context);
    0
}

#[uprobe]
pub fn traced_follow_any(context: ProbeContext) -> u32 {
    semantics::follow_any::<true>(&context);
    0
}

#[uprobe]
pub fn traced_start(context: ProbeContext) -> u32 {
    semantics::start::<true>(&context);
    0
}

/// Called at the end of all others: writes the call to a ring.
#[uprobe]
pub fn write_down(_context: ProbeContext) -> u32 {
    semantics::write_down();
    0
}
