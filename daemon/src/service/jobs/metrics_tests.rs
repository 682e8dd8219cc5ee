use mpiprobe_model::{Efficiency, GroupTraffic};
use mpiprobe_tests::openmetrics::Exposition;

use super::{
    super::{board::Totals, otlp},
    *,
};

fn figures(traffic: bool) -> Figures {
    let moved = traffic.then_some(GroupTraffic {
        sent_bytes: 7,
        received_bytes: 8,
        received_at_most_bytes: 0,
        calls_of_unknown_bytes: 1,
    });
    let group = GroupFigures { calls: 3, untimed_calls: 0, time_ns: 1_500_000_000, moved };
    let efficiency = Some(Efficiency { parallel: 0.25, load_balance: 0.5, communication: 0.5 });
    let now = Now { ranks: 2, ranks_in_mpi: 1, oldest_call_ns: Some(2_000_000_000), all_in_mpi_ns: 0, efficiency };
    Figures {
        is_seen: true,
        groups: Group::ALL.map(|one| (one.key(), group)).into(),
        wall_ns: 4_000_000_000,
        is_complete: true,
        now: Some(now),
        ..Figures::default()
    }
}

fn told(job: &str, figures: Figures) -> Told {
    Told { job: job.into(), user: Some("alice".into()), figures, not_observed: Some(0) }
}

fn view(jobs: Vec<Told>) -> View {
    View { jobs, totals: Totals::default(), observed: 1, bytes: 0, in_other: 0 }
}

fn of_service() -> OfService {
    let (observations, table_bytes, refusals) = (0, 0, 0);
    let began = SystemTime::UNIX_EPOCH;
    OfService { observations, table_bytes, refusals, cpu_seconds: 0.0, uptime_seconds: 60.0, began }
}

fn written(view: &View, with_user: bool, format: Format) -> String {
    text(&metrics(view, &of_service(), with_user), format)
}

#[test]
fn it_is_strict_openmetrics_and_says_what_is_known() {
    let text = written(&view(vec![told("ompi:1", figures(true))]), false, Format::OpenMetrics);
    let read = Exposition::parse(&text).unwrap();
    for family in families() {
        assert_eq!(read.kinds.get(family.name).map(String::as_str), Some(family.kind));
        assert!(!read.values(&family.sample(), &[]).is_empty(), "{} has no value", family.name);
    }
    let of_job = [("job_id", "ompi:1")];
    let of_group = [("job_id", "ompi:1"), ("group", "p2p")];
    for (name, labels, value) in [
        ("mpiprobe_mpi_seconds_total", &of_group[..], 1.5),
        ("mpiprobe_mpi_calls_total", &of_group, 3.0),
        ("mpiprobe_mpi_sent_bytes_total", &of_group, 7.0),
        ("mpiprobe_mpi_received_bytes_total", &of_group, 8.0),
        ("mpiprobe_job_wall_seconds_total", &of_job, 4.0),
        ("mpiprobe_job_ranks", &of_job, 2.0),
        ("mpiprobe_job_ranks_in_mpi", &of_job, 1.0),
        ("mpiprobe_job_oldest_open_call_seconds", &of_job, 2.0),
        ("mpiprobe_job_parallel_efficiency_ratio", &of_job, 0.25),
        ("mpiprobe_job_complete", &of_job, 1.0),
    ] {
        assert_eq!(read.value(name, labels), Some(value), "{name}");
    }
}

/// Invariant NO-TIME-NO-ZERO.
#[test]
fn what_is_not_known_has_no_line() {
    let mut without = figures(false);
    without.groups.get_mut("coll").unwrap().untimed_calls = 1;
    without.now = Some(Now { efficiency: None, oldest_call_ns: None, ..without.now.unwrap() });
    let unseen = told("ompi:2", Figures::default());
    let read = written(&view(vec![told("ompi:1", without), unseen]), false, Format::OpenMetrics);
    let read = Exposition::parse(&read).unwrap();
    for name in [
        "mpiprobe_mpi_sent_bytes_total",
        "mpiprobe_mpi_received_bytes_total",
        "mpiprobe_mpi_calls_of_unknown_amount_total",
        "mpiprobe_job_oldest_open_call_seconds",
        "mpiprobe_job_parallel_efficiency_ratio",
    ] {
        assert!(read.values(name, &[]).is_empty(), "{name}");
    }
    let group = |group| [("job_id", "ompi:1"), ("group", group)];
    assert_eq!(read.value("mpiprobe_mpi_seconds_total", &group("coll")), None);
    assert_eq!(read.value("mpiprobe_mpi_calls_total", &group("coll")), Some(3.0));
    assert_eq!(read.value("mpiprobe_mpi_seconds_total", &group("p2p")), Some(1.5));
    let of_unseen: Vec<_> = read
        .samples
        .iter()
        .filter(|sample| sample.labels.get("job_id").unwrap_or(&String::new()) == "ompi:2")
        .collect();
    assert_eq!(of_unseen.len(), 1, "how many ranks are not observed is all that is known: {of_unseen:?}");
}

#[test]
fn names_are_escaped_and_users_are_named_only_if_that_is_wished() {
    let hostile = "a\"} 1\\\nx{b=\"";
    let view = view(vec![told(hostile, figures(false))]);
    let with_user = |with_user| Exposition::parse(&written(&view, with_user, Format::OpenMetrics)).unwrap();
    let ranks = |read: &Exposition, labels: &[(&str, &str)]| read.value("mpiprobe_job_ranks", labels);
    assert_eq!(ranks(&with_user(true), &[("job_id", hostile), ("user", "alice")]), Some(2.0));
    let without = with_user(false);
    assert_eq!(ranks(&without, &[("job_id", hostile)]), Some(2.0));
    let labels = without.samples.iter().flat_map(|sample| sample.labels.keys());
    assert!(labels.clone().all(|label| ["job_id", "group", "version"].contains(&label.as_str())), "{labels:?}");
}

