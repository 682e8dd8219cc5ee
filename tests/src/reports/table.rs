//! Tables of text, taken apart by where their columns begin or end.

use std::collections::BTreeMap;

/// A row: its cells by the headings of their columns. Of several with one heading, the second is called `each#2`; of a column without a
/// heading, the cell is called by the empty text.
pub(super) type Row = BTreeMap<String, String>;

/// Where a cell, or a heading, begins and ends, in characters, and what it says.
type Span = (usize, usize, String);

/// The table below a title; `None`: there is no such title.
pub(super) fn table(text: &str, title: &str) -> Option<Vec<Row>> {
    let mut lines = text.lines().skip_while(|line| *line != title).skip(1);
    let headings = numbered(spans(lines.next()?));
    let rows = lines.take_while(|line| line.starts_with(' ') && !line.trim_start().starts_with('('));
    Some(rows.map(|line| row(&headings, spans(line))).collect())
}

/// Cells have two blanks between them, and one in them.
fn spans(line: &str) -> Vec<Span> {
    let letters: Vec<char> = line.chars().collect();
    let mut spans: Vec<Span> = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        if letters[at] == ' ' {
            at += 1;
            continue;
        }
        let begin = at;
        while at < letters.len() && !(letters[at] == ' ' && letters.get(at + 1).is_none_or(|next| *next == ' ')) {
            at += 1;
        }
        spans.push((begin, at, letters[begin..at].iter().collect()));
    }
    spans
}

fn numbered(headings: Vec<Span>) -> Vec<Span> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |(begin, end, heading): Span| {
        let times = seen.entry(heading.clone()).or_default();
        *times += 1;
        (begin, end, if *times == 1 { heading } else { format!("{heading}#{times}") })
    };
    headings.into_iter().map(name).collect()
}

fn row(headings: &[Span], cells: Vec<Span>) -> Row {
    let mut row = Row::new();
    for (begin, end, cell) in cells {
        // Figures end where their heading ends, text begins where it begins.
        let heading = headings.iter().find(|(first, last, _)| *last == end || *first == begin);
        let name = heading.map_or_else(String::new, |(.., name)| name.clone());
        row.entry(name).or_insert(cell);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_by_their_edges() {
        let text =
            "Functions\n function   calls    time  each  each\n MPI_Send   1,200  1.23 s           7\n x\n\nRanks\n";
        let rows = table(text, "Functions").unwrap();
        let row =
            |cells: &[(&str, &str)]| cells.iter().map(|(name, cell)| ((*name).into(), (*cell).into())).collect::<Row>();
        assert_eq!(
            rows,
            [
                row(&[("function", "MPI_Send"), ("calls", "1,200"), ("time", "1.23 s"), ("each#2", "7")]),
                row(&[("function", "x")])
            ]
        );
        assert_eq!(table(text, "Threads"), None);
    }
}
