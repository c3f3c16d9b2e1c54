//! What a refused profile is told: the exact line, column and words.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which the lint does not see as tests"
)]

use execlab_profile::{Profile, ProfileError};

/// The message for `text`, which must be refused.
fn refusal(text: &str) -> String {
    match Profile::parse(text, "kbl.toml") {
        Ok(profile) => panic!("accepted: {text:?} as {profile:?}"),
        Err(error) => error.to_string(),
    }
}

/// The message for `value` as the delay at `elsp.accept`, where it stands at 2:17.
fn delay_refusal(value: &str) -> String {
    refusal(&format!("[delay]\n\"elsp.accept\" = {value}\n"))
}

#[test]
fn unknown_keys_are_refused_at_the_key_with_the_nearest_valid_one() {
    for (text, message) in [
        ("nmae = \"x\"", "kbl.toml:1:1: unknown key `nmae`; did you mean `name`?"),
        ("\n\n  [dely]\n", "kbl.toml:3:4: unknown key `dely`; did you mean `delay`?"),
        (
            "zebra = 1",
            "kbl.toml:1:1: unknown key `zebra`; valid here: name, description, source, bus, delay, engine",
        ),
        ("[bus]\nmmio_raed = \"1us\"", "kbl.toml:2:1: unknown key `mmio_raed`; did you mean `mmio_read`?"),
        (
            "[delay]\n\"elsp_accept\" = \"1us\"",
            "kbl.toml:2:1: unknown point `elsp_accept`; did you mean `elsp.accept`?",
        ),
        (
            "[delay]\nelsp.acept = \"1us\"",
            "kbl.toml:2:6: unknown point `elsp.acept`; did you mean `elsp.accept`?",
        ),
        (
            "[delay]\nelps.accept = \"1us\"",
            "kbl.toml:2:1: unknown point `elps`; valid here: elsp.accept, context.restore, context.save, \
             arbitration, batch.execute, command.execute, csb.visible, irq.deliver, seqno.visible, reset.ready",
        ),
        ("[engine.rcs1.delay]", "kbl.toml:1:9: unknown engine `rcs1`; did you mean `rcs0`?"),
        ("[engine.rcs0.bus]", "kbl.toml:1:14: unknown key `bus`; valid here: delay"),
        (
            "[engine.rcs0.delay]\n\"csb.visble\" = \"1us\"",
            "kbl.toml:2:1: unknown point `csb.visble`; did you mean `csb.visible`?",
        ),
    ] {
        assert_eq!(refusal(text), message);
    }
}

#[test]
fn bad_delays_are_refused_where_they_stand() {
    for (value, message) in [
        (
            "20",
            "kbl.toml:2:17: expected a delay such as \"20us\" or { uniform = [\"20us\", \"30us\"] }, found the \
             number 20",
        ),
        ("\"20\"", "kbl.toml:2:17: `20` has no unit; write for example `20us`"),
        ("\"20 usec\"", "kbl.toml:2:17: unknown unit `usec`; did you mean `us`?"),
        ("\"-1us\"", "kbl.toml:2:17: `-1us` is negative; a length of time is 0 or more"),
        (
            "\"nan\"",
            "kbl.toml:2:17: `nan` is not a length of time; write a number and a unit, such as `20us`",
        ),
        ("\"61s\"", "kbl.toml:2:17: `61s` is absurd; the longest that makes sense here is 60s"),
        ("{}", "kbl.toml:2:17: an empty delay; name a kind: uniform, mixture"),
        (
            "{ unifrom = [\"1us\", \"2us\"] }",
            "kbl.toml:2:19: unknown kind of delay `unifrom`; did you mean `uniform`?",
        ),
        (
            "{ uniform = [\"3us\", \"2us\"] }",
            "kbl.toml:2:30: the shortest length 3us is above the longest 2us",
        ),
        (
            "{ uniform = [\"3us\"] }",
            "kbl.toml:2:29: `uniform` takes the shortest and the longest length, such as [\"20us\", \"30us\"]",
        ),
        (
            "{ uniform = \"3us\" }",
            "kbl.toml:2:29: expected the shortest and the longest length, such as [\"20us\", \"30us\"], found the \
             string \"3us\"",
        ),
        (
            "{ uniform = [\"1us\", 2] }",
            "kbl.toml:2:37: expected a quantity with a unit, such as \"20us\", found the number 2",
        ),
        (
            "{ uniform = [\"1us\", \"2us\"], mixture = [] }",
            "kbl.toml:2:45: a delay is of one kind: `uniform` or `mixture`",
        ),
        (
            "{ mixture = [] }",
            "kbl.toml:2:29: a mixture of nothing; give at least one { weight = …, delay = … }",
        ),
        (
            "{ mixture = [\"1us\"] }",
            "kbl.toml:2:30: expected { weight = …, delay = … }, found the string \"1us\"",
        ),
        ("{ mixture = [{ weight = 1 }] }", "kbl.toml:2:30: this arm has no `delay`"),
        ("{ mixture = [{ delay = \"1us\" }] }", "kbl.toml:2:30: this arm has no `weight`"),
        (
            "{ mixture = [{ weight = 0, delay = \"1us\" }] }",
            "kbl.toml:2:41: a weight must be above 0; leave the arm out instead",
        ),
        (
            "{ mixture = [{ weight = -3, delay = \"1us\" }] }",
            "kbl.toml:2:41: a weight must be above 0; leave the arm out instead",
        ),
        ("{ mixture = [{ weight = nan, delay = \"1us\" }] }", "kbl.toml:2:41: a weight must be a number"),
        ("{ mixture = [{ weight = inf, delay = \"1us\" }] }", "kbl.toml:2:41: a weight above 1e12 is absurd"),
        (
            "{ mixture = [{ weight = 9223372036854775807, delay = \"1us\" }] }",
            "kbl.toml:2:41: a weight above 1e12 is absurd",
        ),
        (
            "{ mixture = [{ weight = \"9\", delay = \"1us\" }] }",
            "kbl.toml:2:41: expected a number above 0, found the string \"9\"",
        ),
        (
            "{ mixture = [{ wieght = 9, delay = \"1us\" }] }",
            "kbl.toml:2:32: unknown key `wieght`; did you mean `weight`?",
        ),
    ] {
        assert_eq!(delay_refusal(value), message, "{value}");
    }
}

