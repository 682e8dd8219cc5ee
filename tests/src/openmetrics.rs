//! A strict reader of OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics, specification 1.0, "Text format"), of the kinds that
//! mpiprobe has: what it takes, every monitoring system takes.

use std::collections::{BTreeMap, BTreeSet};

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// Everything that a text says.
#[derive(Debug, Default)]
pub struct Exposition {
    pub samples: Vec<Sample>,
    /// Names of metrics with their kinds.
    pub kinds: BTreeMap<String, String>,
}

/// What is known of the family whose lines are being read.
#[derive(Default)]
struct Family {
    name: String,
    kind: Option<String>,
    unit: Option<String>,
    help: Option<String>,
    samples: usize,
}

impl Exposition {
    /// Reads a whole text; an error gives the line that is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix("# EOF\n").ok_or("it does not end in \"# EOF\" and a line feed")?;
        if !body.is_empty() && !body.ends_with('\n') {
            return Err("\"# EOF\" is not on a line of its own".into());
        }
        let mut found = Self::default();
        let mut family = Family::default();
        let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
        for line in body.lines() {
            let wrong = |why: &str| format!("{why}: {line:?}");
            if let Some(descriptor) = line.strip_prefix("# ") {
                let mut words = descriptor.splitn(3, ' ');
                let (Some(what), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
                    return Err(wrong("half a descriptor"));
                };
                if !is_name(name) {
                    return Err(wrong("not a name"));
                }
                if name != family.name {
                    family.check()?;
                    if !families.insert(name.to_owned()) {
                        return Err(wrong("a family in two places"));
                    }
                    family = Family { name: name.to_owned(), ..Family::default() };
                }
                if family.samples > 0 {
                    return Err(wrong("a descriptor behind samples"));
                }
                let place = match what {
                    "TYPE" if ["counter", "gauge", "info"].contains(&rest) => &mut family.kind,
                    "UNIT" => &mut family.unit,
                    "HELP" if unescaped(rest).is_some() => &mut family.help,
                    _ => return Err(wrong("no such descriptor")),
                };
                if place.replace(rest.to_owned()).is_some() {
                    return Err(wrong("a descriptor twice"));
                }
                if what == "TYPE" {
                    found.kinds.insert(name.to_owned(), rest.to_owned());
                }
            } else {
                let sample = sample(line).ok_or_else(|| wrong("not a sample"))?;
                let suffix = sample.name.strip_prefix(&family.name).ok_or_else(|| wrong("a sample of no family"))?;
                let is_right = match family.kind.as_deref() {
                    Some("counter") => suffix == "_total" && sample.value >= 0.0,
                    Some("gauge") => suffix.is_empty(),
                    Some("info") => suffix == "_info" && sample.value.to_bits() == 1.0_f64.to_bits(),
                    _ => false,
                };
                if !is_right {
                    return Err(wrong("no sample of this kind"));
                }
                if !series.insert((sample.name.clone(), sample.labels.clone())) {
                    return Err(wrong("a series twice"));
                }
                family.samples += 1;
                found.samples.push(sample);
            }
        }
        family.check()?;
        Ok(found)
    }

    /// The values of a metric's samples that have these labels, whatever others they have.
    pub fn values(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let has = |sample: &&Sample| {
            sample.name == name
                && labels.iter().all(|(name, value)| sample.labels.get(*name).is_some_and(|own| own == value))
        };
        self.samples.iter().filter(has).map(|sample| sample.value).collect()
    }

    /// The one value of such a sample.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        match self.values(name, labels).as_slice() {
            [value] => Some(*value),
            _ => None,
        }
    }
}

impl Family {
    fn check(&self) -> Result<(), String> {
        let Self { name, kind, unit, help, .. } = self;
        if name.is_empty() {
            return Ok(());
        }
        let wrong = |why: &str| Err(format!("{name}: {why}"));
        if kind.is_none() || help.is_none() {
            return wrong("no type, or no help");
        }
        if unit.as_ref().is_some_and(|unit| !name.ends_with(&format!("_{unit}"))) {
            return wrong("its name does not end in its unit");
        }
        let reserved = ["_total", "_info", "_count", "_sum", "_bucket", "_created"];
        if reserved.iter().any(|suffix| name.ends_with(suffix)) {
            return wrong("its name ends as a sample's");
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

/// What stands for a text; `None`: it is none.
fn unescaped(text: &str) -> Option<String> {
    let mut found = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        found.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                one @ ('\\' | '"') => one,
                _ => return None,
            },
            character => character,
        });
    }
    Some(found)
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let end = end_of_value(after)?;
            let (value, after) = after.split_at(end);
            if !is_name(label) || labels.insert(label.to_owned(), unescaped(value)?).is_some() {
                return None;
            }
            rest = after.strip_prefix('"')?;
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let number = rest.strip_prefix(' ')?;
    let is_number = number.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first))
        && number.chars().all(|one| one.is_ascii_digit() || "+-.eE".contains(one));
    let value: f64 = number.parse().ok().filter(|value: &f64| is_number && value.is_finite())?;
    is_name(name).then(|| Sample { name: name.to_owned(), labels, value })
}

/// Where the quote stands that is not escaped.
fn end_of_value(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(place, character)| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Time\na_seconds_total{job_id=\"a\\\"b\\\\\"} 1.5\n\
        a_seconds_total 0\n# TYPE b gauge\n# HELP b Other\nb -2e3\n# TYPE c info\n# HELP c Of it\nc_info{v=\"1\"} 1\n# EOF\n";

    #[test]
    fn what_is_right_is_read() {
        let read = Exposition::parse(RIGHT).unwrap();
        assert_eq!(read.samples.len(), 4);
        assert_eq!(read.value("a_seconds_total", &[("job_id", "a\"b\\")]), Some(1.5));
        assert_eq!(read.value("b", &[]), Some(-2000.0));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (right, wrong) in [
            ("# EOF\n", ""),
            ("# EOF\n", "# EOF\n\n"),
            ("a_seconds_total 0\n", "a_seconds 0\n"),
            ("a_seconds_total 0\n", "a_seconds_total -1\n"),
            ("a_seconds_total 0\n", "a_seconds_total NaN\n"),
            ("a_seconds_total 0\n", "\n"),
            ("a_seconds_total 0\n", "a_seconds_total{job_id=\"a\\\"b\\\\\"} 1\n"),
            ("a_seconds_total 0\n", "a_seconds_total{x=\"1\",x=\"2\"} 1\n"),
            ("a_seconds_total 0\n", "a_seconds_total  0\n"),
            ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"),
            ("# HELP b Other\n", ""),
            ("# TYPE b gauge\n", "# TYPE b thing\n"),
            ("b -2e3\n", "b -2e3\n# UNIT b x\n"),
            ("b -2e3\n", "a_seconds_total{x=\"1\"} 1\n"),
            ("c_info{v=\"1\"} 1", "c_info{v=\"1\"} 2"),
            ("# HELP c Of it\n", "# HELP c Of it\n# HELP c Of it\n"),
            ("# TYPE c info\n", "# TYPE a_seconds counter\n"),
        ] {
            let text = RIGHT.replacen(right, wrong, 1);
            assert_ne!(text, RIGHT);
            assert!(Exposition::parse(&text).is_err(), "{text}");
        }
    }
}
