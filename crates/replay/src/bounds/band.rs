//! The line between two hulls: of points that it has to be above, and of points that it has to be below.
//!
//! A point is a time on one node and how far another node's clock was ahead of it then, at least or at most. Of all points only those are kept
//! that a line could touch. A line is known by its values at both ends of a span: those that fit are a polygon in the plane of the two, which
//! is cut down by one point after the other.

/// How much two clocks may drift apart, at most: the kernel slews each of them by 500 ppm at most.
pub(super) const MOST_DRIFT: f64 = 1e-3;

/// Points that are kept before those are thrown away that no line can touch.
const MOST_POINTS: usize = 512;

/// Times from which nothing is concluded, because sums of them would not fit: later than 146 years after the boot.
const LATEST_NS: u64 = 1 << 62;

/// Times are whole nanoseconds, and lines are not: what is less than this off is not off.
const ROUNDING_NS: f64 = 1e-2;

/// When, and how far ahead, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) at_ns: i64,
    pub(super) ahead_ns: i64,
}

impl Point {
    /// `None`: nobody's clock shows that.
    pub(super) fn new(own_ns: u64, other_ns: u64) -> Option<Self> {
        let is_time = own_ns < LATEST_NS && other_ns < LATEST_NS;
        is_time.then(|| Self { at_ns: own_ns.cast_signed(), ahead_ns: other_ns.cast_signed() - own_ns.cast_signed() })
    }

    /// Whether a line that is above the other one is above this one as well, however it drifts.
    fn is_behind(self, other: Self) -> bool {
        let apart = self.at_ns.abs_diff(other.at_ns) as f64;
        (other.ahead_ns - self.ahead_ns) as f64 >= apart * MOST_DRIFT
    }
}

/// Points that lines have to be above, as far as they matter. In bounded memory: where there are too many, some are forgotten, which leaves
/// room for more lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Below {
    points: Vec<Point>,
    pub(super) count: u64,
}

impl Below {
    pub(super) fn add(&mut self, point: Point) {
        self.count += 1;
        if let Some(last) = self.points.last_mut() {
            if point.is_behind(*last) {
                return;
            }
            if last.is_behind(point) {
                *last = point;
                return;
            }
        }
        self.points.push(point);
        if self.points.len() >= MOST_POINTS {
            self.points = hull(std::mem::take(&mut self.points));
            while self.points.len() > MOST_POINTS / 2 {
                let mut is_kept = false;
                self.points.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
            }
        }
    }

    /// Those that a line can touch.
    pub(super) fn hull(&self) -> Vec<Point> {
        hull(self.points.clone())
    }
}

/// The upper hull, without what only lines touch that drift too much.
fn hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_unstable();
    let mut hull: Vec<Point> = Vec::with_capacity(points.len().min(64));
    for point in points {
        while let [.., first, second] = hull.as_slice() {
            let way = |from: &Point, to: &Point| {
                (i128::from(to.at_ns) - i128::from(from.at_ns), i128::from(to.ahead_ns) - i128::from(from.ahead_ns))
            };
            let ((x, y), (to_x, to_y)) = (way(first, second), way(first, &point));
            if x * to_y - y * to_x < 0 {
                break;
            }
            hull.pop();
        }
        // The highest of those at one time is the last of them.
        while hull.last().is_some_and(|last| last.at_ns == point.at_ns || last.is_behind(point)) {
            hull.pop();
        }
        if !hull.last().is_some_and(|last| point.is_behind(*last)) {
            hull.push(point);
        }
    }
    hull
}

/// A line, as its values at both ends of a span, ns, more than `base_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) from_ns: i64,
    pub(super) until_ns: i64,
    pub(super) base_ns: i64,
    pub(super) at_ends: [f64; 2],
}

/// The lines that there is room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    pub(super) middle: Line,
    /// From the middle to the last of them, at both ends.
    pub(super) half_ns: [f64; 2],
    /// How far points are on the wrong side of all lines, at most; 0: there is a line between them.
    pub(super) lies_ns: f64,
}

impl Line {
    /// How much it rises in a nanosecond.
    pub(super) fn drift(&self) -> f64 {
        let [first, last] = self.at_ends;
        (last - first) / (self.until_ns - self.from_ns).max(1) as f64
    }

    fn part(&self, at_ns: i64) -> f64 {
        (i128::from(at_ns) - i128::from(self.from_ns)) as f64 / (self.until_ns - self.from_ns).max(1) as f64
    }
}

/// A corner: the values of a line at both ends.
type Corner = [f64; 2];