#[test]
fn a_place_after_letters_of_several_bytes_is_counted_in_characters() {
    assert_eq!(
        refusal("description = \"µ\"\n[delay]\n\"elsp.accept\" = { uniform = [\"1µs\", \"x\"] }"),
        "kbl.toml:3:37: `x` is not a length of time; write a number and a unit, such as `20us`"
    );
}

#[test]
fn a_place_after_windows_line_ends_is_counted_in_lines() {
    assert_eq!(refusal("name = \"x\"\r\n[bus]\r\nmmio_read = \"1\"\r\n"), {
        "kbl.toml:3:13: `1` has no unit; write for example `1us`"
    });
}

#[test]
fn the_first_offence_in_the_file_is_the_one_reported() {
    assert_eq!(refusal("zz = 1\naa = 1").split(':').nth(1), Some("1"));
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_place() {
    for (text, place) in
        [("name = ", "kbl.toml:1:8: "), ("[delay\n", "kbl.toml:1:7: "), ("a = 1\na = 2\n", "kbl.toml:2:1: ")]
    {
        let message = refusal(text);
        assert!(message.starts_with(place), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_point_given_with_and_without_quotes_is_refused() {
    assert_eq!(
        refusal("[delay]\n\"csb.visible\" = \"1us\"\ncsb.visible = \"2us\"\n"),
        "kbl.toml:3:5: `csb.visible` is given twice"
    );
}

#[test]
fn wrong_types_say_what_was_found() {
    for (text, message) in [
        ("bus = 3", "kbl.toml:1:7: expected a table, found the number 3"),
        ("delay = [1]", "kbl.toml:1:9: expected a table, found an array"),
        ("name = true", "kbl.toml:1:8: expected a string, found true"),
        ("engine = 2018-06-28", "kbl.toml:1:10: expected a table, found a date"),
        ("name = \"a b\"", "kbl.toml:1:8: a name is 1 to 64 letters, digits, `-`, `_` or `.`"),
        (
            "[bus]\nmmio_read = 1.5",
            "kbl.toml:2:13: expected a quantity with a unit, such as \"20us\", found the number 1.5",
        ),
        (
            "[bus]\nmmio_read = \"11ms\"",
            "kbl.toml:2:13: `11ms` is absurd; the longest that makes sense here is 10ms",
        ),
    ] {
        assert_eq!(refusal(text), message);
    }
}

/// `depth` mixtures inside one another.
fn nested(depth: usize) -> String {
    let inner = (0..depth).fold("\"1us\"".to_owned(), |inner, _| {
        format!("{{ mixture = [{{ weight = 1, delay = {inner} }}] }}")
    });
    format!("[delay]\n\"elsp.accept\" = {inner}")
}

#[test]
fn mixtures_are_read_four_deep_and_refused_five_deep() {
    Profile::parse(&nested(4), "kbl.toml").unwrap();
    assert!(refusal(&nested(5)).ends_with(": mixtures are nested more than 4 deep"));
}

#[test]
fn a_thousand_nested_mixtures_are_refused_and_not_a_stack_overflow() {
    assert!(refusal(&nested(1000)).starts_with("kbl.toml:2:"));
}

#[test]
fn load_says_which_name_was_meant() {
    let error = Profile::load("klb-2018").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no profile `klb-2018`: neither a file nor one of instant, kbl-2018, bdw-2016, tgl-late-csb; did you \
         mean `kbl-2018`?"
    );
}

#[test]
fn load_refuses_what_is_no_profile_file() {
    for path in ["/no/such/file.toml", "/", "/dev/zero"] {
        assert!(matches!(Profile::load(path), Err(ProfileError::Unreadable { .. })), "{path}");
    }
}
