//! What a thread has done when: its time cut into spans of one activity each.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::cells::{Cell, Cells, NO_CALL};

/// Least number of spans between sums.
const SPACING: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Spell {
    /// It begins where the one before ends.
    end_ns: u64,
    /// In the log's own numbers.
    cell: u32,
}

/// All time before a spell.
#[derive(Debug)]
struct Sum {
    /// Number of the spell, of all that there were.
    at: u64,
    /// When it begins.
    begin_ns: u64,
    /// By own number of cells.
    times: Box<[u64]>,
}

/// See the module. Calls inside others are taken out of these.
#[derive(Debug)]
pub(super) struct Log {
    spells: VecDeque<Spell>,
    /// When the first one begins that is there.
    from_ns: u64,
    now_ns: u64,
    /// Of all that there were, how many came before the first.
    first: u64,
    /// By own number: the common number, all time so far, and what of it was waiting.
    cells: Vec<u32>,
    totals: Vec<u64>,
    waited: Vec<u64>,
    own: HashMap<Cell, u32>,
    /// In the order of the spells. The few of them lead to any spell, of which there are many.
    sums: VecDeque<Sum>,
    /// Calls that are not over: own number and end.
    open: Vec<(u32, u64)>,
    last_place: u32,
    /// The number that its next call has if none is missing.
    next_number: Option<u64>,
    /// Its process has switched counting off since then.
    is_off: bool,
    /// The first call of all.
    began_ns: Option<u64>,
}

/// Time by common numbers of cells, for a moment.
#[derive(Debug, Default)]
pub(super) struct TimeByCell {
    values: Vec<u64>,
    touched: Vec<u32>,
}

impl TimeByCell {
    pub(super) fn add(&mut self, cell: u32, ns: u64) {
        let index = cell as usize;
        if self.values.len() <= index {
            self.values.resize(index + 1, 0);
        }
        if let Some(value) = self.values.get_mut(index) {
            if *value == 0 && ns > 0 {
                self.touched.push(cell);
            }
            *value += ns;
        }
    }

    pub(super) fn subtract(&mut self, cell: u32, ns: u64) {
        if let Some(value) = self.values.get_mut(cell as usize) {
            *value = value.saturating_sub(ns);
        }
    }

    pub(super) fn get(&self, cell: u32) -> u64 {
        self.values.get(cell as usize).copied().unwrap_or(0)
    }

    /// Gives everything, and is empty then.
    pub(super) fn drain(&mut self, mut take: impl FnMut(u32, u64)) {
        for cell in self.touched.drain(..) {
            if let Some(value) = self.values.get_mut(cell as usize)
                && *value > 0
            {
                take(cell, std::mem::take(value));
            }
        }
    }

    pub(super) fn touched(&self) -> &[u32] {
        &self.touched
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            spells: VecDeque::new(),
            from_ns: 0,
            now_ns: 0,
            first: 0,
            cells: Vec::new(),
            totals: Vec::new(),
            waited: Vec::new(),
            own: HashMap::new(),
            sums: VecDeque::new(),
            open: Vec::new(),
            last_place: NO_CALL,
            next_number: None,
            is_off: false,
            began_ns: None,
        }
    }
}

impl Log {
    /// The thread's next call. `number`: where it goes up by more than 1, calls are missing.
    pub(super) fn call(&mut self, number: u64, (begin_ns, end_ns): (u64, u64), place: u32, cells: &Cells) {
        let are_missing = std::mem::take(&mut self.is_off) || self.next_number.is_some_and(|next| number > next);
        self.next_number = Some(number.saturating_add(1));
        if self.began_ns.is_none() {
            self.began_ns = Some(begin_ns);
            (self.from_ns, self.now_ns) = (begin_ns, begin_ns);
        }
        self.leave_until(begin_ns);
        if let Some(&(outer, _)) = self.open.last() {
            self.spend(begin_ns, outer);
        } else if begin_ns > self.now_ns {
            let (after, before) = (self.last_place, place);
            let between =
                if are_missing { Cell::NotRecorded { after, before } } else { Cell::Computing { after, before } };
            let between = self.own(between, cells);
            self.spend(begin_ns, between);
        }
        let own = self.own(Cell::Calling(place), cells);
        self.open.push((own, end_ns));
        self.last_place = place;
    }

