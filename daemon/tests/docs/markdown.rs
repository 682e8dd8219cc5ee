//! As much of Markdown as the documents use.

/// A line of a document, and what it is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub(crate) number: usize,
    pub(crate) text: &'a str,
    /// Inside a block of code.
    pub(crate) is_code: bool,
}

/// The lines of a document, without the fences of code blocks.
pub(crate) fn lines(document: &str) -> Vec<Line<'_>> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (number, text) in (1..).zip(document.lines()) {
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
        } else {
            lines.push(Line { number, text, is_code });
        }
    }
    lines
}

/// What stands between backquotes in a line of text.
pub(crate) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Where the links of a line of text lead.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The names by which the headings of a document can be linked to, as GitHub makes them.
pub(crate) fn anchors(document: &str) -> Vec<String> {
    let headings = lines(document).into_iter().filter(|line| !line.is_code && line.text.starts_with('#'));
    headings.map(|line| anchor(line.text.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn spans_links_and_anchors() {
    let line = "see `a`, [b](c.md#d-e) and `f g`";
    assert_eq!(code_spans(line).collect::<Vec<_>>(), ["a", "f g"]);
    assert_eq!(links(line).collect::<Vec<_>>(), ["c.md#d-e"]);
    assert_eq!(anchors("# A `b` / c\ntext\n```\n# no\n```\n## D-e, f"), ["a-b--c", "d-e-f"]);
}
