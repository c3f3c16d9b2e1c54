//! The program against a device in this process, and what it says when there is none.
#![cfg(not(target_env = "musl"))] // The device process is a program of the host.
#![allow(clippy::unwrap_used)] // Helpers of tests fail as tests do.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

use execlab_device::{Server, Settings, Stopper, WaitMode};
use execlab_profile::Profile;
use serde_json::Value;

/// A device that listens, and ends with its test.
struct Running {
    socket: PathBuf,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Running {
    fn new(wait: WaitMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("gpu");
        let settings = Settings { wait, ..Settings::new(Profile::load("instant").unwrap()) };
        let server = Server::start(&socket, settings, None).unwrap();
        let stopper = server.stopper();
        let thread = thread::spawn(move || server.run().unwrap());
        Self { socket, stopper, thread: Some(thread), _folder: folder }
    }

    /// The numbers of a short run.
    fn measured(&self) -> Value {
        let socket = self.socket.to_str().unwrap();
        let output = bench(&["doorbell", "--socket", socket, "--rounds", "95", "--json", "-"]);
        assert!(output.status.success(), "{output:?}");
        let table = String::from_utf8(output.stderr).unwrap();
        assert!(table.contains("ELSP write to CSB entry"), "{table}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_execlab-bench")).args(args).output().unwrap()
}

/// Every floor and path has its samples, and every quantile is in order.
fn check(numbers: &Value, wait: &str) {
    assert_eq!(numbers["wait"], wait);
    assert_eq!(numbers["profile"], "instant");
    let paths = numbers["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 3);
    let ns = paths.iter().map(|path| &path["ns"]).chain([&numbers["cache_line"], &numbers["eventfd"]]);
    for ns in ns {
        let [n, p50, p90, p99] = ["n", "p50", "p90", "p99"].map(|key| ns[key].as_u64().unwrap());
        // Ten turns of ten rounds, or of one where somebody blocks.
        assert!(n == 100 || n == 10, "{ns}");
        assert!(0 < p50 && p50 <= p90 && p90 <= p99, "{ns}");
    }
    assert!(paths.iter().all(|path| path["ratio_p50"].as_f64().unwrap() > 0.0), "{numbers}");
}

#[test]
fn a_device_that_sleeps_is_held_against_the_eventfd_only() {
    let numbers = Running::new(WaitMode::Sleep).measured();
    check(&numbers, "sleep");
    assert!(numbers["paths"].as_array().unwrap().iter().all(|path| path["floor"] == "eventfd"), "{numbers}");
}

#[test]
fn a_device_that_polls_is_held_against_the_cache_line() {
    let numbers = Running::new(WaitMode::Poll).measured();
    check(&numbers, "poll");
    assert_eq!(numbers["paths"][0]["floor"], "cache-line");
}

/// What it says on standard error; the exit status must be `code`.
fn failure(args: &[&str], code: i32) -> String {
    let output = bench(args);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_socket_that_is_not_there_is_an_error_that_names_it() {
    assert!(failure(&["doorbell", "--socket", "/nonexistent/gpu"], 1).contains("/nonexistent/gpu"));
}

#[test]
fn a_device_program_that_is_not_there_is_an_error_that_names_it() {
    let message = failure(&["delays", "--device", "/nonexistent/device"], 1);
    assert!(message.contains("cannot start /nonexistent/device"), "{message}");
}

#[test]
fn a_device_program_that_ends_at_once_is_an_error_that_says_so() {
    let message = failure(&["delays", "--device", "/bin/false"], 1);
    assert!(message.contains("/bin/false ended with exit status: 1"), "{message}");
}

#[test]
fn one_cpu_for_both_ends_is_refused() {
    let message = failure(&["doorbell", "--socket", "/nonexistent/gpu", "--cpu", "1"], 1);
    assert!(message.contains("--device-cpu"), "{message}");
}

#[test]
fn no_rounds_and_no_samples_are_refused() {
    assert!(failure(&["doorbell", "--socket", "gpu", "--rounds", "0"], 2).contains("--rounds"));
    assert!(failure(&["delays", "--device", "device", "--samples", "0"], 2).contains("--samples"));
}
