//! What a function has cost in a rank.

use mpiprobe_common::{
    FunctionStats, histogram,
    stats::{Volume, size_bucket},
};
use mpiprobe_functions::{Direction, Function, Role};

/// Durations as multiples of the usual one, and how many calls of a hundred take that long.
const SPREAD: [(u64, u64); 4] = [(1, 60), (2, 30), (6, 9), (40, 1)];

/// The function that is `place`th of the program is called the less often the later it comes. Later ranks have less to do, and
/// wait.
pub(super) fn of(function: &Function, place: usize, rank: u32, seconds: u64, traffic: bool) -> FunctionStats {
    let place = u64::try_from(place).unwrap_or(0);
    let hundreds = seconds * (40 / (place + 1) + 1);
    let waits = u64::from(rank % 7) * 3 + 5;
    let usual_ns = (20_000 / (place + 1)) * waits / 10 + 900;
    let mut stats = FunctionStats::ZERO;
    for (times, of_hundred) in SPREAD {
        let (calls, ns) = (hundreds * of_hundred, usual_ns * times);
        if calls == 0 {
            continue;
        }
        stats.calls += calls;
        stats.time_ns += calls * ns;
        stats.max_ns = stats.max_ns.max(ns);
        stats.min_complement = stats.min_complement.max(u64::MAX - ns);
        if let Some(bucket) = stats.histogram.get_mut(histogram::bucket_of(ns) as usize) {
            *bucket += calls;
        }
    }
    if traffic {
        let moves = |direction| {
            function.arguments.iter().any(|argument| argument.role == Role::Buffer && argument.direction == direction)
        };
        // Up to a gigabyte, however many functions there are.
        let bytes = 8 << (place % 24 + 4);
        if moves(Direction::In) {
            stats.sent = volume(stats.calls, bytes);
        }
        if moves(Direction::Out) {
            stats.received = volume(stats.calls, bytes);
        }
    }
    stats
}

fn volume(messages: u64, bytes: u64) -> Volume {
    let mut volume = Volume { messages, bytes: messages * bytes, max: bytes, ..Volume::ZERO };
    if messages > 0 {
        volume.min_complement = u64::MAX - bytes;
    }
    if let Some(bucket) = volume.sizes.get_mut(size_bucket(bytes) as usize) {
        *bucket = messages;
    }
    volume
}
