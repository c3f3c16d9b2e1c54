//! The modelled CPU keeps the kernel's rules. Priorities are off where only the order matters, so that these
//! tests need no privilege.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests count as no tests to clippy.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use execlab_driver::kernel::{Kernel, Place, SpinLock as _, WaitQueue as _};
use execlab_posix::{Config, Cpu, IrqLine, IrqThread, Posix, now_ns};

const SECOND: u64 = 1_000_000_000;

fn cpu() -> Cpu {
    Cpu::start(Config { priorities: false, ..Config::default() }).unwrap()
}

/// A tasklet that notes where it runs; returns the notes and its id.
fn noting(kernel: &Posix) -> (Arc<Mutex<Vec<Place>>>, execlab_driver::kernel::TaskletId) {
    let places = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&places);
    (places, kernel.new_tasklet(Box::new(move |place| noted.lock().unwrap().push(place))))
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = now_ns() + 10 * SECOND;
    while !condition() {
        assert!(now_ns() < deadline, "{what} did not come about in 10 s");
        std::thread::yield_now();
    }
}

#[test]
fn a_tasklet_scheduled_in_a_bh_off_section_runs_once_at_its_end() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let (places, tasklet) = noting(&kernel);
    kernel.bh_off(|| {
        kernel.bh_off(|| kernel.tasklet_hi_schedule(tasklet));
        kernel.irq_off(|| kernel.tasklet_hi_schedule(tasklet));
        assert!(places.lock().unwrap().is_empty());
    });
    assert_eq!(*places.lock().unwrap(), [Place::BhEnable]);
    assert_eq!((cpu.stats().at_bh_enable, cpu.stats().ksoftirqd_wakes), (1, 0));
}

#[test]
fn a_tasklet_scheduled_in_a_handler_runs_at_irq_exit() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let (places, tasklet) = noting(&kernel);
    kernel.interrupt(
        || {
            kernel.tasklet_hi_schedule(tasklet);
            kernel.bh_off(|| ());
            assert!(places.lock().unwrap().is_empty(), "not inside the handler");
        },
        &mut || (),
    );
    assert_eq!(*places.lock().unwrap(), [Place::IrqExit]);
}

#[test]
fn a_tasklet_scheduled_by_a_task_runs_in_ksoftirqd() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let (places, tasklet) = noting(&kernel);
    kernel.tasklet_hi_schedule(tasklet);
    wait_for("ksoftirqd", || *places.lock().unwrap() == [Place::Ksoftirqd]);
}

#[test]
fn a_tasklet_that_schedules_itself_goes_to_ksoftirqd_after_ten_rounds() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let places = Arc::new(Mutex::new(Vec::new()));
    let (noted, again) = (Arc::clone(&places), kernel.clone());
    let tasklet = execlab_driver::kernel::TaskletId(0);
    let id = kernel.new_tasklet(Box::new(move |place| {
        let mut places = noted.lock().unwrap();
        places.push(place);
        if places.len() < 15 {
            again.tasklet_hi_schedule(tasklet);
        }
    }));
    assert_eq!(id, tasklet);
    kernel.bh_off(|| kernel.tasklet_hi_schedule(tasklet));
    wait_for("15 rounds", || places.lock().unwrap().len() == 15);
    let places = places.lock().unwrap();
    assert!(places[..10].iter().all(|place| *place == Place::BhEnable), "{places:?}");
    assert!(places[10..].iter().all(|place| *place == Place::Ksoftirqd), "{places:?}");
}

#[test]
fn a_pass_longer_than_two_milliseconds_goes_to_ksoftirqd_at_once() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let places = Arc::new(Mutex::new(Vec::new()));
    let (noted, again) = (Arc::clone(&places), kernel.clone());
    let id = kernel.new_tasklet(Box::new(move |place| {
        noted.lock().unwrap().push(place);
        if place == Place::BhEnable {
            again.spend(2_100_000);
            again.tasklet_hi_schedule(execlab_driver::kernel::TaskletId(0));
        }
    }));
    kernel.bh_off(|| kernel.tasklet_hi_schedule(id));
    wait_for("ksoftirqd", || places.lock().unwrap().len() == 2);
    assert_eq!(*places.lock().unwrap(), [Place::BhEnable, Place::Ksoftirqd]);
}

