//! Each line of the page on security names tests that exist, or says that it has none.

use crate::{
    markdown::{code_spans, lines},
    workspace::{read, root},
};

#[test]
fn every_line_has_a_test_or_says_that_it_has_none() {
    let text = read("docs/security.md");
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in lines(&text).into_iter().filter(|line| line.text.starts_with("| ")) {
        let tested_by = line.text.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        if tested_by == "tested by" {
            continue;
        }
        rows += 1;
        let tests: Vec<&str> = code_spans(tested_by).collect();
        if tests.is_empty() && tested_by != "none" {
            wrong.push(format!("line {}: neither a test nor \"none\": {tested_by}", line.number));
        }
        for test in tests {
            let (path, item) = test.split_once("::").unwrap_or((test, ""));
            if !root().join(path).is_file() || !read(path).contains(item) {
                wrong.push(format!("line {}: there is no {test}", line.number));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/security.md:\n{}", wrong.join("\n"));
    assert!(rows > 30, "{rows} rows");
}

/// What mpiprobe promises besides stands in the same tables: no text without a test.
#[test]
fn nothing_is_promised_between_the_tables() {
    let text = read("docs/security.md");
    let after_the_head = text.split_once("\n## ").map_or("", |(_, rest)| rest);
    let loose = lines(after_the_head).into_iter().filter(|line| {
        !line.text.is_empty() && !line.text.starts_with('|') && !line.text.starts_with("## ") && line.number > 1
    });
    assert_eq!(loose.map(|line| line.text).collect::<Vec<_>>(), Vec::<&str>::new());
}
