//! From blocks to arms: the samples of each variant pooled, and one number a block for each metric.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use execlab_report::Block;
use execlab_stats::BlockValue;
use execlab_stats::summary::Summary;
use serde::{Deserialize, Serialize};

/// Name of the arm without load.
pub const NULL_ARM: &str = "null";

/// A figure that each block yields once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Mean latency of the block's samples (gem_syslatency -f 1).
    Mean,
    /// Largest latency of the block's samples. With one probe CPU this is also gem_syslatency's "max" (-f 2).
    Max,
}

impl Metric {
    /// Every metric, in the order of the report.
    pub const ALL: [Self; 2] = [Self::Mean, Self::Max];

    /// The word for tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Max => "max",
        }
    }

    /// A heading in the words of a report.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mean => "Mean latency of the RT thread, one number a block",
            Self::Max => "Maximum latency of the RT thread, one number a block",
        }
    }
}

/// One arm of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Arm {
    /// Variant, or [`NULL_ARM`].
    pub name: String,
    /// All samples of all blocks in modelled µs (clock time divided by the dilation).
    pub pooled: Summary,
    /// One number a block for [`Metric::Mean`].
    pub mean: Vec<BlockValue>,
    /// One number a block for [`Metric::Max`].
    pub max: Vec<BlockValue>,
    /// Clock time in seconds that the blocks took.
    pub seconds: f64,
    /// Counters of the driver, summed over the blocks; a `longest-…` counter is the largest of them.
    pub counters: BTreeMap<String, u64>,
    /// The samples of each block in modelled µs, for intervals of pooled quantiles.
    #[serde(skip)]
    pub samples: Vec<Vec<f64>>,
}

impl Arm {
    /// The block numbers of a metric.
    pub fn numbers(&self, metric: Metric) -> &[BlockValue] {
        match metric {
            Metric::Mean => &self.mean,
            Metric::Max => &self.max,
        }
    }

    /// The same, without their rounds.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.numbers(metric).iter().map(|number| number.value).collect()
    }
}

/// Sorts blocks into arms, in the order in which the arms first appear.
///
/// # Errors
/// When a block holds no sample: the probe did not run.
pub fn arms(blocks: &[Block], dilation: f64) -> Result<Vec<Arm>> {
    let mut names: Vec<&str> = Vec::new();
    for block in blocks {
        if !names.contains(&block.arm.as_str()) {
            names.push(&block.arm);
        }
    }
    names.into_iter().map(|name| arm(name, blocks.iter().filter(|b| b.arm == name), dilation)).collect()
}

fn arm<'a>(name: &str, blocks: impl Iterator<Item = &'a Block>, dilation: f64) -> Result<Arm> {
    let (mut samples, mut mean, mut max) = (Vec::new(), Vec::new(), Vec::new());
    let (mut counters, mut nanoseconds) = (BTreeMap::new(), 0);
    for block in blocks {
        let us: Vec<f64> = block.samples.0.iter().map(|ns| f64::from(*ns) / 1000.0 / dilation).collect();
        let summary = Summary::of(&us).with_context(|| {
            format!("block {} of arm {name} holds no usable sample: did the probe run?", block.index)
        })?;
        mean.push(BlockValue { round: block.round, value: summary.mean });
        max.push(BlockValue { round: block.round, value: summary.max });
        samples.push(us);
        nanoseconds += block.duration_ns;
        add_counters(&mut counters, &block.counters);
    }
    let pooled = Summary::of(&samples.concat())?;
    Ok(Arm { name: name.to_owned(), pooled, mean, max, seconds: nanoseconds as f64 / 1e9, counters, samples })
}

fn add_counters(sum: &mut BTreeMap<String, u64>, block: &BTreeMap<String, u64>) {
    for (name, value) in block {
        let entry = sum.entry(name.clone()).or_default();
        *entry = if name.contains("longest") { (*entry).max(*value) } else { *entry + value };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use execlab_report::Samples;

    fn block(index: u32, arm: &str, ns: &[u32]) -> Block {
        Block {
            index,
            round: index / 2,
            arm: arm.into(),
            start_ns: 0,
            duration_ns: 500_000_000,
            samples: Samples(ns.to_vec()),
            counters: BTreeMap::from([
                ("submissions".to_owned(), 5),
                ("irq-off-longest-ns".to_owned(), u64::from(index)),
            ]),
        }
    }

    #[test]
    fn blocks_of_two_arms_become_two_arms_in_dilated_microseconds() {
        let blocks = [block(0, "a", &[2000, 4000]), block(1, "b", &[8000]), block(2, "a", &[6000])];
        let arms = arms(&blocks, 2.0).unwrap();
        assert_eq!(arms.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(arms[0].values(Metric::Mean), [1.5, 3.0]);
        assert_eq!(arms[0].values(Metric::Max), [2.0, 3.0]);
        assert_eq!((arms[0].pooled.n, arms[0].pooled.mean), (3, 2.0));
        assert_eq!(arms[0].counters["submissions"], 10);
        assert_eq!(arms[0].counters["irq-off-longest-ns"], 2);
        assert!((arms[0].seconds - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_block_without_samples_is_an_error_that_names_it() {
        let error = arms(&[block(7, "a", &[])], 1.0).unwrap_err();
        assert!(error.to_string().contains("block 7"), "{error}");
    }
}
