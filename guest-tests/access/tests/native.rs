//! The native way, against the real device in this process.
#![cfg(not(target_env = "musl"))] // The device process is a program of the host.
#![allow(clippy::unwrap_used)] // Helpers of tests fail as tests do.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use execlab_abi::wire::PostedWrite;
use execlab_abi::{guc, lab, ring};
use execlab_access::{AnyDevice, Error, NativeOptions, native};
use execlab_device::{Server, Settings, Stopper, WaitMode};
use execlab_driver::bus::{Bus as _, BusCosts, Dma as _};
use execlab_profile::Profile;

mod support;

const LONG: Duration = Duration::from_secs(20);

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

    fn connect(&self) -> Arc<AnyDevice> {
        native::connect(&self.socket, &NativeOptions { timeout: LONG, ..NativeOptions::default() }).unwrap()
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

fn scratch(n: u32, value: u32) -> PostedWrite {
    PostedWrite { offset: guc::soft_scratch(n), value }
}

#[test]
fn the_device_says_who_it_is_and_what_its_bus_costs() {
    let running = Running::new(WaitMode::Sleep);
    let device = running.connect();
    assert_eq!(device.access_name(), "native");
    assert_eq!(device.identity().description["profile"], "instant");
    assert_eq!(device.costs(), BusCosts::default());
    device.select_profile("kbl-2018").unwrap();
    assert_eq!(device.identity().description["profile"], "kbl-2018");
    assert_ne!(device.costs(), BusCosts::default());
    let error = device.select_profile("kbl-1999").unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(device.statistics().unwrap().starts_with('{'));
    device.check().unwrap();
}

#[test]
fn a_posted_write_shows_in_the_register_page_and_in_a_round_trip() {
    let running = Running::new(WaitMode::Sleep);
    let device = running.connect();
    device.write(&[scratch(3, 0x1234), scratch(4, 7), scratch(3, 0x5678)]);
    assert!(device.flush(LONG));
    assert_eq!((device.read32(guc::soft_scratch(3)), device.read32(guc::soft_scratch(4))), (0x5678, 7));
    assert_eq!(device.counters().slow_reads, 0);
    assert_eq!(device.read_register(guc::soft_scratch(3)).unwrap(), 0x5678);
    // HWS_PGA is not mirrored.
    let hws = execlab_abi::engine::Engine::Bcs0.reg(ring::HWS_PGA);
    device.write(&[PostedWrite { offset: hws, value: 0x7000 }]);
    assert!(device.flush(LONG));
    assert_eq!(device.read32(hws), 0x7000);
    assert_eq!(device.counters().slow_reads, 1);
    device.reset().unwrap();
    assert_eq!(device.read32(guc::soft_scratch(4)), 0, "the reset shows in the page, too");
}

#[test]
fn twenty_thousand_writes_from_four_threads_are_all_applied() {
    let running = Running::new(WaitMode::Sleep);
    let device = running.connect();
    thread::scope(|scope| {
        for thread in 0..4 {
            let device = &device;
            scope.spawn(move || {
                // More than the queue takes at once.
                let writes: Vec<_> = (1..=5000).map(|value| scratch(thread, value)).collect();
                writes.chunks(100 * (thread as usize + 1)).for_each(|batch| device.write(batch));
            });
        }
    });
    assert!(device.flush(LONG));
    assert!((0..4).all(|n| device.read32(guc::soft_scratch(n)) == 5000));
    assert_eq!(device.counters().writes, 20_000);
    assert!(device.statistics().unwrap().contains("\"mmio_writes\":20000"));
    assert_eq!(device.read32(lab::ERROR_COUNT), 0);
}

#[test]
fn a_sleeping_thread_is_woken_by_each_of_six_hundred_submissions() {
    let running = Running::new(WaitMode::Sleep);
    let device = running.connect();
    let context = support::EmptyContext::new(&device).unwrap();
    let irqs = device.irq_source();
    assert!(!irqs.poll());
    assert!(!irqs.wait(Some(Duration::from_millis(1))).unwrap(), "nothing was submitted");
    let mut sequence = 0;
    for _ in 0..600 {
        context.submit(&device);
        assert!(irqs.wait(Some(LONG)).unwrap());
        while let Some(record) = device.take_irq() {
            sequence += 1;
            assert_eq!(record.sequence, sequence);
            assert_ne!(record.iir, [0; 4]);
        }
        assert!(device.flush(LONG));
        // A submission makes one interrupt or two, and the second one may come after the first was taken.
        while context.last_event().status & execlab_abi::csb::COMPLETE == 0 {
            thread::yield_now();
        }
    }
    assert!(sequence >= 600);
    assert_eq!(device.read32(lab::ERROR_COUNT), 0);
}

#[test]
fn a_device_that_polls_costs_no_notifications() {
    let running = Running::new(WaitMode::Poll);
    let device = running.connect();
    for value in 0..50 {
        device.write(&[scratch(0, value)]);
    }
    assert!(device.flush(LONG));
    assert_eq!(device.read32(guc::soft_scratch(0)), 49);
    assert!(device.counters().notifications < 10, "{:?}", device.counters());
}

#[test]
fn two_clock_measurements_agree_within_their_bounds() {
    let running = Running::new(WaitMode::Sleep);
    let device = running.connect();
    let (first, second) = (device.clock_relation().unwrap(), device.clock_relation().unwrap());
    // Both sides read the same CLOCK_MONOTONIC here, so nothing drifts.
    assert!(first.offset_ns.abs_diff(second.offset_ns) <= first.error_ns + second.error_ns);
}

#[test]
fn the_memory_runs_out_with_an_error_and_was_zero() {
    let running = Running::new(WaitMode::Sleep);
    let options = NativeOptions { memory: 1 << 20, timeout: LONG };
    let device = native::connect(&running.socket, &options).unwrap();
    let pages = device.alloc(16).unwrap();
    assert!((0..pages.pages() * 4096).step_by(4).all(|at| pages.read32(at) == 0));
    assert!(matches!(device.alloc(256), Err(Error::OutOfMemory { asked: 256, .. })));
}

#[test]
fn a_device_that_ends_is_noticed_by_reader_writer_and_sleeper() {
    let running = Running::new(WaitMode::Sleep);
    let device = running.connect();
    let irqs = device.irq_source();
    running.stopper.stop();
    let start = Instant::now();
    let error = irqs.wait(None).unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error}");
    assert!(start.elapsed() < LONG);
    assert_eq!(device.read32(guc::soft_scratch(0)), u32::MAX);
    device.write(&[scratch(0, 1)]);
    assert!(matches!(device.statistics(), Err(Error::Lost(_))));
}

