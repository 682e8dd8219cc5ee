//! What keys do on the screen of a trace.

use crossterm::event::KeyCode;

use crate::keys::{Binding, Section, bindings, ctrl, key, named};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineAction {
    Quit,
    Help,
    Left,
    Right,
    /// Half a screen.
    PanLeft,
    PanRight,
    Down,
    Up,
    PageDown,
    PageUp,
    First,
    Last,
    Beginning,
    /// Of a job that runs, from then on: follow it.
    End,
    /// Stands still, or goes on with the job.
    Freeze,
    ZoomIn,
    ZoomOut,
    /// So that the call under the cursor is as wide as half of the screen.
    ZoomOnCall,
    Whole,
    Back,
    Fold,
    Unfold,
    NextCall,
    PreviousCall,
    LongestCall,
    LongestWait,
    Search,
    NextFound,
    PreviousFound,
    Lines,
    Details,
    Copy,
    /// Of a job that runs, to a file.
    Write,
    Suspend,
    Redraw,
}

/// Parts of the help.
pub const TIMELINE_SECTIONS: &[Section] =
    &[Section::Moving, Section::Time, Section::Calls, Section::Taking, Section::Program];

/// All keys.
pub const TIMELINE_BINDINGS: &[Binding<TimelineAction>] = bindings! {
    Program "q" [key('q'), ctrl('c')] TimelineAction::Quit, "End the view", "quit";
    Program "?" [key('?'), named(KeyCode::F(1))] TimelineAction::Help, "This help; again, or Esc, closes it", "help";
    Time "+ i" [key('+'), key('='), key('i')] TimelineAction::ZoomIn, "Half of the time, around the cursor", "zoom in";
    Time "- o" [key('-'), key('o')] TimelineAction::ZoomOut, "Twice the time, around the cursor", "zoom out";
    Time "Enter" [named(KeyCode::Enter)] TimelineAction::ZoomOnCall, "The call under the cursor as wide as half of the screen", "zoom on call";
    Time "a 0" [key('a'), key('0')] TimelineAction::Whole, "The whole trace; of a job that runs (a): all that is kept";
    Time "Esc" [named(KeyCode::Esc), named(KeyCode::Backspace)] TimelineAction::Back, "The time that was shown before", "back";
    Time "} L" [key('}'), key('L')] TimelineAction::PanRight, "Half a screen later";
    Time "{ H" [key('{'), key('H')] TimelineAction::PanLeft, "Half a screen earlier";
    Time "Home" [named(KeyCode::Home)] TimelineAction::Beginning, "The beginning of the trace";
    Time "End" [named(KeyCode::End)] TimelineAction::End, "Its end; of a job that runs: follow it";
    Time "Space" [key(' ')] TimelineAction::Freeze, "Of a job that runs: freeze the display, not the recording; again: follow it";
    Moving "l →" [key('l'), named(KeyCode::Right)] TimelineAction::Right, "One column later";
    Moving "h ←" [key('h'), named(KeyCode::Left)] TimelineAction::Left, "One column earlier";
    Moving "j ↓" [key('j'), named(KeyCode::Down)] TimelineAction::Down, "Next lane";
    Moving "k ↑" [key('k'), named(KeyCode::Up)] TimelineAction::Up, "Previous lane";
    Moving "PgDn Ctrl-d" [named(KeyCode::PageDown), ctrl('d'), ctrl('f')] TimelineAction::PageDown, "A page of lanes down";
    Moving "PgUp Ctrl-u" [named(KeyCode::PageUp), ctrl('u'), ctrl('b')] TimelineAction::PageUp, "A page of lanes up";
    Moving "g" [key('g')] TimelineAction::First, "First lane";
    Moving "G" [key('G')] TimelineAction::Last, "Last lane";
    Moving "f" [key('f')] TimelineAction::Fold, "Twice as many threads in a lane", "fold";
    Moving "F" [key('F')] TimelineAction::Unfold, "Half as many; in the end one";
    Calls "w" [key('w')] TimelineAction::LongestWait, "To the call that waits longest for another rank, of those on the screen; again: the next longest", "longest wait";
    Calls "c" [key('c')] TimelineAction::LongestCall, "To the longest call, of those on the screen; again: the next longest", "longest call";
    Calls "/" [key('/')] TimelineAction::Search, "To the next call whose function or call site has this in its name", "search";
    Calls "n" [key('n')] TimelineAction::NextFound, "The next one, in any rank";
    Calls "N" [key('N')] TimelineAction::PreviousFound, "The one before";
    Calls "]" [key(']')] TimelineAction::NextCall, "Next call of the lane";
    Calls "[" [key('[')] TimelineAction::PreviousCall, "Previous call of the lane";
    Calls "d" [key('d')] TimelineAction::Details, "All that is known of the call under the cursor; again, or Esc, closes it", "details";
    Calls "m" [key('m')] TimelineAction::Lines, "Lines of messages: of the lane, of the call under the cursor, none", "messages";
    Taking "y" [key('y')] TimelineAction::Copy, "Copy what is known of the call to the clipboard of the terminal";
    Taking "W" [key('W')] TimelineAction::Write, "Of a job that runs: write all calls that are kept to a new file, a trace, in the working directory";
    Program "Ctrl-z" [ctrl('z')] TimelineAction::Suspend, "Back to the shell; fg returns";
    Program "Ctrl-l" [ctrl('l')] TimelineAction::Redraw, "Draw everything anew";
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::expect_one_meaning;

    #[test]
    fn no_key_does_two_things_and_all_are_in_the_help() {
        expect_one_meaning(TIMELINE_BINDINGS);
        assert!(TIMELINE_BINDINGS.iter().all(|binding| TIMELINE_SECTIONS.contains(&binding.section)));
    }
}
