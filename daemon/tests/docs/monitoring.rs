//! Metrics are documented, and what is shipped for monitoring asks for no others.

use std::{collections::BTreeSet, process::Command};

use mpiprobe::service::families;
use serde_json::Value;

use crate::workspace::{read, root};

const RULES: &str = "docs/monitoring/rules.yml";
const DASHBOARD: &str = "docs/monitoring/dashboard.json";

#[test]
fn every_metric_is_documented() {
    let text = read("docs/service.md");
    let documented: Vec<&str> = text.lines().filter(|line| line.starts_with("| `mpiprobe_")).collect();
    let row = |family: &mpiprobe::service::Family| {
        format!("| `{}` | {} | {} | {} |", family.sample(), family.kind, family.labels, family.help)
    };
    let wanted: Vec<String> = families().iter().map(row).collect();
    assert_eq!(documented, wanted);
}

/// Words that begin as metrics do.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    words.filter(|word| word.starts_with("mpiprobe_")).map(str::to_owned).collect()
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_exist() {
    let known: BTreeSet<String> = families().iter().map(mpiprobe::service::Family::sample).collect();
    for (file, least) in [(RULES, 7), (DASHBOARD, 15)] {
        let named = metrics_in(&read(file));
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
        assert!(named.len() >= least, "{file}: {named:?}: how they are looked for is broken");
    }
    assert_eq!(metrics_in("rate(mpiprobe_x_total{a=\"b\"}[5m])/mpiprobe_y").len(), 2);
}

#[test]
fn the_dashboard_is_one() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut numbers, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "two panels have one number: {panel}");
        let grid = &panel["gridPos"];
        assert!(places.insert((grid["x"].as_u64().unwrap(), grid["y"].as_u64().unwrap())), "two in one place: {panel}");
        assert!(grid["x"].as_u64().unwrap() + grid["w"].as_u64().unwrap() <= 24, "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
                assert_eq!(query.matches(open).count(), query.matches(close).count(), "{query}");
            }
        }
    }
    let variables: BTreeSet<&str> =
        dashboard["templating"]["list"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(variables, ["datasource", "instance", "job_id"].into());
}

/// By Prometheus's own tool, where that is installed.
#[test]
fn prometheus_takes_the_rules() {
    match Command::new("promtool").args(["check", "rules"]).arg(root().join(RULES)).output() {
        Ok(checked) => assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr)),
        Err(error) => eprintln!("the rules were NOT CHECKED by promtool: {error}"),
    }
}
