//! Running mean and deviation, as gem_syslatency keeps them.

/// Welford's recurrence: mean and variance of a stream without keeping it, and its extremes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Welford {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    min: u64,
    max: u64,
}

impl Welford {
    /// Takes one value, in nanoseconds.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        let delta = value as f64 - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value as f64 - self.mean);
        self.min = if self.count == 1 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
    }

    /// Number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean in nanoseconds; 0 without values.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Sample standard deviation in nanoseconds; 0 with fewer than two values.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }

    /// Smallest value; 0 without values.
    #[must_use]
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// Largest value; 0 without values.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_values_give_their_mean_deviation_and_extremes() {
        let mut w = Welford::default();
        [2, 4, 4, 6].into_iter().for_each(|v| w.add(v));
        assert_eq!((w.count(), w.min(), w.max()), (4, 2, 6));
        assert!((w.mean() - 4.0).abs() < 1e-12);
        assert!((w.deviation() - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn no_value_gives_zeros() {
        let w = Welford::default();
        assert_eq!((w.count(), w.min(), w.max()), (0, 0, 0));
        assert_eq!((w.mean().to_bits(), w.deviation().to_bits()), (0, 0));
    }
}
