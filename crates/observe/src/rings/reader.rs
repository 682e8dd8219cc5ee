//! How far rings have been read.

use std::io;

use bytemuck::Zeroable as _;
use mpiprobe_common::trace::{Line, Origin, Words, written};

use super::Rings;

/// Lines that are copied at once.
const BATCH: usize = 1024;
/// How long a line may take to be written, ns. Who has taken its number may have been interrupted, or have found no room for it.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Reads all rings of one engine, or one process, again and again.
#[derive(Debug)]
pub struct RingReader {
    /// By ring.
    places: Vec<Place>,
    heads: Vec<u64>,
    batch: Vec<Line>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The next line.
    next: u64,
    /// Since when it has been waited for, ns, if it has.
    waiting_since_ns: Option<u64>,
}

/// What one pass has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub lines: u64,
    /// Lines that were overwritten before they were read, or never written.
    pub missing: u64,
    /// The largest part of a ring that was full, in hundredths.
    pub full: u64,
    /// A line is being written that others come after, which were not given therefore.
    pub is_held_up: bool,
}

impl RingReader {
    /// From what is in the rings now on; `from_start`: from the first line that they ever had.
    pub fn new(rings: &impl Rings, from_start: bool) -> io::Result<Self> {
        let mut heads = vec![0; rings.count() as usize];
        rings.heads(&mut heads)?;
        let next = |&head: &u64| Place { next: if from_start { 0 } else { head }, ..Place::default() };
        let places: Vec<Place> = heads.iter().map(next).collect();
        for (ring, place) in (0..).zip(&places) {
            rings.set_tail(ring, place.next)?;
        }
        Ok(Self { places, heads, batch: vec![Line::zeroed(); BATCH] })
    }

    /// Gives all lines that are whole, ring by ring, in the order of their numbers: with the ring, the number and what it is of. `now_ns` is the
    /// time. `is_last`: nobody writes any more, and none is waited for.
    pub fn drain(
        &mut self,
        rings: &impl Rings,
        now_ns: u64,
        is_last: bool,
        mut take: impl FnMut(u32, u64, Origin, &Words),
    ) -> io::Result<Drained> {
        let mut drained = Drained::default();
        rings.heads(&mut self.heads)?;
        for ((ring, place), head) in (0..).zip(&mut self.places).zip(&self.heads) {
            let lines = rings.lines();
            let range = written(lines, *head, place.next);
            drained.missing += range.start.wrapping_sub(place.next);
            drained.full = drained.full.max((range.end - range.start).saturating_mul(100) / lines.max(1));
            let mut first = range.start;
            'ring: while first < range.end {
                let to_end = lines - (first & (lines - 1));
                let wanted = (range.end - first).min(to_end).min(self.batch.len() as u64);
                let Some(batch) = self.batch.get_mut(..usize::try_from(wanted).unwrap_or(0)) else { break };
                rings.read(ring, first, batch)?;
                for line in batch {
                    match Origin::of(line.state, first) {
                        Some(origin) => {
                            drained.lines += 1;
                            place.waiting_since_ns = None;
                            take(ring, first, origin, &line.words);
                        }
                        None if is_last => drained.missing += 1,
                        None => {
                            let since_ns = *place.waiting_since_ns.get_or_insert(now_ns);
                            if now_ns.saturating_sub(since_ns) < PATIENCE_NS {
                                drained.is_held_up = true;
                                break 'ring;
                            }
                            place.waiting_since_ns = None;
                            drained.missing += 1;
                        }
                    }
                    first += 1;
                }
                place.next = first;
                rings.set_tail(ring, first)?;
            }
            if place.next != first {
                place.next = first;
                rings.set_tail(ring, first)?;
            }
        }
        Ok(drained)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use mpiprobe_common::trace::kind;

    use super::*;

    const LINES: u64 = 8;
    const ORIGIN: Origin = Origin { process: 3, kind: kind::CALL };

    /// One ring.
    struct Ring {
        lines: RefCell<Vec<Line>>,
        head: Cell<u64>,
        tail: Cell<u64>,
    }

    impl Ring {
        fn new() -> Self {
            let lines = RefCell::new(vec![Line::default(); 8]);
            Self { lines, head: Cell::new(0), tail: Cell::new(0) }
        }

