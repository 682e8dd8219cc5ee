//! What is looked up in the JSON of a profile.

use serde_json::Value;

/// Of a field that is no number: not a number.
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

pub(super) fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// The rank as it is shown.
pub(super) fn rank_name(rank: &Value) -> String {
    rank["rank"].as_u64().map_or_else(|| "?".into(), |rank| rank.to_string())
}

/// Amounts, and whose they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    pub(super) function: String,
    /// The function, or what has started it: `MPI_Startall (MPI_Send_init)`.
    pub(super) called: String,
    /// The function that was called.
    pub(super) call: String,
    pub(super) site: String,
    pub(super) calls: f64,
    pub(super) time_ns: f64,
    pub(super) sent_bytes: f64,
    pub(super) received_bytes: f64,
    pub(super) completed: f64,
    pub(super) pending_ns: f64,
    pub(super) waited_ns: f64,
}

impl Flow {
    pub(super) fn of(row: &Value) -> Self {
        let function = text(row, "function");
        let started_by = row["started_by"].as_str();
        let called = started_by.map_or_else(|| function.clone(), |start| format!("{start} ({function})"));
        let field = |name: &str| row[name].as_f64().unwrap_or(0.0);
        Self {
            call: started_by.map_or_else(|| function.clone(), ToOwned::to_owned),
            function,
            called,
            site: text(row, "site"),
            calls: field("calls"),
            time_ns: field("time_ns"),
            sent_bytes: field("sent_bytes"),
            received_bytes: field("received_bytes"),
            completed: field("completed"),
            pending_ns: field("pending_ns"),
            waited_ns: field("waited_ns"),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.time_ns += other.time_ns;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.completed += other.completed;
        self.pending_ns += other.pending_ns;
        self.waited_ns += other.waited_ns;
    }
}

/// All of them, with the rank.
pub(super) fn flows(profile: &Value) -> Vec<(String, Flow)> {
    let of_rank = |rank: &Value| {
        let name = rank_name(rank);
        array(&rank["traffic"], "flows").iter().map(|row| (name.clone(), Flow::of(row))).collect::<Vec<_>>()
    };
    array(profile, "ranks").iter().flat_map(of_rank).collect()
}
