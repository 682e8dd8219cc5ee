//! Metrics as OpenTelemetry's protocol has them (github.com/open-telemetry/opentelemetry-proto, `ExportMetricsServiceRequest`): what a
//! collector is sent as it is.
//!
//! Names are those of the text, and units those that a collector for Prometheus makes the same names of.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, metric::Data,
        number_data_point,
    },
    resource::v1::Resource,
};
use prost::Message as _;

use super::metrics::{Number, Samples};

/// A request with all of them; counters have counted since they `began`.
pub(super) fn request(metrics: &[Samples<'_>], began: SystemTime) -> Vec<u8> {
    let [began, now] = [began, SystemTime::now()].map(since_1970_ns);
    let known = metrics.iter().filter(|samples| !samples.of.is_empty());
    let scope = InstrumentationScope {
        name: "mpiprobe".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    let of_scope = ScopeMetrics {
        scope: Some(scope),
        metrics: known.map(|samples| metric(samples, began, now)).collect(),
        ..ScopeMetrics::default()
    };
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let of_node = [("service.name", "mpiprobe"), ("service.version", env!("CARGO_PKG_VERSION")), ("host.name", &host)];
    let resource = Resource { attributes: attributes(&of_node), ..Resource::default() };
    let resource_metrics =
        ResourceMetrics { resource: Some(resource), scope_metrics: vec![of_scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec()
}

fn metric(samples: &Samples<'_>, began: u64, now: u64) -> Metric {
    let family = samples.family;
    let is_counter = family.kind == "counter";
    let points = samples.of.iter().map(|(labels, number)| NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: if is_counter { began } else { 0 },
        time_unix_nano: now,
        value: Some(match *number {
            // There is no unsigned one.
            Number::Count(count) => number_data_point::Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX)),
            Number::Real(real) => number_data_point::Value::AsDouble(real),
        }),
        ..NumberDataPoint::default()
    });
    let data_points = points.collect();
    let data = if is_counter {
        let aggregation_temporality = AggregationTemporality::Cumulative.into();
        Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true })
    } else {
        Data::Gauge(Gauge { data_points })
    };
    Metric {
        name: family.name.into(),
        description: family.help.into(),
        unit: unit(family.unit).into(),
        data: Some(data),
        ..Metric::default()
    }
}

/// As UCUM has it (ucum.org), which OpenTelemetry asks for.
const fn unit(of_text: &str) -> &str {
    match of_text.as_bytes() {
        b"seconds" => "s",
        b"bytes" => "By",
        b"ratio" => "1",
        _ => "",
    }
}

fn attributes(labels: &[(&str, &str)]) -> Vec<KeyValue> {
    let attribute = |&(name, value): &(&str, &str)| {
        let value = Some(any_value::Value::StringValue(value.into()));
        KeyValue { key: name.into(), value: Some(AnyValue { value }), ..KeyValue::default() }
    };
    labels.iter().map(attribute).collect()
}

fn since_1970_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
