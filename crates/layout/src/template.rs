//! Layouts that hold for every process that maps a file, but for where the file is mapped.

use std::mem::offset_of;

use mpiprobe_common::{
    Layout,
    layout::{
        Memory, capability,
        template::{self, ELEMENT_SHIFT, Search, Template, found, rule},
    },
};

/// A word of a layout that may be an address: where it is, and how to get at it.
pub(super) struct WordLocation {
    offset: usize,
    word: fn(&mut Layout) -> &mut u64,
}

macro_rules! places {
    ($($name:ident = $($part:ident).+;)*) => {$(
        pub(super) const $name: WordLocation =
            WordLocation { offset: offset_of!(Layout, $($part).+), word: |layout| &mut layout.$($part).+ };
    )*
        /// All of them.
        pub(super) const PLACES: &[&WordLocation] = &[$(&$name),*];
    };
}

places! {
    COMM_WORLD = constants.comm_world;
    COMM_SELF = constants.comm_self;
    COMM_NULL = constants.comm_null;
    DATATYPE_NULL = constants.datatype_null;
    REQUEST_NULL = constants.request_null;
    COMPLETE_FIRST = constants.request_complete_first;
    COMPLETE_LAST = constants.request_complete_last;
    MESSAGE_NULL = constants.message_null;
    MESSAGE_NO_PROC = constants.message_no_proc;
    WIN_NULL = constants.win_null;
    FILE_NULL = constants.file_null;
    NO_OP = constants.no_op;
    UNWEIGHTED = constants.unweighted;
    WEIGHTS_EMPTY = constants.weights_empty;
    WORLD = communicators.world;
    OWN = communicators.own;
    COMMUNICATORS_BUILTIN = communicators.objects.builtin;
    COMMUNICATORS_DIRECT = communicators.objects.direct;
    COMMUNICATORS_INDIRECT = communicators.objects.indirect;
    DATATYPES_BUILTIN = datatypes.objects.builtin;
    DATATYPES_DIRECT = datatypes.objects.direct;
    DATATYPES_INDIRECT = datatypes.objects.indirect;
    REQUESTS_BUILTIN = requests.objects.builtin;
    REQUESTS_DIRECT = requests.objects.direct;
    REQUESTS_INDIRECT = requests.objects.indirect;
}

/// A template that is being made.
pub(super) struct Draft(Template);

impl Draft {
    /// All words as they are in `layout`; `code` is [`Template::code`].
    pub(super) fn new(layout: &Layout, code: u64) -> Self {
        let mut draft = Self(Template {
            layout: *layout,
            rules: [rule::GIVEN; _],
            code,
            early: 0,
            reserved: 0,
            search: Search::default(),
        });
        draft.0.layout.predefined = Default::default();
        // What is known, what handles are, and what the launcher has told; what the program has copies of.
        for word in [0, 8] {
            draft.set_rule(word, rule::KEPT);
        }
        for word in (offset_of!(Layout, predefined)..size_of::<Layout>()).step_by(8) {
            draft.set_rule(word, rule::KEPT);
        }
        draft
    }

    fn set_rule(&mut self, offset: usize, rule: u32) {
        if let Some(place) = self.0.rules.get_mut(offset / 8) {
            *place = rule;
        }
    }

    fn set(&mut self, place: &WordLocation, rule: u32, value: u64) {
        *(place.word)(&mut self.0.layout) = value;
        self.set_rule(place.offset, rule);
    }

    /// It is the same in all processes.
    pub(super) fn given(&mut self, place: &WordLocation, value: u64) {
        self.set(place, rule::GIVEN, value);
    }

    /// It is an address in the file.
    pub(super) fn address(&mut self, place: &WordLocation, address: u64) {
        self.set(place, rule::ADDRESS, address);
    }

    /// It stands in the variable at that address.
    pub(super) fn variable(&mut self, place: &WordLocation, address: u64) {
        self.set(place, rule::VARIABLE, address);
    }

    /// It is an element of the table whose address stands there.
    pub(super) fn element(&mut self, place: &WordLocation, address: u64, index: u64) {
        self.set(place, rule::ELEMENT, address & ((1 << ELEMENT_SHIFT) - 1) | index << ELEMENT_SHIFT);
    }

    /// A word of the layout that the draft was made of.
    pub(super) fn value(&mut self, place: &WordLocation) -> u64 {
        *(place.word)(&mut self.0.layout)
    }

    /// With what is known before there are objects, and where those may be found.
    pub(super) fn finish(mut self, early: u32, search: Search) -> Template {
        const NO_CAPABILITIES: u32 = capability::PROVISIONAL | capability::PARTIAL | capability::SETTLED;
        self.0.layout.known &= !NO_CAPABILITIES;
        self.0.early = early;
        self.0.search = search;
        self.0
    }
}

/// The layout of a process by a template, as the programs make it; `None`: its objects are not there, or are not what they must be.
pub(super) fn apply<M: Memory>(template: &Template, bias: u64, memory: &M) -> Option<Layout> {
    let mut layout = template.layout;
    for place in PLACES {
        let rule = template.rules.get(place.offset / 8).copied()?;
        let word = (place.word)(&mut layout);
        *word = template::resolve(rule, *word, bias, memory)?;
    }
    if template.search.stride != 0 {
        let places = template.search.places.iter().take(usize::try_from(template.search.count).ok()?);
        let seen = places.fold(found::NOTHING, |seen, place| {
            let place = place.wrapping_add(bias);
            let mut look = |place| template::look(&template.search, place, &mut layout, memory);
            seen | match look(place) {
                found::NOTHING => template::led_to(place, memory).map_or(found::NOTHING, look),
                found => found,
            }
        });
        let seen = template::judge(&template.search, seen, &mut layout, memory)?;
        if seen & found::DATATYPES == 0 {
            layout.known &= !capability::DATATYPES;
        }
        if seen & found::COMMUNICATORS == 0 {
            layout.known |= capability::PARTIAL;
        }
    }
    template::find_own_job(&mut layout, memory)?;
    template::holds(&layout, memory)?.then_some(layout)
}
