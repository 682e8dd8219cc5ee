//! From an instruction of a code object to its line, by the tables of the versions.

use super::layout::Lines;

/// The line of the instruction at `address`, in bytes from the first one; `None` if the table has none for it.
pub(super) fn line(lines: Lines, table: &[u8], first: i64, address: u64) -> Option<u32> {
    let line = match lines {
        Lines::Steps => Some(steps(table, first, address)),
        Lines::Ranges => ranges(table, first, address),
        Lines::Locations => locations(table, first, address),
    };
    line.and_then(|line| u32::try_from(line).ok()).filter(|&line| line > 0)
}

fn steps(table: &[u8], first: i64, address: u64) -> i64 {
    let (mut at, mut line) = (0_u64, first);
    for step in table.chunks_exact(2) {
        let &[more, lines] = step else { break };
        at += u64::from(more);
        if at > address {
            break;
        }
        line += i64::from(lines.cast_signed());
    }
    line
}

fn ranges(table: &[u8], first: i64, address: u64) -> Option<i64> {
    const NONE: i8 = -128;
    let (mut end, mut line) = (0_u64, first);
    for range in table.chunks_exact(2) {
        let &[length, lines] = range else { break };
        let lines = lines.cast_signed();
        if lines != NONE {
            line += i64::from(lines);
        }
        end += u64::from(length);
        if address < end {
            return (lines != NONE).then_some(line);
        }
    }
    None
}

fn locations(table: &[u8], first: i64, address: u64) -> Option<i64> {
    let mut bytes = table.iter().copied();
    let (mut end, mut line) = (0_u64, first);
    while let Some(head) = bytes.next() {
        // Every entry begins with a byte that says so, and none of its others does.
        if head & 0x80 == 0 {
            return None;
        }
        let (code, units) = (head >> 3 & 15, u64::from(head & 7) + 1);
        let mut number = || -> Option<i64> {
            let (mut number, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes.next()?;
                number |= u64::from(byte & 0x3f).checked_shl(shift)?;
                if byte & 0x40 == 0 {
                    break;
                }
                shift += 6;
            }
            Some(number.cast_signed())
        };
        let mut signed = || number().map(|number| if number & 1 == 1 { -(number >> 1) } else { number >> 1 });
        let rest = match code {
            0..=9 => 1,
            10..=12 => {
                line += i64::from(code) - 10;
                2
            }
            13 => {
                line = line.checked_add(signed()?)?;
                0
            }
            14 => {
                line = line.checked_add(signed()?)?;
                // The last line, and columns.
                for _ in 0..3 {
                    number()?;
                }
                0
            }
            _ => 0,
        };
        for _ in 0..rest {
            bytes.next()?;
        }
        end += 2 * units;
        if address < end {
            return (code != 15).then_some(line);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `def f(g):` in line 1, and a call in line 2 over two lines and a return in line 4, as CPython of that version writes it.
    #[test]
    fn lines_are_found_in_all_forms() {
        let of = |lines, table: &[u8], address| line(lines, table, 10, address);
        assert_eq!(of(Lines::Steps, &[0, 1, 6, 2], 4), Some(11));
        assert_eq!(of(Lines::Steps, &[0, 1, 6, 2], 6), Some(13));
        assert_eq!(of(Lines::Steps, &[0, 1, 6, 0xff], 8), Some(10));
        assert_eq!(of(Lines::Ranges, &[4, 1, 2, 0x80, 6, 2], 2), Some(11));
        assert_eq!(of(Lines::Ranges, &[4, 1, 2, 0x80, 6, 2], 4), None);
        assert_eq!(of(Lines::Ranges, &[4, 1, 2, 0x80, 6, 2], 6), Some(13));
        assert_eq!(of(Lines::Ranges, &[4, 1], 90), None);
        // Two units in the next line with columns, one without a line, one three lines back, one long entry.
        let table = [0x80 | 11 << 3 | 1, 4, 9, 0x80 | 15 << 3, 0x80 | 13 << 3, 7, 0x80 | 14 << 3, 4, 1, 5, 9];
        assert_eq!(of(Lines::Locations, &table, 2), Some(11));
        assert_eq!(of(Lines::Locations, &table, 4), None);
        assert_eq!(of(Lines::Locations, &table, 6), Some(8));
        assert_eq!(of(Lines::Locations, &table, 8), Some(10));
        assert_eq!(of(Lines::Locations, &table, 10), None);
    }

    #[test]
    fn whatever_the_table_is_there_is_an_answer() {
        let mut state = 1_u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for length in 0..200 {
            let table: Vec<u8> = (0..length).map(|_| byte() | (0x80 * u8::from(length % 2 == 0))).collect();
            for lines in [Lines::Steps, Lines::Ranges, Lines::Locations] {
                for first in [0, 10, i64::from(i32::MIN)] {
                    let _ = line(lines, &table, first, u64::from(byte()) * 4);
                }
            }
        }
    }
}