#[test]
fn the_next_connection_finds_a_fresh_device() {
    let running = Running::new(WaitMode::Sleep);
    let first = running.connect();
    first.write(&[scratch(0, 42)]);
    assert!(first.flush(LONG));
    drop(first);
    assert_eq!(running.connect().read32(guc::soft_scratch(0)), 0);
}

#[test]
fn a_second_front_end_is_told_that_nobody_answers() {
    let running = Running::new(WaitMode::Sleep);
    let _first = running.connect();
    let options = NativeOptions { timeout: Duration::from_millis(100), ..NativeOptions::default() };
    let text = native::connect(&running.socket, &options).unwrap_err().to_string();
    assert!(text.contains("does no other client hold it"), "{text}");
}

#[test]
fn an_absent_and_a_silent_socket_are_different_errors() {
    let options = NativeOptions { timeout: Duration::from_millis(100), ..NativeOptions::default() };
    let absent = native::connect(Path::new("/nonexistent/gpu"), &options).unwrap_err();
    assert!(absent.to_string().contains("is execlab-device running"), "{absent}");
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mute");
    let _listener = UnixListener::bind(&socket).unwrap();
    let silent = native::connect(&socket, &options).unwrap_err();
    assert!(matches!(silent, Error::NoAnswer { op: "GET_FEATURES", .. }), "{silent}");
}
