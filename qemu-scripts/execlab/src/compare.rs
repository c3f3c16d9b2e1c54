//! `execlab compare A B`: two run folders, or two files with one number per line.

use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail};
use execlab_stats::compare::{self, List};
use execlab_stats::verdict::Rule;
use execlab_stats::{ministat, numbers};
use serde::Serialize;

use crate::cli::CompareArgs;
use crate::out::Json;
use crate::run::analyse::{MINISTAT, rule};
use crate::run::arms::{Arm, Metric};
use crate::run::comparable::{self, Difference};
use crate::run::saved;
use crate::run::text::MINISTAT_NOTE;

/// Compares what `args` names.
///
/// # Errors
/// When a file or folder cannot be read or holds too few numbers, or two runs are not of the same kind.
pub fn compare(args: &CompareArgs) -> Result<()> {
    let mut json = Json::open(args.json.as_deref())?;
    for path in [&args.a, &args.b] {
        fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    match (args.a.is_dir(), args.b.is_dir()) {
        (true, true) => folders(args, &mut json),
        (false, false) => files(args, &mut json),
        _ => bail!(
            "{} and {} must be two run folders or two files with one number per line",
            args.a.display(),
            args.b.display()
        ),
    }
}

fn files(args: &CompareArgs, json: &mut Json) -> Result<()> {
    let column = NonZeroUsize::new(args.column).context("columns are counted from 1")?;
    let lists = [&args.a, &args.b].map(|file| read_list(file, column));
    let [a, b] = lists;
    let comparison = compare_lists(&[a?, b?], args, Rule::default().seeded(args.seed))?;
    json.print(&shown(&comparison, args))?;
    json.write(&comparison)
}

fn read_list(file: &Path, column: NonZeroUsize) -> Result<List> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let format = numbers::Format { column, ..numbers::Format::default() };
    let parsed = numbers::parse(&text, &format).with_context(|| format!("{}", file.display()))?;
    if !parsed.short_lines.is_empty() {
        eprintln!("{}: {} lines have no column {column}", file.display(), parsed.short_lines.len());
    }
    Ok(List { label: file.display().to_string(), values: parsed.values })
}

/// A comparison as a terminal shows it.
fn shown(comparison: &compare::Comparison, args: &CompareArgs) -> String {
    // Without Student's t there is nothing that could contradict the verdict.
    if args.rows_only { comparison.to_string() } else { format!("{MINISTAT_NOTE}\n{comparison}") }
}

fn compare_lists(lists: &[List], args: &CompareArgs, rule: Rule) -> Result<compare::Comparison> {
    let ministat = match (args.rows_only, args.no_plot) {
        (true, _) => ministat::Options::default(),
        (false, true) => ministat::Options { plot: None, ..MINISTAT },
        (false, false) => MINISTAT,
    };
    let options = compare::Options { ministat, rule };
    Ok(compare::lists(lists, &options)?)
}

/// Two arms of the same name in two runs.
#[derive(Serialize)]
struct Between {
    arm: String,
    metric: Metric,
    comparison: compare::Comparison,
}

/// What two runs differ in, and how their arms compare.
#[derive(Serialize)]
struct Folders {
    differences: Vec<Difference>,
    arms: Vec<Between>,
}

fn folders(args: &CompareArgs, json: &mut Json) -> Result<()> {
    let (a, b) = (saved::read(&args.a)?, saved::read(&args.b)?);
    let differences = comparable::differences((&a.setting, &a.plan), (&b.setting, &b.plan));
    let list = comparable::lines(&differences);
    if differences.iter().any(|difference| difference.forbids_verdict) {
        if !args.force {
            bail!(
                "these runs cannot be compared: what is marked with ! makes their numbers different things\n{list}\
                 Run both with the same settings, or give --force to see the numbers side by side all the same"
            );
        }
        json.print("FORCED: the runs differ in what is marked with !, so a verdict below says nothing about the arms alone\n")?;
    }
    if list.is_empty() {
        json.print("Both runs have the same settings.\n\n")?;
    } else {
        json.print(&format!("The runs differ in:\n{list}\n"))?;
    }
    let mut text = String::new();
    let mut arms = Vec::new();
    for first in &a.arms {
        let Some(second) = b.arms.iter().find(|arm| arm.name == first.name) else {
            eprintln!("{} has no arm {}", args.b.display(), first.name);
            continue;
        };
        for metric in Metric::ALL {
            let list = |arm: &Arm, path: &Path| List {
                label: path.display().to_string(),
                values: arm.values(metric),
            };
            let lists = [list(first, &args.a), list(second, &args.b)];
            let comparison = compare_lists(&lists, args, rule(metric, args.seed))?;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}: {} (us)\n{}", first.name, metric.title(), shown(&comparison, args));
            arms.push(Between { arm: first.name.clone(), metric, comparison });
        }
    }
    if arms.is_empty() {
        bail!("the two runs have no arm in common");
    }
    text.push_str(
        "The runs were not interleaved: a difference may be one of the machine's day, not of the arms.\n",
    );
    json.print(&text)?;
    json.write(&Folders { differences, arms })
}
