//! What a run says: every arm described, every variant compared with the first.

use anyhow::Result;
use execlab_stats::bootstrap::{self, Interval, Quantity};
use execlab_stats::compare::List;
use execlab_stats::ministat::{self, DataSet};
use execlab_stats::verdict::{self, Rule, Verdict};
use execlab_stats::{Location, StatsError};
use serde::Serialize;

use super::arms::{Arm, Metric, NULL_ARM};

/// ministat as kernel developers paste it: plot, rows, Student's t at 95 %.
pub const MINISTAT: ministat::Options = ministat::Options {
    confidence: Some(ministat::Confidence::P95),
    plot: Some(ministat::Plot { width: 74, separate_bars: false, max_rows: Some(20) }),
};

/// An arm with the intervals of its pooled samples.
#[derive(Debug, Clone, Serialize)]
pub struct Described {
    /// The arm.
    #[serde(flatten)]
    pub arm: Arm,
    /// Median of all samples, blocks resampled.
    pub median: Option<Interval>,
    /// 99th percentile of all samples, blocks resampled.
    pub p99: Option<Interval>,
}

/// One metric over all arms.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// Which figure of a block.
    pub metric: Metric,
    /// Unit of every number in it.
    pub unit: &'static str,
    /// ministat's text over the variants.
    pub ministat: String,
    /// Second, third, … variant against the first.
    pub against: Vec<Against>,
    /// Each variant against the null arm: what the load costs at all.
    pub against_null: Vec<Against>,
}

/// One arm against another.
#[derive(Debug, Clone, Serialize)]
pub struct Against {
    /// The reference.
    pub reference: String,
    /// The candidate.
    pub candidate: String,
    /// Student's t as ministat computes it, at 95 %.
    pub student: ministat::Relative,
    /// The verdict on the candidate, less being better.
    pub verdict: Verdict,
}

/// Everything that is computed from a run.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    /// The arms.
    pub arms: Vec<Described>,
    /// The metrics.
    pub metrics: Vec<Compared>,
}

/// Analyses the arms of one run.
///
/// # Errors
/// When the arms are too small for any statistics (fewer than three blocks).
pub fn analyse(arms: Vec<Arm>, seed: u64) -> Result<Analysis> {
    let metrics =
        Metric::ALL.into_iter().map(|metric| compare(&arms, metric, seed)).collect::<Result<_, _>>()?;
    let plan = bootstrap::Plan { seed, ..bootstrap::Plan::default() };
    let arms = arms
        .into_iter()
        .map(|arm| {
            let blocks: Vec<&[f64]> = arm.samples.iter().map(Vec::as_slice).collect();
            let median = bootstrap::of_blocks(&blocks, Quantity::MEDIAN, &plan).ok();
            let p99 = bootstrap::of_blocks(&blocks, Quantity::P99, &plan).ok();
            Described { arm, median, p99 }
        })
        .collect();
    Ok(Analysis { arms, metrics })
}

/// The rule for a metric: one wild block among maxima would drown a mean, so maxima are compared by their medians.
pub fn rule(metric: Metric, seed: u64) -> Rule {
    let location = match metric {
        Metric::Mean => Location::Mean,
        Metric::Max => Location::Median,
    };
    Rule { location, ..Rule::default() }.seeded(seed)
}

fn compare(arms: &[Arm], metric: Metric, seed: u64) -> Result<Compared, StatsError> {
    let variants: Vec<&Arm> = arms.iter().filter(|arm| arm.name != NULL_ARM).collect();
    let null = arms.iter().find(|arm| arm.name == NULL_ARM);
    let lists: Vec<List> =
        variants.iter().map(|arm| List { label: arm.name.clone(), values: arm.values(metric) }).collect();
    let sets = lists.iter().map(|l| DataSet::new(&l.label, &l.values)).collect::<Result<Vec<_>, _>>()?;
    let ministat = ministat::render(&sets, &MINISTAT)?;
    let rule = rule(metric, seed);
    let against = match variants.split_first() {
        Some((first, others)) => {
            others.iter().map(|other| pair(first, other, metric, &rule)).collect::<Result<_, _>>()?
        }
        None => Vec::new(),
    };
    let against_null = match null {
        Some(null) => variants.iter().map(|arm| pair(null, arm, metric, &rule)).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Ok(Compared { metric, unit: "us", ministat, against, against_null })
}

/// One arm against another on one metric.
///
/// # Errors
/// When an arm has too few blocks.
pub fn pair(reference: &Arm, candidate: &Arm, metric: Metric, rule: &Rule) -> Result<Against, StatsError> {
    let set = |arm: &Arm| DataSet::new(&arm.name, &arm.values(metric));
    let (first, second) = (set(reference)?, set(candidate)?);
    Ok(Against {
        reference: reference.name.clone(),
        candidate: candidate.name.clone(),
        student: ministat::Relative::new(second.moments(), first.moments(), ministat::Confidence::default()),
        verdict: verdict::judge(reference.numbers(metric), candidate.numbers(metric), rule)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use execlab_stats::BlockValue;
    use execlab_stats::summary::Summary;
    use execlab_stats::verdict::Call;

    fn arm(name: &str, base: f64) -> Arm {
        let samples: Vec<Vec<f64>> = (0..12)
            .map(|n| vec![base + f64::from(n % 5) * 0.01, base + 1.0 + f64::from(n % 3) * 0.01])
            .collect();
        let number = |f: fn(&Summary) -> f64| -> Vec<BlockValue> {
            (0..)
                .zip(&samples)
                .map(|(n, s)| BlockValue { round: n / 2, value: f(&Summary::of(s).unwrap()) })
                .collect()
        };
        Arm {
            name: name.into(),
            pooled: Summary::of(&samples.concat()).unwrap(),
            mean: number(|s| s.mean),
            max: number(|s| s.max),
            seconds: 1.0,
            counters: Default::default(),
            samples,
        }
    }

    #[test]
    fn a_slower_second_variant_is_worse_and_a_faster_one_better() {
        let analysis =
            analyse(vec![arm(NULL_ARM, 1.0), arm("a", 3.0), arm("b", 4.0), arm("c", 2.0)], 1).unwrap();
        for metric in &analysis.metrics {
            let calls: Vec<Call> = metric.against.iter().map(|a| a.verdict.call).collect();
            assert_eq!(calls, [Call::Worse, Call::Better], "{:?}", metric.metric);
            assert!(metric.against_null.iter().all(|a| a.verdict.call == Call::Worse));
            assert!(metric.ministat.contains("Difference at 95.0% confidence"), "{}", metric.ministat);
        }
        assert!(analysis.arms.iter().all(|a| a.median.is_some() && a.p99.is_some()));
    }
}
