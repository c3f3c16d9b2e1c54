//! A sample in a few quantiles.

use serde::Serialize;

/// Quantiles in nanoseconds: the smallest value that at least that share of the sample does not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub n: usize,
    /// Smallest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl Quantiles {
    /// Describes a sample; all zero for an empty one.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let n = values.len();
        let at = |percent: usize| {
            let rank = (n * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0)
        };
        Self { n, min: at(0), p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }

    /// This median in medians of `floor`. A floor below the clock's resolution counts as 1 ns.
    pub fn ratio_of_p50(&self, floor: &Self) -> f64 {
        self.p50 as f64 / floor.p50.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_values_have_their_ranks_as_percentiles() {
        let q = Quantiles::of((1..=100).rev().collect());
        assert_eq!((q.n, q.min, q.p50, q.p90, q.p99, q.max), (100, 1, 50, 90, 99, 100));
    }

    #[test]
    fn ratios_are_of_medians_and_a_floor_of_zero_divides_nothing_by_zero() {
        let (way, floor) = (Quantiles::of(vec![1, 30, 900]), Quantiles::of(vec![2, 20, 40]));
        assert!((way.ratio_of_p50(&floor) - 1.5).abs() < 1e-9);
        assert!((way.ratio_of_p50(&Quantiles::of(vec![0])) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn one_value_is_every_quantile_and_none_is_zero() {
        let q = Quantiles::of(vec![7]);
        assert_eq!((q.min, q.p50, q.max), (7, 7, 7));
        assert_eq!(Quantiles::of(Vec::new()).max, 0);
    }
}