#[test]
fn a_tasklet_scheduled_from_many_threads_never_overlaps_itself_and_is_never_forgotten() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let (running, runs, asked) =
        (AtomicBool::new(false), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, wanted) = (Arc::clone(&runs), Arc::clone(&asked));
    let id = kernel.new_tasklet(Box::new(move |_| {
        assert!(!running.swap(true, SeqCst), "two at once");
        counted.store(wanted.load(SeqCst), SeqCst);
        running.store(false, SeqCst);
    }));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (kernel, asked) = (&kernel, &asked);
            scope.spawn(move || {
                for _ in 0..2000 {
                    asked.fetch_add(1, SeqCst);
                    match thread {
                        0 => kernel.tasklet_hi_schedule(id),
                        1 => kernel.interrupt(|| kernel.tasklet_hi_schedule(id), &mut || ()),
                        _ => kernel.bh_off(|| kernel.tasklet_hi_schedule(id)),
                    }
                }
            });
        }
    });
    wait_for("the last request", || runs.load(SeqCst) == asked.load(SeqCst));
}

#[test]
fn a_lock_keeps_two_threads_apart() {
    let cpu = cpu();
    let lock = Arc::new(cpu.kernel().new_lock("test", 0_u64));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    lock.with_irqsave(|value| *value += 1);
                }
            });
        }
    });
    assert_eq!(lock.with_irqsave(|value| *value), 30_000);
    assert_eq!(cpu.stats().irq_off.count, 30_001);
}

#[test]
fn nested_irq_off_sections_are_one_span_that_is_as_long_as_the_outermost() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    kernel.irq_off(|| {
        kernel.irq_off(|| kernel.spend(100_000));
        kernel.irq_off(|| kernel.spend(100_000));
    });
    let stats = cpu.stats();
    assert_eq!((stats.irq_off.count, stats.raised.count), (1, 1));
    assert!(stats.irq_off.longest_ns >= 200_000, "{stats:?}");
    assert!(stats.raised.total_ns >= stats.irq_off.total_ns, "{stats:?}");
}

/// Interrupts from a list.
struct List(Arc<Mutex<VecDeque<u32>>>);

impl IrqLine for List {
    type Record = u32;
    fn wait(&mut self) -> io::Result<()> {
        if self.0.lock().unwrap().front() == Some(&u32::MAX) {
            return Err(io::Error::other("unplugged"));
        }
        std::thread::park_timeout(Duration::from_millis(1));
        Ok(())
    }
    fn take(&mut self) -> Option<u32> {
        let mut list = self.0.lock().unwrap();
        if list.front() == Some(&u32::MAX) { None } else { list.pop_front() }
    }
}

#[test]
fn the_interrupt_thread_hands_on_every_record_in_order_and_tells_why_it_ended() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let (places, tasklet) = noting(&kernel);
    let list = Arc::new(Mutex::new((0..100).collect::<VecDeque<u32>>()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, raised) = (Arc::clone(&seen), kernel.clone());
    let irq = IrqThread::start(&kernel, List(Arc::clone(&list)), move |record| {
        noted.lock().unwrap().push(record);
        raised.tasklet_hi_schedule(tasklet);
    })
    .unwrap();
    wait_for("100 interrupts", || seen.lock().unwrap().len() == 100);
    assert!(seen.lock().unwrap().iter().copied().eq(0..100));
    wait_for("bottom halves", || places.lock().unwrap().contains(&Place::IrqExit));
    assert_eq!(irq.error(), None);
    list.lock().unwrap().push_back(u32::MAX);
    wait_for("the end", || irq.error().is_some());
    assert_eq!(irq.error().unwrap(), "unplugged");
}

#[test]
fn a_dropped_cpu_frees_what_its_tasklets_hold() {
    let cpu = cpu();
    let kernel = cpu.kernel();
    let held = Arc::new(());
    let (weak, kept) = (Arc::downgrade(&held), kernel.clone());
    kernel.new_tasklet(Box::new(move |_| {
        let _ = (&held, &kept);
    }));
    drop(cpu);
    assert!(weak.upgrade().is_none());
    assert!(!kernel.new_wait_queue().wait_until(0, &mut || false));
}