    /// The thread has switched counting off: until its next call, nobody knows what it does.
    pub(super) const fn switch_off(&mut self) {
        self.is_off = true;
    }

    /// Calls that are over by then.
    pub(super) fn leave_until(&mut self, ns: u64) {
        while let Some(&(cell, end_ns)) = self.open.last().filter(|(_, end_ns)| *end_ns <= ns) {
            self.open.pop();
            self.spend(end_ns, cell);
        }
    }

    fn own(&mut self, cell: Cell, cells: &Cells) -> u32 {
        if let Some(&own) = self.own.get(&cell) {
            return own;
        }
        let own = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        self.own.insert(cell, own);
        self.cells.push(cells.cell(cell));
        self.totals.push(0);
        self.waited.push(0);
        own
    }

    fn spend(&mut self, until_ns: u64, cell: u32) {
        let begin_ns = self.now_ns;
        let Some(ns) = until_ns.checked_sub(begin_ns).filter(|&ns| ns > 0) else { return };
        self.now_ns = until_ns;
        let next = self.first + self.spells.len() as u64;
        let spacing = SPACING.max(self.totals.len()) as u64;
        if self.sums.back().is_none_or(|last| next - last.at >= spacing) {
            self.sums.push_back(Sum { at: next, begin_ns, times: self.totals.as_slice().into() });
        }
        self.spells.push_back(Spell { end_ns: until_ns, cell });
        if let Some(total) = self.totals.get_mut(cell as usize) {
            *total += ns;
        }
    }

    pub(super) fn spells(&self) -> usize {
        self.spells.len()
    }

    pub(super) fn is_begun(&self) -> bool {
        self.began_ns.is_some()
    }

    pub(super) fn began_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// From the first call to where it has come, of what was recorded.
    pub(super) fn recorded_ns(&self) -> u64 {
        let own = self.own.iter().filter(|(cell, _)| !matches!(cell, Cell::NotRecorded { .. }));
        own.filter_map(|(_, &own)| self.totals.get(own as usize)).sum()
    }

