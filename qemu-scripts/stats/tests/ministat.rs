//! Equality with Debian's `ministat`, to the printed digits: with captured output always, with the program itself where it is installed.

// The lint spares `#[test]` functions only; here their helpers are tests too.
#![allow(clippy::unwrap_used)]

use std::{fs, num::NonZeroUsize, path::PathBuf, process::Command};

use execlab_stats::{
    ministat::{Confidence, DataSet, Options, Plot, render},
    numbers::{Format, parse},
};

/// One call of the program, and the same in our words.
struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    files: &'static [&'static str],
    format: Format,
    options: Options,
}

fn cases() -> Vec<Case> {
    let column = |column| Format { column: NonZeroUsize::new(column).unwrap(), ..Format::default() };
    let case = |name, arguments, files, confidence: Option<Confidence>, plot: Option<(u16, bool)>| Case {
        name,
        arguments,
        files,
        format: Format::default(),
        options: Options {
            confidence,
            plot: plot.map(|(width, separate_bars)| Plot { width, separate_bars, max_rows: None }),
        },
    };
    let p95 = Some(Confidence::P95);
    let mut cases = vec![
        case("animals-rows", &["-n"], &["iguana", "chameleon"], None, None),
        case("animals-plot", &[], &["iguana", "chameleon"], p95, Some((74, false))),
        case(
            "animals-80",
            &["-s", "-w", "60", "-c", "80"],
            &["iguana", "chameleon"],
            Some(Confidence::P80),
            Some((60, true)),
        ),
        case("max", &[], &["max-tasklet", "max-direct"], p95, Some((74, false))),
        case(
            "max-swapped-99.5",
            &["-A", "-c", "99.5"],
            &["max-direct", "max-tasklet"],
            Some(Confidence::P995),
            None,
        ),
        case("mean", &["-s", "-w", "72"], &["mean-tasklet", "mean-direct"], p95, Some((72, true))),
        case("tails", &["-w", "100"], &["heavy-tail", "huge", "negative"], p95, Some((100, false))),
        case(
            "offset",
            &["-c", "90"],
            &["large-offset", "negative", "large-offset"],
            Some(Confidence::P90),
            Some((74, false)),
        ),
        case(
            "narrow",
            &["-w", "2", "-c", "98"],
            &["negative", "heavy-tail"],
            Some(Confidence::P98),
            Some((2, false)),
        ),
        case(
            "seven",
            &["-s", "-c", "99"],
            &["iguana", "chameleon", "max-tasklet", "max-direct", "iguana", "negative", "max-direct"],
            Some(Confidence::P99),
            Some((74, true)),
        ),
        case("column", &["-C", "2"], &["columns"], p95, Some((74, false))),
        case("first-column", &[], &["columns", "negative"], p95, Some((74, false))),
    ];
    if let Some(case) = cases.iter_mut().find(|case| case.name == "column") {
        case.format = column(2);
    }
    cases
}

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn ours(case: &Case) -> String {
    let sets: Vec<DataSet> = case
        .files
        .iter()
        .map(|file| {
            let name = format!("{file}.txt");
            let text = fs::read_to_string(data().join(&name)).unwrap();
            DataSet::new(name, &parse(&text, &case.format).unwrap().values).unwrap()
        })
        .collect();
    render(&sets, &case.options).unwrap()
}

/// What the installed program prints; `None` where there is none.
fn theirs(arguments: &[&str], files: &[String], folder: &std::path::Path) -> Option<String> {
    let program = which::which("ministat").ok()?;
    let output = Command::new(program).args(arguments).args(files).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?} {files:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_captured_output_of_ministat_is_reproduced() {
    for case in cases() {
        let captured = fs::read_to_string(data().join(format!("{}.out", case.name))).unwrap();
        assert_eq!(ours(&case), captured, "{}", case.name);
    }
}

#[test]
fn an_installed_ministat_prints_what_was_captured() {
    for case in cases() {
        let files: Vec<String> = case.files.iter().map(|file| format!("{file}.txt")).collect();
        let Some(output) = theirs(case.arguments, &files, &data()) else {
            eprintln!("ministat is not installed: only the captured outputs were compared");
            return;
        };
        assert_eq!(ours(&case), output, "{}", case.name);
    }
}

/// Every degree of freedom of the table, and some beyond it, at every level: a spread with a huge difference prints t times a known number.
#[test]
fn an_installed_ministat_uses_the_same_t_for_every_degree_of_freedom() {
    let folder = tempfile::tempdir().unwrap();
    let values =
        |n: usize, offset: f64| -> Vec<f64> { (0..n).map(|i| offset + (i % 2) as f64 * 1e3).collect() };
    for degrees in (4..=103).chain([500]) {
        let n = (degrees + 2) / 2;
        let sets = [("a", values(n, 0.0)), ("b", values(degrees + 2 - n, 1e7))];
        for (name, values) in &sets {
            let text: String = values.iter().map(|value| format!("{value}\n")).collect();
            fs::write(folder.path().join(name), text).unwrap();
        }
        let sets = sets.map(|(name, values)| DataSet::new(name, &values).unwrap());
        for confidence in Confidence::ALL {
            let level = confidence.percent().to_string();
            let files = ["a".to_owned(), "b".to_owned()];
            let Some(output) = theirs(&["-A", "-c", &level], &files, folder.path()) else {
                eprintln!("ministat is not installed: the table of t was not compared");
                return;
            };
            let options = Options { confidence: Some(confidence), plot: None };
            assert_eq!(render(&sets, &options).unwrap(), output, "{degrees} degrees at {level} %");
        }
    }
}
