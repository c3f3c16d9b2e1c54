use super::*;

fn normal(random: &mut SmallRng) -> f64 {
    Normal::new(0.0, 1.0).unwrap().inverse_cdf(random.random_range(1e-12..1.0))
}

#[test]
fn weighted_ranks_equal_those_of_the_written_out_sample() {
    let mut random = SmallRng::seed_from_u64(3);
    for _ in 0..300 {
        let blocks: Vec<Vec<f64>> = (0..random.random_range(2..6))
            .map(|_| (0..random.random_range(1..9)).map(|_| f64::from(random.random_range(0..12))).collect())
            .collect();
        let views: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
        let pool = Pool::of(&views).unwrap();
        let times = draw(blocks.len(), &mut random);
        let written: Vec<f64> =
            blocks.iter().zip(&times).flat_map(|(block, &times)| block.repeat(times as usize)).collect();
        let written = quantile::sorted(&written).unwrap();
        for q in [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0] {
            assert_eq!(
                Some(pool.value(&times, Quantity::Quantile(q))),
                quantile::quantile(&written, q),
                "{q} of {blocks:?} × {times:?}"
            );
        }
        let mean = written.iter().sum::<f64>() / written.len() as f64;
        assert!((pool.value(&times, Quantity::Mean) - mean).abs() < 1e-9);
    }
}

#[test]
fn equal_seeds_give_equal_intervals_and_the_estimate_lies_inside() {
    let values: Vec<f64> = (0..40).map(|i| f64::from((i * 37) % 40)).collect();
    for quantity in [Quantity::Mean, Quantity::MEDIAN, Quantity::P99] {
        let interval = of_values(&values, quantity, &Plan::default()).unwrap();
        assert_eq!(of_values(&values, quantity, &Plan::default()), Ok(interval));
        assert!(interval.low <= interval.estimate && interval.estimate <= interval.high, "{interval:?}");
    }
}

#[test]
fn dependent_samples_in_a_block_widen_the_interval() {
    let mut random = SmallRng::seed_from_u64(5);
    let blocks: Vec<Vec<f64>> = (0..20)
        .map(|_| {
            let level = normal(&mut random);
            (0..50).map(|_| level + 0.1 * normal(&mut random)).collect()
        })
        .collect();
    let views: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
    let width = |interval: Interval| interval.high - interval.low;
    let whole = width(of_blocks(&views, Quantity::MEDIAN, &Plan::default()).unwrap());
    let single = width(of_values(&blocks.concat(), Quantity::MEDIAN, &Plan::default()).unwrap());
    assert!(whole > 3.0 * single, "{whole} and {single}");
}

/// 95 % intervals for the mean of few normal values: the widening must bring the coverage near the stated one.
#[test]
fn stated_95_percent_cover_the_true_mean_in_at_least_92_percent_of_a_thousand_small_samples() {
    let mut random = SmallRng::seed_from_u64(11);
    for n in [6, 12] {
        let covered = (0..1000)
            .filter(|&seed| {
                let values: Vec<f64> = (0..n).map(|_| normal(&mut random)).collect();
                let plan = Plan { resamples: 1000, seed, ..Plan::default() };
                let interval = of_values(&values, Quantity::Mean, &plan).unwrap();
                interval.low <= 0.0 && 0.0 <= interval.high
            })
            .count();
        assert!((920..=980).contains(&covered), "n {n}: {covered} of 1000");
    }
}

#[test]
fn differences_of_arms_find_a_shift_under_drift() {
    let arm = |shift: f64| -> Vec<BlockValue> {
        (0..10_u32)
            .map(|round| BlockValue {
                round,
                value: f64::from(round) * 50.0 + shift + f64::from(round % 3) * shift * 0.1,
            })
            .collect()
    };
    let difference =
        |kind| of_arm_difference(&arm(0.0), &arm(5.0), kind, Location::Mean, &Plan::default()).unwrap();
    let by_round = difference(Strata::Rounds);
    assert!(by_round.excludes_zero() && (by_round.estimate - 5.45).abs() < 1e-9, "{by_round:?}");
    assert!(!difference(Strata::Pooled).excludes_zero());
    assert!(by_round.mirrored().high < 0.0);
}

#[test]
fn differences_of_pools_find_a_longer_tail() {
    let block = |tail: f64| -> Vec<f64> {
        (0..200).map(|i| if i % 50 == 0 { tail } else { f64::from(i % 7) }).collect()
    };
    let (short, long) = (vec![block(20.0); 8], vec![block(90.0); 8]);
    let views = |blocks: &[Vec<f64>]| -> Vec<Vec<f64>> { blocks.to_vec() };
    let (short, long) = (views(&short), views(&long));
    let short: Vec<&[f64]> = short.iter().map(Vec::as_slice).collect();
    let long: Vec<&[f64]> = long.iter().map(Vec::as_slice).collect();
    let p99 = of_pool_difference(&short, &long, Quantity::P99, &Plan::default()).unwrap();
    assert_eq!((p99.estimate, p99.low, p99.high), (70.0, 70.0, 70.0));
    let median = of_pool_difference(&short, &long, Quantity::MEDIAN, &Plan::default()).unwrap();
    assert_eq!(median.estimate, 0.0);
}

#[test]
fn too_little_data_and_bad_plans_are_refused() {
    let refused = |plan| of_values(&[1.0, 2.0, 3.0], Quantity::Mean, &plan).is_err();
    assert!(of_values(&[1.0], Quantity::Mean, &Plan::default()).is_err());
    assert!(of_blocks(&[&[1.0][..], &[][..]], Quantity::Mean, &Plan::default()).is_err());
    assert!(refused(Plan { confidence: 1.0, ..Plan::default() }));
    assert!(refused(Plan { confidence: f64::NAN, ..Plan::default() }));
    assert!(refused(Plan { resamples: 10, ..Plan::default() }));
}