        fn write(&self, number: u64) {
            let words = [number; 7];
            self.lines.borrow_mut()[(number % LINES) as usize] = Line { state: ORIGIN.state(number), words };
            self.head.set(self.head.get().max(number + 1));
        }

        fn drained(&self, reader: &mut RingReader, now_ns: u64, is_last: bool) -> (Vec<u64>, Drained) {
            let mut numbers = Vec::new();
            let drained = reader.drain(self, now_ns, is_last, |ring, number, origin, words| {
                assert_eq!((ring, origin, words), (0, ORIGIN, &[number; 7]));
                numbers.push(number);
            });
            (numbers, drained.unwrap())
        }
    }

    impl Rings for Ring {
        fn count(&self) -> u32 {
            1
        }

        fn lines(&self) -> u64 {
            LINES
        }

        fn heads(&self, to: &mut [u64]) -> io::Result<()> {
            to[0] = self.head.get();
            Ok(())
        }

        fn read(&self, _ring: u32, first: u64, to: &mut [Line]) -> io::Result<()> {
            let start = (first % LINES) as usize;
            to.copy_from_slice(&self.lines.borrow()[start..start + to.len()]);
            Ok(())
        }

        fn set_tail(&self, _ring: u32, tail: u64) -> io::Result<()> {
            self.tail.set(tail);
            Ok(())
        }
    }

    #[test]
    fn lines_come_once_and_in_order_however_often_the_ring_goes_round() {
        let ring = Ring::new();
        let mut reader = RingReader::new(&ring, true).unwrap();
        let mut all = Vec::new();
        for number in 0..50 {
            ring.write(number);
            if number % 5 == 0 {
                let (numbers, drained) = ring.drained(&mut reader, 0, false);
                assert_eq!((drained.missing, drained.lines), (0, numbers.len() as u64));
                assert_eq!(ring.tail.get(), number + 1);
                all.extend(numbers);
            }
        }
        all.extend(ring.drained(&mut reader, 0, true).0);
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_overwritten_is_missing() {
        let ring = Ring::new();
        let mut reader = RingReader::new(&ring, true).unwrap();
        (0..20).for_each(|number| ring.write(number));
        let (numbers, drained) = ring.drained(&mut reader, 0, false);
        assert_eq!((numbers, drained.missing, drained.full), ((12..20).collect(), 12, 100));
    }

    #[test]
    fn a_line_that_is_being_written_is_waited_for_and_not_for_ever() {
        let ring = Ring::new();
        let mut reader = RingReader::new(&ring, true).unwrap();
        ring.write(0);
        ring.write(2);
        let (numbers, drained) = ring.drained(&mut reader, 10, false);
        assert_eq!((numbers, drained.is_held_up, ring.tail.get()), (vec![0], true, 1));
        ring.write(1);
        ring.write(4);
        assert_eq!(ring.drained(&mut reader, PATIENCE_NS, false).0, [1, 2]);
        // A new wait, for another line.
        assert!(ring.drained(&mut reader, 2 * PATIENCE_NS - 1, false).0.is_empty());
        let (numbers, drained) = ring.drained(&mut reader, 2 * PATIENCE_NS, false);
        assert_eq!((numbers, drained.missing), (vec![4], 1));
        ring.write(6);
        let (numbers, drained) = ring.drained(&mut reader, 2 * PATIENCE_NS, true);
        assert_eq!((numbers, drained.missing), (vec![6], 1), "nobody writes any more");
    }

    #[test]
    fn what_was_there_before_is_left_out_if_it_is_not_asked_for() {
        let ring = Ring::new();
        (0..3).for_each(|number| ring.write(number));
        let mut reader = RingReader::new(&ring, false).unwrap();
        assert_eq!(ring.tail.get(), 3);
        ring.write(3);
        assert_eq!(ring.drained(&mut reader, 0, false).0, [3]);
    }

    #[test]
    fn nothing_that_somebody_may_write_there_makes_it_go_wrong() {
        let ring = Ring::new();
        let mut reader = RingReader::new(&ring, true).unwrap();
        for head in [u64::MAX, 1 << 63, 3, u64::MAX / 2 + 1, u64::MAX / 2] {
            ring.head.set(head);
            ring.drained(&mut reader, 0, true);
        }
    }
}
