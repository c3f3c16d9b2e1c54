//! `gem_syslatency`'s own "max".
//!
//! IGT's `benchmarks/gem_syslatency` runs one probe per CPU and prints as `max` not the maximum but an estimate over the per-CPU maxima:
//! their trimean with more than nine CPUs, their median with more than five, else their mean
//! (`l_estimate` in that file, quartiles from `lib/igt_stats.c`). It is robust against one disturbed CPU, and it is the number that
//! the commit messages of i915 quote.

use crate::{StatsError, quantile};

/// The estimate over per-CPU maxima, in their unit.
///
/// # Errors
/// No CPU, or a maximum that is not finite.
pub fn max_estimate<T: Copy + Into<f64>>(per_cpu_maxima: &[T]) -> Result<f64, StatsError> {
    let sorted = quantile::sorted(per_cpu_maxima)?;
    Ok(match sorted.len() {
        10.. => trimean(&sorted),
        6.. => middle(&sorted),
        _ => crate::summary::mean(&sorted),
    })
}

/// (Q1 + 2·Q2 + Q3) / 4, the quartiles being medians of the two halves; with an odd number both halves contain the middle value.
fn trimean(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let (lower, upper) = (&sorted[..n.div_ceil(2)], &sorted[n / 2..]);
    (middle(lower) + 2.0 * middle(sorted) + middle(upper)) / 4.0
}

fn middle(sorted: &[f64]) -> f64 {
    quantile::median(sorted).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_cpus_give_the_mean() {
        assert_eq!(max_estimate(&[1_u32, 2, 3, 4, 100]), Ok(22.0));
    }

    #[test]
    fn six_to_nine_cpus_give_the_median() {
        assert_eq!(max_estimate(&[1_u32, 2, 3, 4, 5, 100]), Ok(3.5));
        assert_eq!(max_estimate(&[9_u32, 1, 2, 3, 4, 5, 6, 7, 100]), Ok(5.0));
    }

    #[test]
    fn ten_and_eleven_cpus_give_the_trimean() {
        // Halves 1..5 and 6..10: quartiles 3, 5.5, 8.
        assert_eq!(max_estimate(&[10_u32, 9, 8, 7, 6, 5, 4, 3, 2, 1]), Ok(5.5));
        // Halves 1..6 and 6..1000, the 6 in both: quartiles 3.5, 6, 8.5.
        assert_eq!(max_estimate(&[1_u32, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1000]), Ok(6.0));
        assert_eq!(max_estimate(&[1_u32, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8]), Ok((1.0 + 2.0 + 8.0) / 4.0));
    }

    #[test]
    fn no_cpu_is_an_error() {
        assert!(max_estimate::<f64>(&[]).is_err());
    }
}
