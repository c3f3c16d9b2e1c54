//! The process: its command line, its socket, its end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod support;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use execlab_abi::wire::Op;
use support::{Guest, Manners, PATIENCE};

const EVENT_IDX: Manners = Manners { event_idx: true };

fn command(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_execlab-device"));
    command.arg("--socket").arg(socket).stderr(Stdio::piped());
    command
}

/// Starts it and waits for its socket.
fn start(socket: &Path, arguments: &[&str]) -> Child {
    let child = command(socket).args(arguments).spawn().unwrap();
    let begin = Instant::now();
    while !socket.exists() {
        assert!(begin.elapsed() < PATIENCE, "no socket");
        std::thread::yield_now();
    }
    child
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Waits for the end: success, and no socket left.
fn ends_cleanly(child: Child, socket: &Path) -> String {
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{:?}\n{log}", output.status);
    assert!(!socket.exists(), "the socket is still there");
    log
}

fn refused(output: &Output, reason: &str) {
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains(reason), "{log}");
}

#[test]
fn sigterm_and_sigint_end_an_idle_device_in_every_mode() {
    let dir = tempfile::tempdir().unwrap();
    for (n, mode) in ["sleep", "hybrid", "poll"].into_iter().enumerate() {
        for kill in ["-TERM", "-INT"] {
            let socket = dir.path().join(format!("{n}{kill}"));
            let child = start(&socket, &["--wait", mode]);
            signal(&child, kill);
            ends_cleanly(child, &socket);
        }
    }
}

#[test]
fn sigterm_ends_a_device_that_serves_a_guest() {
    let dir = tempfile::tempdir().unwrap();
    for mode in ["sleep", "hybrid", "poll"] {
        let socket = dir.path().join(mode);
        let child = start(&socket, &["--wait", mode, "--profile", "kbl-2018", "--seed", "7"]);
        let mut guest = Guest::connect(&socket, EVENT_IDX);
        guest.init_gpu();
        guest.submit_request(1);
        guest.wait_csb(1);
        signal(&child, "-TERM");
        let log = ends_cleanly(child, &socket);
        assert!(log.contains("\"submissions\":1"), "{log}");
    }
}

#[test]
fn three_front_ends_one_after_another_are_served_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let child = start(&socket, &["--wait", "poll", "--dilation", "2.5", "--seed", "99"]);
    for _ in 0..3 {
        let mut guest = Guest::connect(&socket, EVENT_IDX);
        let (_, payload) = guest.control(Op::Identify, &[]);
        let text = String::from_utf8_lossy(&payload[32..]).into_owned();
        for line in ["wait=poll", "profile=instant", "seed=99", "dilation=2.5"] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
    signal(&child, "-TERM");
    ends_cleanly(child, &socket);
}

/// CPU time used so far by a process, in clock ticks (10 ms).
fn ticks(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn poll_mode_burns_no_cpu_without_a_guest() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let child = start(&socket, &["--wait", "poll"]);
    for round in 0..2 {
        let before = ticks(&child);
        // The span over which CPU time is measured; nothing is waited for.
        std::thread::sleep(Duration::from_millis(300));
        let used = ticks(&child) - before;
        assert!(used <= 5, "round {round}: {used} ticks of 10 ms in 300 ms");
        let mut guest = Guest::connect(&socket, EVENT_IDX);
        guest.ping();
        drop(guest);
        // Gone when the next one is served.
        Guest::connect(&socket, EVENT_IDX).ping();
        let begin = Instant::now();
        while parked(&child) < 1 {
            assert!(begin.elapsed() < PATIENCE, "the poll thread does not park");
        }
    }
    signal(&child, "-TERM");
    ends_cleanly(child, &socket);
}

/// Threads named `poll` that sleep.
fn parked(child: &Child) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let sleeps = |stat: &str| stat.contains("(poll) S");
    let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat")).ok();
    tasks.filter_map(Result::ok).filter_map(stat).filter(|s| sleeps(s)).count()
}

#[test]
fn a_killed_device_leaves_a_socket_that_the_next_one_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let mut child = start(&socket, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(socket.exists());
    let child = command(&socket).spawn().unwrap();
    let begin = Instant::now();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    Guest::connect(&socket, EVENT_IDX).ping();
    signal(&child, "-TERM");
    ends_cleanly(child, &socket);
}

#[test]
fn wrong_command_lines_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let live = dir.path().join("live");
    let _listener = UnixListener::bind(&live).unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "x").unwrap();
    refused(&command(&live).output().unwrap(), "in use");
    refused(&command(&plain).output().unwrap(), "not a socket");
    refused(&command(&dir.path().join("x".repeat(120))).output().unwrap(), "107");
    refused(&command(&dir.path().join("no/such/dir")).output().unwrap(), "cannot make socket");
    refused(&command(&socket).args(["--profile", "kbl-2019"]).output().unwrap(), "did you mean `kbl-2018`");
    refused(&command(&socket).args(["--wait", "poll", "--cpu", "1023"]).output().unwrap(), "CPU 1023");
    refused(&command(&socket).args(["--cpu", "999999"]).output().unwrap(), "CPU 999999");
    refused(&command(&socket).env("EXECLAB_LOG", "a=b=c").output().unwrap(), "EXECLAB_LOG");
    let bad = dir.path().join("bad.toml");
    std::fs::write(&bad, "[delay]\n\"elsp.accept\" = \"1 fortnight\"\n").unwrap();
    let output = command(&socket).arg("--profile").arg(&bad).output().unwrap();
    refused(&output, "bad.toml:2:");
    assert!(!socket.exists());
    for arguments in [["--dilation", "0"], ["--wait", "never"], ["--realtime", "100"], ["--spin-us", "0"]] {
        assert_eq!(
            command(&socket).args(arguments).output().unwrap().status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn list_profiles_names_what_ships() {
    let output = Command::new(env!("CARGO_BIN_EXE_execlab-device")).arg("--list-profiles").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("kbl-2018 ")), "{text}");
}
