//! `execlab compare A B`: two run folders, or two files with one number per line.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail};
use execlab_stats::compare::{self, List};
use execlab_stats::verdict::Rule;
use execlab_stats::{ministat, numbers};
use serde::Serialize;

use crate::cli::CompareArgs;
use crate::run::analyse::MINISTAT;
use crate::run::arms::{Arm, Metric};
use crate::run::folder::write_json_to;
use crate::run::saved;

/// Compares what `args` names.
///
/// # Errors
/// When a file or folder cannot be read or holds too few numbers.
pub fn compare(args: &CompareArgs) -> Result<()> {
    match (args.a.is_dir(), args.b.is_dir()) {
        (true, true) => folders(args),
        (false, false) => files(args),
        _ => bail!(
            "{} and {} must be two run folders or two files with one number per line",
            args.a.display(),
            args.b.display()
        ),
    }
}

fn files(args: &CompareArgs) -> Result<()> {
    let column = NonZeroUsize::new(args.column).context("columns are counted from 1")?;
    let lists = [&args.a, &args.b].map(|file| read_list(file, column));
    let [a, b] = lists;
    let comparison = compare_lists(&[a?, b?], args)?;
    print!("{comparison}");
    write(args, &comparison)
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

fn compare_lists(lists: &[List], args: &CompareArgs) -> Result<compare::Comparison> {
    let ministat = match (args.rows_only, args.no_plot) {
        (true, _) => ministat::Options::default(),
        (false, true) => ministat::Options { plot: None, ..MINISTAT },
        (false, false) => MINISTAT,
    };
    let options = compare::Options { ministat, rule: Rule::default().seeded(args.seed) };
    Ok(compare::lists(lists, &options)?)
}

/// Two arms of the same name in two runs.
#[derive(Serialize)]
struct Between {
    arm: String,
    metric: Metric,
    comparison: compare::Comparison,
}

fn folders(args: &CompareArgs) -> Result<()> {
    let (a, b) = (saved::arms(&args.a)?, saved::arms(&args.b)?);
    let mut all = Vec::new();
    for first in &a {
        let Some(second) = b.iter().find(|arm| arm.name == first.name) else {
            eprintln!("{} has no arm {}", args.b.display(), first.name);
            continue;
        };
        for metric in Metric::ALL {
            let list = |arm: &Arm, path: &Path| List {
                label: path.display().to_string(),
                values: arm.values(metric),
            };
            let lists = [list(first, &args.a), list(second, &args.b)];
            let comparison = compare_lists(&lists, args)?;
            println!("{}: {} (us)\n{comparison}", first.name, metric.title());
            all.push(Between { arm: first.name.clone(), metric, comparison });
        }
    }
    if all.is_empty() {
        bail!("the two runs have no arm in common");
    }
    println!("The runs were not interleaved: a difference may be one of the machine's day, not of the arms.");
    write(args, &all)
}

fn write(args: &CompareArgs, value: &impl Serialize) -> Result<()> {
    args.json.as_deref().map_or(Ok(()), |target| write_json_to(target, value))
}
