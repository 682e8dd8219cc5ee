//! How metrics are written, by what whoever asks understands.

/// What HTTP calls messages of OpenTelemetry's protocol.
const OTLP: &str = "application/x-protobuf";

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) enum Format {
    OpenMetrics,
    /// Prometheus's text format 0.0.4 (prometheus.io, "Exposition formats").
    Text,
    /// A request of OpenTelemetry's protocol, for `mpiprobe push` to pass on.
    Otlp,
}

impl Format {
    /// What somebody understands who accepts this (RFC 9110, 12.5.1): another format only who asks for it, and not for OpenMetrics.
    pub(in crate::service) fn accepted<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut text, mut openmetrics, mut otlp) = (false, false, false);
        for ranges in accept {
            for range in ranges.split(|byte| *byte == b',') {
                let kind = range.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                text |= kind.eq_ignore_ascii_case(b"text/plain");
                openmetrics |= kind.eq_ignore_ascii_case(b"application/openmetrics-text");
                otlp |= kind.eq_ignore_ascii_case(OTLP.as_bytes());
            }
        }
        match (openmetrics, text, otlp) {
            (false, true, _) => Self::Text,
            (false, false, true) => Self::Otlp,
            _ => Self::OpenMetrics,
        }
    }

    /// What HTTP calls it.
    pub(in crate::service) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Otlp => OTLP,
        }
    }
}
