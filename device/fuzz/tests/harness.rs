//! Whether the harness sees what it is there to see.

use std::time::Duration;

use execlab_fuzz::campaign::{self, Config, ROUND};
use execlab_fuzz::{Reached, Target};

const CONFIG: Config =
    Config { seed: 7, cases: 400_000, time: None, jobs: 2, case_limit: Duration::from_millis(500) };

const HARMLESS: Target = Target {
    name: "planted",
    about: "a target of the tests",
    max_len: 16,
    labels: &[],
    seeds: || vec![vec![0; 16]],
    runner: || Box::new(|_| Ok(Reached::default())),
};

#[test]
fn a_harmless_target_runs_all_its_cases() {
    let summary = campaign::run(HARMLESS, &CONFIG, |_| ());
    assert_eq!((summary.cases, summary.finding), (CONFIG.cases, None));
}

/// Three bytes in a row are out of reach of blind guessing (one case in 16 million); the feedback gets there.
#[test]
fn a_panic_behind_three_checks_is_found_and_had_again() {
    let target = Target {
        runner: || {
            Box::new(|input| {
                let mut reached = Reached::default();
                let depth = input.iter().zip(b"ELS").take_while(|(a, b)| a == b).count();
                reached.name(depth);
                assert!(depth < 3, "planted");
                Ok(reached)
            })
        },
        ..HARMLESS
    };
    let finding = campaign::run(target, &CONFIG, |_| ()).finding.unwrap();
    assert!(finding.what.contains("planted") && finding.what.contains("harness.rs"), "{}", finding.what);
    assert_eq!(&finding.input[..3], b"ELS");

    let mut again = Vec::new();
    let verdict = campaign::replay(target, CONFIG.seed, finding.case, |input| again = input.to_vec());
    assert_eq!(again, finding.input);
    assert_eq!(verdict.unwrap_err(), finding.what);
}

#[test]
fn a_case_that_hangs_is_named_and_the_campaign_ends() {
    let target = Target {
        runner: || {
            let mut cases = 0;
            Box::new(move |_| {
                cases += 1;
                if cases == 100 {
                    loop {
                        std::thread::park();
                    }
                }
                Ok(Reached::default())
            })
        },
        ..HARMLESS
    };
    // Longer than a busy machine keeps a harmless case waiting.
    let config = Config { case_limit: Duration::from_secs(3), ..CONFIG };
    let finding = campaign::run(target, &config, |_| ()).finding.unwrap();
    assert_eq!(finding.case % ROUND, 99);
    assert!(finding.what.starts_with("hangs"), "{}", finding.what);
}

#[test]
fn a_violation_that_a_target_reports_is_the_finding() {
    let target = Target {
        runner: || {
            Box::new(|input| match input.len() {
                15 => Err("length 15".to_owned()),
                _ => Ok(Reached::default()),
            })
        },
        ..HARMLESS
    };
    assert_eq!(campaign::run(target, &CONFIG, |_| ()).finding.unwrap().what, "length 15");
}

#[test]
fn the_time_limit_ends_a_campaign_with_cases_left() {
    let config = Config { cases: u64::MAX, time: Some(Duration::from_millis(200)), ..CONFIG };
    let summary = campaign::run(HARMLESS, &config, |_| ());
    assert_eq!(summary.finding, None);
    assert!(summary.elapsed < Duration::from_secs(5));
}