/// What is left of a polygon where `first · x + last · y >= bound`.
fn cut(corners: &[Corner], [first, last]: [f64; 2], bound: f64) -> Vec<Corner> {
    let over = |corner: &Corner| first.mul_add(corner[0], last * corner[1]) - bound;
    let mut left = Vec::with_capacity(corners.len() + 1);
    for (place, corner) in corners.iter().enumerate() {
        let Some(next) = corners.get((place + 1) % corners.len()) else { continue };
        let (own, of_next) = (over(corner), over(next));
        if own >= -ROUNDING_NS {
            left.push(*corner);
        }
        if (own > ROUNDING_NS && of_next < -ROUNDING_NS) || (own < -ROUNDING_NS && of_next > ROUNDING_NS) {
            let part = own / (own - of_next);
            left.push([(next[0] - corner[0]).mul_add(part, corner[0]), (next[1] - corner[1]).mul_add(part, corner[1])]);
        }
    }
    left
}

/// A condition on the values at both ends, which are to be this much at least.
type Condition = ([f64; 2], f64);

/// The lines above some points and below others, in a span; `None`: nothing bounds them on both sides.
pub(super) fn between(above: &[Point], below: &[Point], (from_ns, until_ns): (i64, i64)) -> Option<Band> {
    let base_ns = above.first()?.ahead_ns;
    let frame = Line { from_ns, until_ns: until_ns.max(from_ns.saturating_add(1)), base_ns, at_ends: [0.0; 2] };
    let condition = |point: &Point, sign: f64| {
        let part = frame.part(point.at_ns);
        let ahead = (i128::from(point.ahead_ns) - i128::from(base_ns)) as f64;
        ([(1.0 - part) * sign, part * sign], ahead * sign)
    };
    let conditions: Vec<Condition> = above
        .iter()
        .map(|point| condition(point, 1.0))
        .chain(below.iter().map(|point| condition(point, -1.0)))
        .collect();
    let lowest = below.iter().map(|point| (i128::from(point.ahead_ns) - i128::from(base_ns)) as f64);
    let lowest = lowest.reduce(f64::min)?;
    let highest = above.iter().map(|point| (i128::from(point.ahead_ns) - i128::from(base_ns)) as f64);
    let highest = highest.reduce(f64::max)?;
    let most = (frame.until_ns - frame.from_ns) as f64 * MOST_DRIFT;
    let outer: Vec<f64> = [lowest, highest].into_iter().map(f64::abs).collect();
    let reach = |lies: f64| outer.iter().sum::<f64>() + 2.0 * most + lies + 1.0;
    let fitting = |lies: f64| {
        let most_ns = reach(lies);
        let mut corners = vec![[-most_ns, -most_ns], [most_ns, -most_ns], [most_ns, most_ns], [-most_ns, most_ns]];
        for (sides, least) in [([-1.0, 1.0], -most), ([1.0, -1.0], -most)].into_iter().chain(conditions.iter().copied())
        {
            let is_drift = sides[0] + sides[1] == 0.0;
            corners = cut(&corners, sides, if is_drift { least } else { least - lies });
            if corners.is_empty() {
                return None;
            }
        }
        Some(corners)
    };
    let (lies_ns, corners) = match fitting(0.0) {
        Some(corners) => (0.0, corners),
        None => least_lies(fitting, highest - lowest + most)?,
    };
    let end = |end: usize| {
        let values = || corners.iter().filter_map(|corner| corner.get(end).copied());
        let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        Some((f64::midpoint(least, most), (most - least) / 2.0))
    };
    let ((first, of_first), (last, of_last)) = (end(0)?, end(1)?);
    let is_number = [first, last, of_first, of_last].into_iter().all(f64::is_finite);
    let middle = Line { at_ends: [first, last], ..frame };
    is_number.then_some(Band { middle, half_ns: [of_first, of_last], lies_ns })
}

/// How much all points have to give way so that there is a line, to a nanosecond.
fn least_lies(fitting: impl Fn(f64) -> Option<Vec<Corner>>, most: f64) -> Option<(f64, Vec<Corner>)> {
    let (mut too_little, mut enough) = (0.0, most.max(1.0));
    let mut corners = fitting(enough)?;
    for _ in 0..100 {
        if enough - too_little < 0.5 {
            break;
        }
        let middle = f64::midpoint(too_little, enough);
        match fitting(middle) {
            Some(found) => (enough, corners) = (middle, found),
            None => too_little = middle,
        }
    }
    Some((enough, corners))
}