    /// When the first spell begins that is there.
    pub(super) fn first_ns(&self) -> u64 {
        self.from_ns
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// That so much of the time in calls of a place was waiting.
    pub(super) fn has_waited(&mut self, place: u32, ns: u64, cells: &Cells) {
        let own = self.own(Cell::Calling(place), cells);
        if let Some(waited) = self.waited.get_mut(own as usize) {
            *waited += ns;
        }
    }

    /// All time so far by common numbers, without waiting.
    pub(super) fn working(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let times = self.totals.iter().zip(&self.waited).map(|(total, waited)| total.saturating_sub(*waited));
        self.cells.iter().copied().zip(times)
    }

    /// All time in calls.
    pub(super) fn calling_ns(&self, is_call: impl Fn(u32) -> bool) -> u64 {
        self.cells.iter().zip(&self.totals).filter(|(cell, _)| is_call(**cell)).map(|(_, total)| total).sum()
    }

    /// Adds what the thread has done in a span, as far as that is still known.
    pub(super) fn add_span(&self, from_ns: u64, until_ns: u64, to: &mut TimeByCell) {
        let from_ns = from_ns.max(self.from_ns);
        let until_ns = until_ns.min(self.now_ns);
        if from_ns >= until_ns {
            return;
        }
        let first = self.count_while(|end_ns| end_ns <= from_ns);
        let last = self.count_while(|end_ns| end_ns < until_ns);
        let (Some(begin), Some(end)) = (self.spells.get(first), self.spells.get(last)) else { return };
        if first == last {
            self.add(begin.cell, until_ns - from_ns, to);
            return;
        }
        self.add(begin.cell, begin.end_ns - from_ns, to);
        self.add_spells(first + 1, last, to);
        let before_ns = self.spells.get(last - 1).map_or(until_ns, |spell| spell.end_ns);
        self.add(end.cell, until_ns - before_ns, to);
    }

    /// How long the thread was outside of calls in a span, up to its last call that has begun in it, and when that began. `is_outside`: of a common number; `None`: it
    /// is not known. `None`: no call has begun in it from outside, or it is not known.
    pub(super) fn before_last_call(
        &self,
        from_ns: u64,
        until_ns: u64,
        is_outside: impl Fn(u32) -> Option<bool>,
    ) -> Option<(u64, u64)> {
        let first = self.count_while(|end_ns| end_ns <= from_ns);
        let before = first.checked_sub(1).and_then(|before| self.spells.get(before));
        let mut begin_ns = before.map_or(self.from_ns, |before| before.end_ns).max(from_ns);
        let (mut outside_ns, mut last_ns) = (0, None);
        for spell in self.spells.range(first.min(self.spells.len())..).take_while(|spell| spell.end_ns < until_ns) {
            if is_outside(*self.cells.get(spell.cell as usize)?)? {
                outside_ns += spell.end_ns.saturating_sub(begin_ns);
                last_ns = Some(spell.end_ns);
            }
            begin_ns = spell.end_ns;
        }
        Some((outside_ns, last_ns?))
    }

    /// How many spells there are up to a time: those of which `is_before` says that they end before.
    fn count_while(&self, is_before: impl Fn(u64) -> bool) -> usize {
        let after = self.sums.partition_point(|sum| is_before(sum.begin_ns));
        let relative = |sum: &Sum| usize::try_from(sum.at - self.first).unwrap_or(0);
        let mut from = after.checked_sub(1).and_then(|before| self.sums.get(before)).map_or(0, relative);
        let mut until = self.sums.get(after).map_or(self.spells.len(), relative);
        while from < until {
            let middle = usize::midpoint(from, until);
            if self.spells.get(middle).is_some_and(|spell| is_before(spell.end_ns)) {
                from = middle + 1;
            } else {
                until = middle;
            }
        }
        from
    }

    fn add(&self, own: u32, ns: u64, to: &mut TimeByCell) {
        if let Some(&cell) = self.cells.get(own as usize) {
            to.add(cell, ns);
        }
    }

    /// Whole spells, from one to before another.
    fn add_spells(&self, from: usize, until: usize, to: &mut TimeByCell) {
        let absolute = |index: usize| self.first + index as u64;
        let (begin, end) = (absolute(from), absolute(until));
        let after = self.sums.partition_point(|sum| sum.at < begin);
        let before = self.sums.partition_point(|sum| sum.at <= end);
        // Two sums between them are worth it.
        if before < after + 2 {
            self.add_each(from, until, to);
            return;
        }
        let (Some(first), Some(last)) = (self.sums.get(after), self.sums.get(before - 1)) else { return };
        let relative = |sum: &Sum| usize::try_from(sum.at - self.first).unwrap_or(0);
        self.add_each(from, relative(first), to);
        for (own, later) in last.times.iter().enumerate() {
            let ns = later - first.times.get(own).copied().unwrap_or(0);
            if ns > 0
                && let Some(&cell) = self.cells.get(own)
            {
                to.add(cell, ns);
            }
        }
        self.add_each(relative(last), until, to);
    }

    fn add_each(&self, from: usize, until: usize, to: &mut TimeByCell) {
        let Some(mut begin_ns) =
            from.checked_sub(1).map_or(Some(self.from_ns), |one| Some(self.spells.get(one)?.end_ns))
        else {
            return;
        };
        for spell in self.spells.iter().skip(from).take(until.saturating_sub(from)) {
            self.add(spell.cell, spell.end_ns - begin_ns, to);
            begin_ns = spell.end_ns;
        }
    }

    /// Forgets what was over by then.
    pub(super) fn forget_until(&mut self, ns: u64) {
        let count = self.count_while(|end_ns| end_ns <= ns);
        if let Some(last) = count.checked_sub(1).and_then(|last| self.spells.get(last)) {
            self.from_ns = last.end_ns;
        }
        self.spells.drain(..count);
        self.first += count as u64;
        let first = self.first;
        while self.sums.front().is_some_and(|sum| sum.at < first) {
            self.sums.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(log: &Log, from_ns: u64, until_ns: u64) -> Vec<(u32, u64)> {
        let mut times = TimeByCell::default();
        log.add_span(from_ns, until_ns, &mut times);
        let mut all = Vec::new();
        times.drain(|cell, ns| all.push((cell, ns)));
        all.sort_unstable();
        all
    }

    #[test]
    fn time_in_a_call_inside_another_is_the_inner_ones() {
        let cells = Cells::default();
        let mut log = Log::default();
        log.call(0, (100, 200), 0, &cells);
        log.call(1, (300, 900), 1, &cells);
        log.call(2, (400, 500), 2, &cells);
        log.call(3, (600, 700), 2, &cells);
        log.call(4, (1000, 1100), 0, &cells);
        log.leave_until(2000);
        let number = |cell| cells.cell(cell);
        let computing = |after, before| number(Cell::Computing { after, before });
        let mut expected = vec![
            (number(Cell::Calling(0)), 200),
            (number(Cell::Calling(1)), 400),
            (number(Cell::Calling(2)), 200),
            (computing(0, 1), 100),
            (computing(2, 0), 100),
        ];
        expected.sort_unstable();
        assert_eq!(span(&log, 0, 2000), expected);
        assert_eq!(span(&log, 450, 650), {
            let mut inside = vec![(number(Cell::Calling(2)), 100), (number(Cell::Calling(1)), 100)];
            inside.sort_unstable();
            inside
        });
    }

    #[test]
    fn time_outside_ends_with_the_last_call_that_begins() {
        let cells = Cells::default();
        let mut log = Log::default();
        log.call(0, (100, 200), 0, &cells);
        log.call(1, (500, 600), 0, &cells);
        log.call(2, (900, 2000), 0, &cells);
        log.call(90, (3000, 3100), 0, &cells);
        let all = cells.cells();
        let outside = |from_ns, until_ns| {
            log.before_last_call(from_ns, until_ns, |cell| match all.get(cell as usize)? {
                Cell::Computing { .. } => Some(true),
                Cell::Calling(_) => Some(false),
                Cell::NotRecorded { .. } => None,
            })
        };
        assert_eq!(
            [(150, 450), (150, 550), (300, 950), (700, 900), (950, 1900)].map(|(from, until)| outside(from, until)),
            [None, Some((300, 500)), Some((500, 900)), None, None]
        );
        assert_eq!(outside(1900, 3050), None, "nobody knows what it was");
    }

    #[test]
    fn time_in_which_calls_are_missing_is_no_computing() {
        let cells = Cells::default();
        let mut log = Log::default();
        log.call(7, (100, 200), 0, &cells);
        log.call(8, (300, 400), 0, &cells);
        log.call(90, (900, 950), 0, &cells);
        log.leave_until(1000);
        let between = [
            (cells.cell(Cell::Calling(0)), 250),
            (cells.cell(Cell::Computing { after: 0, before: 0 }), 100),
            (cells.cell(Cell::NotRecorded { after: 0, before: 0 }), 500),
        ];
        assert_eq!((span(&log, 0, 1000), log.recorded_ns()), (between.to_vec(), 350));
    }

    #[test]
    fn sums_say_the_same_as_the_spells() {
        let cells = Cells::default();
        let mut log = Log::default();
        for step in 0..2000u64 {
            log.call(step, (step * 10, step * 10 + 3), u32::try_from(step % 7).unwrap(), &cells);
        }
        log.leave_until(u64::MAX);
        for (from, until) in [(0, 20_000), (5, 19_991), (1234, 17_777), (1234, 1235), (1230, 1250)] {
            let all: u64 = span(&log, from, until).iter().map(|(_, ns)| ns).sum();
            assert_eq!(all, until.min(log.now_ns()) - from, "{from} {until}");
        }
        let before = span(&log, 9000, 19_000);
        log.forget_until(8500);
        assert_eq!(span(&log, 9000, 19_000), before);
        assert!(log.spells() < 2400, "{}", log.spells());
    }
}
