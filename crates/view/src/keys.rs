//! The key table: what every key does. Footer, help and documentation are made from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::content::Screen;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    Help,
    NextScreen,
    PreviousScreen,
    Screen(Screen),
    Down,
    Up,
    PageDown,
    PageUp,
    First,
    Last,
    Open,
    Back,
    Right,
    Left,
    Measure,
    Communicator,
    NextColumn,
    PreviousColumn,
    Invert,
    Span,
    Freeze,
    /// So many moments of a recording further.
    Moment(isize),
    NextMarked,
    PreviousMarked,
    Copy,
    WriteText,
    WriteJson,
    Suspend,
    Redraw,
    Filter,
    Editor,
    Views,
    SaveView,
    /// Only where something is being typed.
    Edit(Edit),
}

/// What a key asks for where a text is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    Enter,
    Apply,
    Cancel,
    Next,
    Previous,
    Up,
    Down,
    Clear,
}

/// Part of the help that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Screens,
    Moving,
    Table,
    Time,
    Filter,
    /// While a text is being typed.
    Typing,
    Taking,
    /// Of a trace.
    Calls,
    Program,
}

impl Section {
    /// Those of the screens of profiles.
    pub const ALL: [Self; 8] =
        [Self::Screens, Self::Moving, Self::Table, Self::Time, Self::Filter, Self::Typing, Self::Taking, Self::Program];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Screens => "Screens",
            Self::Moving => "Moving",
            Self::Table => "Tables",
            Self::Time => "Time",
            Self::Filter => "Filter and views",
            Self::Typing => "While typing",
            Self::Taking => "Taking away",
            Self::Calls => "Calls and messages",
            Self::Program => "Program",
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub struct Binding<A = Action> {
    pub section: Section,
    /// As they are shown.
    pub shown: &'static str,
    pub(super) keys: &'static [Key],
    pub action: A,
    pub what: &'static str,
    /// The same in a word or two; what has one is in the footer if there is room, the first of the table first.
    pub short: Option<&'static str>,
}

/// A key, and which of Ctrl and Alt are held. (Shift is in the letter.)
#[derive(Debug)]
pub(super) struct Key(KeyCode, KeyModifiers);

pub(super) const fn key(letter: char) -> Key {
    Key(KeyCode::Char(letter), KeyModifiers::NONE)
}

pub(super) const fn ctrl(letter: char) -> Key {
    Key(KeyCode::Char(letter), KeyModifiers::CONTROL)
}

pub(super) const fn named(code: KeyCode) -> Key {
    Key(code, KeyModifiers::NONE)
}

const fn alt(code: KeyCode) -> Key {
    Key(code, KeyModifiers::ALT)
}

macro_rules! bindings {
    ($($section:ident $shown:literal [$($key:expr),*] $action:expr, $what:literal $(, $short:literal)?;)*) => {
        &[$($crate::keys::Binding {
            section: $crate::keys::Section::$section,
            shown: $shown,
            keys: &[$($key),*],
            action: $action,
            what: $what,
            short: $crate::keys::bindings!(@short $($short)?),
        },)*]
    };
    (@short) => { None };
    (@short $short:literal) => { Some($short) };
}
pub(super) use bindings;

/// All of them.
pub const BINDINGS: &[Binding] = bindings! {
    Program "q" [key('q'), ctrl('c')] Action::Quit, "End the view; that of an observation prints the profile", "quit";
    Program "?" [key('?'), named(KeyCode::F(1))] Action::Help, "This help; again, or Esc, closes it", "help";
    Screens "Tab" [named(KeyCode::Tab)] Action::NextScreen, "Next screen", "next";
    Screens "Shift-Tab" [named(KeyCode::BackTab)] Action::PreviousScreen, "Previous screen";
    Screens "1" [key('1')] Action::Screen(Screen::Overview), "Overview";
    Screens "2" [key('2')] Action::Screen(Screen::Ranks), "Ranks";
    Screens "3" [key('3')] Action::Screen(Screen::Functions), "Functions";
    Screens "4" [key('4')] Action::Screen(Screen::CallSites), "Call sites";
    Screens "5" [key('5')] Action::Screen(Screen::Matrix), "Communication matrix";
    Screens "6" [key('6')] Action::Screen(Screen::Communicators), "Communicators";
    Screens "7" [key('7')] Action::Screen(Screen::Requests), "Requests under way";
    Screens "8" [key('8')] Action::Screen(Screen::Recent), "Recent calls of a rank: of the one under the cursor, if there is one";
    Screens "9" [key('9')] Action::Screen(Screen::Waiting), "Who waits for whom";
    Screens "0" [key('0')] Action::Screen(Screen::Stacks), "The tenth: stacks of all threads";
    Screens "T" [key('T')] Action::Screen(Screen::Timeline), "Timeline: what all ranks call now; its keys are those of a trace";
    Moving "Enter" [named(KeyCode::Enter)] Action::Open,
        "Look into the row or the square: a rank's functions, a function's ranks; among stacks, fold or unfold", "open";
    Moving "Esc" [named(KeyCode::Esc), named(KeyCode::Backspace)] Action::Back, "Back", "back";
    Moving "l →" [key('l'), named(KeyCode::Right)] Action::Right, "Enter; in the matrix one column, among recent calls one rank, otherwise in a recording one moment further";
    Moving "h ←" [key('h'), named(KeyCode::Left)] Action::Left, "Esc; in the matrix one column, among recent calls one rank, otherwise in a recording one moment back";
    Moving "j ↓" [key('j'), named(KeyCode::Down)] Action::Down, "Next row";
    Moving "k ↑" [key('k'), named(KeyCode::Up)] Action::Up, "Previous row";
    Moving "PgDn Ctrl-d" [named(KeyCode::PageDown), ctrl('d'), ctrl('f')] Action::PageDown, "A page down";
    Moving "PgUp Ctrl-u" [named(KeyCode::PageUp), ctrl('u'), ctrl('b')] Action::PageUp, "A page up";
    Moving "g Home" [key('g'), named(KeyCode::Home)] Action::First, "First row";
    Moving "G End" [key('G'), named(KeyCode::End)] Action::Last, "Last row";
    Moving "n" [key('n')] Action::NextMarked, "Next row that stands out";
    Moving "N" [key('N')] Action::PreviousMarked, "Previous row that stands out";
    Table "s >" [key('s'), key('>')] Action::NextColumn, "Sort by the next column", "sort";
    Table "S <" [key('S'), key('<')] Action::PreviousColumn, "Sort by the previous column";
    Table "I" [key('I')] Action::Invert, "Sort the other way round";
    Table "m" [key('m')] Action::Measure, "Matrix: bytes, calls or time";
    Table "c" [key('c')] Action::Communicator, "Matrix of this communicator; in the matrix, of the next one";
    Time "Space" [key(' ')] Action::Freeze, "Freeze the display, not the counting; again: go on. A recording: play, pause", "freeze";
    Time "t" [key('t')] Action::Span, "Figures of the last seconds, or since the beginning", "span";
    Time "]" [key(']')] Action::Moment(1), "One moment of a recording further";
    Time "[" [key('[')] Action::Moment(-1), "One moment back";
    Time "}" [key('}')] Action::Moment(10), "Ten moments further";
    Time "{" [key('{')] Action::Moment(-10), "Ten moments back";
    Filter "/" [key('/')] Action::Filter, "Show only rows for which a condition holds; nothing typed: all", "filter";
    Filter "e" [key('e')] Action::Editor, "The same in several lines";
    Filter "v" [key('v')] Action::Views, "Saved views";
    Filter "V" [key('V')] Action::SaveView, "Save this view under a name: filter, screen, order, span";
    Typing "Enter" [named(KeyCode::Enter)] Action::Edit(Edit::Enter), "Done; of several lines, a new line", "done";
    Typing "F2 Alt-Enter" [named(KeyCode::F(2)), alt(KeyCode::Enter)] Action::Edit(Edit::Apply), "Done";
    Typing "Esc Ctrl-c" [named(KeyCode::Esc), ctrl('c')] Action::Edit(Edit::Cancel), "Leave everything as it was", "cancel";
    Typing "Tab" [named(KeyCode::Tab)] Action::Edit(Edit::Next), "Complete; again: the next that fits", "complete";
    Typing "Shift-Tab" [named(KeyCode::BackTab)] Action::Edit(Edit::Previous), "The previous one";
    Typing "↑ Ctrl-p" [named(KeyCode::Up), ctrl('p')] Action::Edit(Edit::Up),
        "An earlier filter; of several lines, a line up", "earlier";
    Typing "↓ Ctrl-n" [named(KeyCode::Down), ctrl('n')] Action::Edit(Edit::Down), "A later one; a line down";
    Typing "Ctrl-u" [ctrl('u')] Action::Edit(Edit::Clear), "Delete what is before the cursor";
    Taking "y" [key('y')] Action::Copy, "Copy the row to the clipboard of the terminal";
    Taking "w" [key('w')] Action::WriteText, "Write the profile as text to a new file in the working directory";
    Taking "W" [key('W')] Action::WriteJson, "The same as JSON";
    Program "Ctrl-z" [ctrl('z')] Action::Suspend, "Back to the shell; fg returns";
    Program "Ctrl-l" [ctrl('l')] Action::Redraw, "Draw everything anew";
};

impl<A> Binding<A> {
    /// Whether it is a key of texts that are being typed.
    pub fn is_typing(&self) -> bool {
        self.section == Section::Typing
    }
}

/// What a key does.
pub fn action(event: &KeyEvent) -> Option<Action> {
    find(event, false)
}

/// What a key does where a text is being typed, if it is not typed itself.
pub(super) fn editing(event: &KeyEvent) -> Option<Edit> {
    match find(event, true)? {
        Action::Edit(edit) => Some(edit),
        _ => None,
    }
}

fn find(event: &KeyEvent, is_typing: bool) -> Option<Action> {
    find_in(BINDINGS, event, is_typing)
}

/// What a key does by one of the tables.
pub(super) fn find_in<A: Copy>(bindings: &[Binding<A>], event: &KeyEvent, is_typing: bool) -> Option<A> {
    let held = event.modifiers.intersection(KeyModifiers::CONTROL.union(KeyModifiers::ALT));
    let is_it = |key: &Key| key.0 == event.code && key.1 == held;
    let mut bindings = bindings.iter().filter(|binding| binding.is_typing() == is_typing);
    bindings.find(|binding| binding.keys.iter().any(is_it)).map(|binding| binding.action)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Of one table of keys.
    pub(crate) fn expect_one_meaning<A>(bindings: &[Binding<A>]) {
        for is_typing in [false, true] {
            let bindings = bindings.iter().filter(|binding| binding.is_typing() == is_typing);
            let keys: Vec<&Key> = bindings.flat_map(|binding| binding.keys).collect();
            for (index, key) in keys.iter().enumerate() {
                let same = keys.iter().skip(index + 1).find(|other| other.0 == key.0 && other.1 == key.1);
                assert!(same.is_none(), "{key:?}");
            }
        }
    }

    #[test]
    fn no_key_does_two_things() {
        expect_one_meaning(BINDINGS);
    }

    #[test]
    fn control_and_letters_are_told_apart() {
        let event = |letter, modifiers| KeyEvent::new(KeyCode::Char(letter), modifiers);
        assert_eq!(action(&event('c', KeyModifiers::CONTROL)), Some(Action::Quit));
        assert_eq!(action(&event('c', KeyModifiers::NONE)), Some(Action::Communicator));
        assert_eq!(action(&event('G', KeyModifiers::SHIFT)), Some(Action::Last));
        assert_eq!(action(&event('q', KeyModifiers::ALT)), None);
        assert_eq!(editing(&event('q', KeyModifiers::NONE)), None);
        assert_eq!(editing(&event('c', KeyModifiers::CONTROL)), Some(Edit::Cancel));
        assert_eq!(editing(&KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)), Some(Edit::Apply));
    }
}