/// Invariant FEW-SERIES.
#[test]
fn a_node_has_no_more_series_than_it_may() {
    for (functions, traffic, series) in
        [("default", false, 400), ("default", true, 400), ("all", true, 400), ("all", true, 100)]
    {
        let set = mpiprobe_functions::select(functions).unwrap();
        let own = most_own(series, &set, traffic);
        let mut all = figures(traffic);
        let heard = by_name("MPI_Pcontrol").unwrap().function().group.key();
        all.groups.retain(|key, _| *key == heard || set.iter().any(|id| id.function().group.key() == *key));
        // Each of these, and all others.
        let jobs = (0..=own).map(|number| told(&format!("ompi:{number}"), all.clone())).collect();
        let read = Exposition::parse(&written(&view(jobs), true, Format::OpenMetrics)).unwrap();
        assert!(read.samples.len() <= series as usize, "{} series", read.samples.len());
        assert!(own > 0 || series < 400, "{functions}: no job has series of its own");
    }
}

/// As docs/service.md has it.
#[test]
fn so_many_jobs_have_series_of_their_own() {
    let functions = FunctionSet::default_functions();
    assert_eq!([false, true].map(|traffic| most_own(400, &functions, traffic)), [12, 6]);
}

#[test]
fn who_asks_for_text_alone_is_given_the_older_format() {
    let accepted = |values: &[&'static str]| Format::accepted(values.iter().map(|value| value.as_bytes()));
    for (values, format) in [
        (&[][..], Format::OpenMetrics),
        (&["*/*"], Format::OpenMetrics),
        (&["text/plain;version=0.0.4"], Format::Text),
        (&["application/json", "Text/Plain ; q=0.5"], Format::Text),
        (&["text/plain;q=0.5, application/openmetrics-text;version=1.0.0"], Format::OpenMetrics),
        (&["text/plainer"], Format::OpenMetrics),
        (&["application/x-protobuf"], Format::Otlp),
        (&["application/x-protobuf", "application/openmetrics-text"], Format::OpenMetrics),
    ] {
        assert_eq!(accepted(values), format, "{values:?}");
    }
    let of = |format| written(&view(vec![told("ompi:1", figures(true))]), false, format);
    let (new, old) = (of(Format::OpenMetrics), of(Format::Text));
    let samples =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(samples(&new), samples(&old));
    for line in ["# TYPE mpiprobe_mpi_calls_total counter", "# TYPE mpiprobe_build_info gauge"] {
        assert!(old.lines().any(|one| one == line), "{line}: {old}");
    }
    assert!(!old.contains("# EOF") && !old.contains("# UNIT"));
}

/// All of it has arrived where it is decoded by the protocol's own classes.
#[test]
fn otlp_says_the_same() {
    use opentelemetry_proto::tonic::{
        collector::metrics::v1::ExportMetricsServiceRequest,
        common::v1::{KeyValue, any_value},
        metrics::v1::{AggregationTemporality, metric::Data, number_data_point},
    };
    use prost::Message as _;

    let view = view(vec![told("ompi:1", figures(true)), told("ompi:2", Figures::default())]);
    let began_ns = 1_700_000_000_123_456_789;
    let began = SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(began_ns);
    let metrics = metrics(&view, &of_service(), true);
    let sent = ExportMetricsServiceRequest::decode(&*otlp::request(&metrics, began)).unwrap();
    let text = Exposition::parse(&text(&metrics, Format::OpenMetrics)).unwrap();
    let [of_node] = sent.resource_metrics.as_slice() else { panic!("{sent:?}") };
    let known = |pairs: &[KeyValue]| -> Vec<(String, String)> {
        let pair = |pair: &KeyValue| {
            let Some(any_value::Value::StringValue(value)) = pair.value.clone()?.value else { return None };
            Some((pair.key.clone(), value))
        };
        pairs.iter().filter_map(pair).collect()
    };
    let resource = known(&of_node.resource.as_ref().unwrap().attributes);
    assert!(resource.contains(&("service.name".into(), "mpiprobe".into())), "{resource:?}");
    let mut samples = 0;
    for metric in of_node.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
        let family = families().into_iter().find(|family| family.name == metric.name).unwrap();
        let (points, is_sum) = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => {
                assert!(sum.is_monotonic && sum.aggregation_temporality() == AggregationTemporality::Cumulative);
                (&sum.data_points, true)
            }
            Data::Gauge(gauge) => (&gauge.data_points, false),
            other => panic!("{other:?}"),
        };
        assert_eq!(is_sum, family.kind == "counter", "{}", metric.name);
        for point in points {
            let labels = known(&point.attributes);
            let labels: Vec<_> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let value = match point.value.unwrap() {
                number_data_point::Value::AsInt(value) => value as f64,
                number_data_point::Value::AsDouble(value) => value,
            };
            assert_eq!(text.value(&family.sample(), &labels), Some(value), "{} {labels:?}", metric.name);
            assert_eq!(point.start_time_unix_nano, if is_sum { began_ns } else { 0 });
            assert!(point.time_unix_nano > began_ns);
            samples += 1;
        }
    }
    assert_eq!(samples, text.samples.len());
}
