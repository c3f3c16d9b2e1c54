//! Whatever goes wrong before there is a device, the results end with one line that says it.

#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests count as no tests to clippy.

use std::process::{Command, Output};

use execlab_report::{Line, read_line};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_submit-latency"));
    command.env_remove("EXECLAB_RESULTS_FD").args(args).output().unwrap()
}

/// The message of the last line; the exit status must be 1.
fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    match read_line(text.lines().last().unwrap()).unwrap() {
        Line::Failure(failure) => failure.message,
        other => panic!("the last line is {other:?}"),
    }
}

#[test]
fn no_device_at_the_socket_is_a_failure_after_the_hello() {
    let output = run(&["--socket", "/nonexistent/gpu", "--blocks", "1"]);
    assert!(failure(&output).contains("/nonexistent/gpu"));
    let text = String::from_utf8(output.stdout).unwrap();
    let first = read_line(text.lines().next().unwrap()).unwrap();
    assert!(matches!(first, Line::Hello(hello) if hello.plan.blocks == 1));
}

#[test]
fn a_plan_that_is_not_there_is_a_failure_that_names_it() {
    assert!(failure(&run(&["--plan", "/nonexistent/plan"])).contains("/nonexistent/plan"));
}

#[test]
fn an_unknown_variant_is_a_failure_that_names_the_known_ones() {
    let message = failure(&run(&["--socket", "/nonexistent/gpu", "--variants", "direct"]));
    assert!(message.contains("\"direct\"") && message.contains("direct-2018"), "{message}");
}

#[test]
fn a_descriptor_that_is_not_open_is_an_error_on_the_console() {
    let output = run(&["--socket", "/nonexistent/gpu", "--results", "fd:999"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--results"), "{output:?}");
}
