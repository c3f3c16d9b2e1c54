//! The profiles that ship with the device.

use std::time::Duration;

use execlab_abi::engine::Engine;
use execlab_profile::{Distribution, Point, Profile};

#[test]
fn every_shipped_profile_is_valid_and_says_what_it_is_and_where_its_numbers_come_from() {
    for name in Profile::builtin_names() {
        let text = Profile::builtin_text(name).unwrap();
        let profile = Profile::parse(text, name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.name, name);
        assert!(!profile.description.is_empty(), "{name} has no description");
        assert!(!profile.source.is_empty(), "{name} has no source");
        assert_eq!(Profile::load(name).unwrap(), profile);
        assert_eq!(Profile::builtin(name).unwrap(), profile);
    }
}

#[test]
fn instant_has_no_delay_and_no_cost() {
    let profile = Profile::builtin("instant").unwrap();
    assert_eq!(profile.bus, execlab_profile::Bus::default());
    for point in Point::ALL {
        assert!(Engine::ALL.into_iter().all(|engine| profile.delay(point, engine).is_none()));
    }
}

#[test]
fn kaby_lake_needs_no_forcewake_and_broadwell_does() {
    assert_eq!(Profile::builtin("kbl-2018").unwrap().bus.forcewake, Duration::ZERO);
    assert!(Profile::builtin("bdw-2016").unwrap().bus.forcewake > Duration::from_micros(10));
}

/// Linux commit f15e0f4e7b: 590 ns on average, 10.1 us at most.
#[test]
fn the_late_entries_of_tiger_lake_have_the_measured_mean_and_maximum() {
    let profile = Profile::builtin("tgl-late-csb").unwrap();
    let Some(Distribution::Mixture(arms)) = profile.delay(Point::CsbVisible, Engine::Rcs0) else {
        panic!("csb.visible is no mixture");
    };
    let late = &arms[1].delay;
    assert!((late.mean() - 590.0).abs() < 1.0, "{}", late.mean());
    assert_eq!(late.range().1, 10_100);
}

#[test]
fn tiger_lake_differs_from_kaby_lake_in_the_csb_alone() {
    let (tgl, kbl) = (Profile::builtin("tgl-late-csb").unwrap(), Profile::builtin("kbl-2018").unwrap());
    assert_eq!(tgl.bus, kbl.bus);
    for point in Point::ALL.into_iter().filter(|p| *p != Point::CsbVisible) {
        for engine in Engine::ALL {
            assert_eq!(tgl.delay(point, engine), kbl.delay(point, engine), "{}", point.name());
        }
    }
}

#[test]
fn names_of_points_are_read_back_as_that_point() {
    for point in Point::ALL {
        assert_eq!(Point::from_name(point.name()), Some(point));
        assert_eq!(Point::ALL[point.index()], point);
    }
    assert_eq!(Point::from_name("elsp"), None);
}
