//! Lists of plain numbers compared: what `ministat` prints, and a verdict beside it.

use std::fmt;

use serde::Serialize;

use crate::{
    BlockValue, StatsError,
    bootstrap::{self, Interval, Quantity},
    ministat::{self, DataSet, Relative},
    summary::Summary,
    verdict::{Rule, Verdict, judge},
};

/// One list of numbers, the unit of the metric being the same for all lists.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// Name, usually the file's.
    pub label: String,
    /// Values in the order of the file, each taken independently of the others; at least [`ministat::MIN_VALUES`].
    pub values: Vec<f64>,
}

/// How to compare.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The table, the test and the plot of `ministat`.
    pub ministat: ministat::Options,
    /// The rule of the verdict. Its labels are exchanged among all values, because a list has no rounds.
    pub rule: Rule,
}

/// Every number of one list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    /// Name of the list.
    pub label: String,
    /// The list in nine numbers.
    pub summary: Summary,
    /// Bootstrap interval of the mean.
    pub mean: Interval,
    /// Bootstrap interval of the median.
    pub median: Interval,
    /// Bootstrap interval of the 99th percentile.
    pub p99: Interval,
}

/// One list against the first one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// Name of the list that is compared with the first.
    pub label: String,
    /// Student's t as `ministat` computes it; `None` when the options leave it out.
    pub student: Option<Relative>,
    /// The verdict, less being better.
    pub verdict: Verdict,
}

/// A whole comparison; its `Display` is what a terminal shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The lists in order, the first being the baseline.
    pub lists: Vec<Described>,
    /// The other lists against the first.
    pub against: Vec<Against>,
    /// `ministat`'s text.
    #[serde(skip)]
    pub table: String,
}

/// Compares every list with the first one.
///
/// # Errors
/// No list or more than seven, a list of fewer than three values, a value that is not finite, or options out of range.
pub fn lists(lists: &[List], options: &Options) -> Result<Comparison, StatsError> {
    let rule = options.rule.pooled();
    let sets: Vec<DataSet> =
        lists.iter().map(|list| DataSet::new(&list.label, &list.values)).collect::<Result<_, _>>()?;
    let table = ministat::render(&sets, &options.ministat)?;
    let described = lists.iter().map(|list| describe(list, &rule.bootstrap)).collect::<Result<_, _>>()?;
    let mut against = Vec::new();
    if let (Some((baseline, others)), Some(reference)) = (lists.split_first(), sets.first()) {
        let baseline = BlockValue::unrounded(&baseline.values);
        for (list, set) in others.iter().zip(&sets[1..]) {
            against.push(Against {
                label: list.label.clone(),
                student: options
                    .ministat
                    .confidence
                    .map(|confidence| Relative::new(set.moments(), reference.moments(), confidence)),
                verdict: judge(&baseline, &BlockValue::unrounded(&list.values), &rule)?,
            });
        }
    }
    Ok(Comparison { lists: described, against, table })
}

fn describe(list: &List, plan: &bootstrap::Plan) -> Result<Described, StatsError> {
    let interval = |quantity| bootstrap::of_values(&list.values, quantity, plan);
    Ok(Described {
        label: list.label.clone(),
        summary: Summary::of(&list.values)?,
        mean: interval(Quantity::Mean)?,
        median: interval(Quantity::MEDIAN)?,
        p99: interval(Quantity::P99)?,
    })
}

/// `ministat`'s text, then one line per comparison.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        let Some(baseline) = self.lists.first() else { return Ok(()) };
        for against in &self.against {
            writeln!(
                f,
                "{} against {} (less is better): {}",
                against.label, baseline.label, against.verdict
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ministat::Confidence, verdict::Call};

    fn list(label: &str, offset: f64) -> List {
        List { label: label.to_owned(), values: (0..30).map(|i| offset + f64::from(i * 17 % 30)).collect() }
    }

    #[test]
    fn a_shifted_list_is_better_and_an_equal_one_shows_nothing() {
        let options = Options {
            ministat: ministat::Options { confidence: Some(Confidence::P95), plot: None },
            ..Options::default()
        };
        let all = [list("old", 100.0), list("new", 70.0), list("same", 100.0)];
        let comparison = lists(&all, &options).unwrap();
        let calls: Vec<Call> = comparison.against.iter().map(|against| against.verdict.call).collect();
        assert_eq!(calls, [Call::Better, Call::NoDifferenceSeen]);
        let text = comparison.to_string();
        assert!(text.starts_with("x old\n+ new\n* same\n    N "), "{text}");
        assert!(text.contains("\nnew against old (less is better): better: -30.0000"), "{text}");
        let json = serde_json::to_value(&comparison).unwrap();
        assert_eq!(json["against"][0]["verdict"]["call"], "better");
        assert_eq!(json["lists"][1]["summary"]["min"], 70.0);
    }

    #[test]
    fn one_list_is_described_and_none_is_refused() {
        let comparison = lists(&[list("only", 1.0)], &Options::default()).unwrap();
        assert!(comparison.against.is_empty() && comparison.lists.len() == 1);
        assert!(lists(&[], &Options::default()).is_err());
    }
}
