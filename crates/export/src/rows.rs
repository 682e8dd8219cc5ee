//! The rows of a process's threads in the order of time.

use mpiprobe_trace::{ChangeRow, LocationId, Part, Parts, ReadError, Row, Shape, Span, Trace};
use std::sync::Arc;

/// Whoever is given the rows of a process.
pub(crate) trait Visitor {
    /// From now on, rows of the thread of that index are of these shapes.
    fn shapes(&mut self, thread: usize, shapes: &Arc<[Shape]>);

    fn row(&mut self, thread: usize, row: &Row, changes: &[ChangeRow]) -> std::io::Result<()>;
}

/// Why rows could not be visited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VisitError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

struct Reader<'a> {
    parts: Parts<'a>,
    part: Option<Part>,
    /// Of the part, the next row and its first change.
    row: usize,
    change: usize,
}

/// Shows all rows that touch a span; parts that are damaged are counted and left out. `progress` is told of rows.
pub(crate) fn visit(
    trace: &dyn Trace,
    threads: &[LocationId],
    span: Span,
    visitor: &mut impl Visitor,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, VisitError> {
    let mut damaged = 0;
    let mut readers: Vec<Reader<'_>> = threads
        .iter()
        .map(|&location| Reader { parts: trace.parts(location, span), part: None, row: 0, change: 0 })
        .collect();
    if let [reader] = readers.as_mut_slice() {
        while let Some(part) = reader.next_part(&mut damaged)? {
            visitor.shapes(0, &part.shapes);
            let mut changes = part.changes.as_slice();
            for row in &part.rows {
                let (of_row, rest) = changes.split_at(changes.len().min(row.changes as usize));
                changes = rest;
                visitor.row(0, row, of_row)?;
            }
            progress(part.rows.len() as u64);
        }
        return Ok(damaged);
    }
    loop {
        let mut next: Option<(u64, usize)> = None;
        for (index, reader) in readers.iter_mut().enumerate() {
            if reader.fill(&mut damaged)?
                && let Some(part) = &reader.part
            {
                visitor.shapes(index, &part.shapes);
                progress(part.rows.len() as u64);
            }
            if let Some(begin_ns) = reader.begin_ns()
                && next.is_none_or(|(earliest, _)| begin_ns < earliest)
            {
                next = Some((begin_ns, index));
            }
        }
        let Some((_, index)) = next else { return Ok(damaged) };
        let Some(reader) = readers.get_mut(index) else { return Ok(damaged) };
        let Some((part, row)) = reader.part.as_ref().and_then(|part| Some((part, part.rows.get(reader.row)?))) else {
            return Ok(damaged);
        };
        let changes = part.changes.get(reader.change..reader.change + row.changes as usize).unwrap_or_default();
        visitor.row(index, row, changes)?;
        reader.row += 1;
        reader.change += row.changes as usize;
    }
}

impl Reader<'_> {
    fn next_part(&mut self, damaged: &mut u64) -> Result<Option<Part>, ReadError> {
        loop {
            match self.parts.next() {
                None => return Ok(None),
                Some(Ok(part)) => return Ok(Some(part)),
                Some(Err(ReadError::Damaged { .. })) => *damaged += 1,
                Some(Err(error)) => return Err(error),
            }
        }
    }

    /// Whether another part was begun.
    fn fill(&mut self, damaged: &mut u64) -> Result<bool, ReadError> {
        if self.part.as_ref().is_some_and(|part| self.row < part.rows.len()) {
            return Ok(false);
        }
        self.part = self.next_part(damaged)?;
        (self.row, self.change) = (0, 0);
        Ok(self.part.is_some())
    }

    fn begin_ns(&self) -> Option<u64> {
        self.part.as_ref().and_then(|part| part.rows.get(self.row)).map(|row| row.begin_ns)
    }
}
