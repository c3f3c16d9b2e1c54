//! What waiting costs on this machine without any device: the floors below which no measurement can go. Every
//! function gives raw samples in nanoseconds; on a shared machine their quantiles mean something, their maxima
//! do not.

use std::hint;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{ClockId, CpuSet, clock_nanosleep_absolute, sched_setaffinity};
use rustix::time::Timespec;

use crate::clock::now_ns;
use crate::event::Event;

/// How long one side waits for the other before the measurement is given up.
const STUCK: Duration = Duration::from_secs(5);

/// Round trips of an eventfd between threads on `here` and `there`: signal, wake up, signal back, wake up.
///
/// # Errors
/// When a thread cannot be pinned to its CPU, or an eventfd cannot be had.
pub fn eventfd_round_trips(here: usize, there: usize, count: usize) -> io::Result<Vec<u64>> {
    let ping = Arc::new((Event::new()?, Event::new()?));
    let other = {
        let ping = Arc::clone(&ping);
        on_cpu(there, move || {
            for _ in 0..=count {
                if !ping.0.wait(Some(STUCK))? {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                ping.1.signal();
            }
            Ok(())
        })
    };
    let samples = on_cpu(here, move || {
        let trip = || {
            let start = now_ns();
            ping.0.signal();
            if !ping.1.wait(Some(STUCK))? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Ok(now_ns() - start)
        };
        // The first one waits for the other thread to be started.
        trip()?;
        (0..count).map(|_| trip()).collect()
    });
    both(samples, other)
}

/// Round trips of a cache line between threads that spin on `here` and `there`. With both on one CPU, a round
/// trip is two turns of the scheduler.
///
/// # Errors
/// When a thread cannot be pinned to its CPU.
pub fn cache_line_round_trips(here: usize, there: usize, count: usize) -> io::Result<Vec<u64>> {
    let turns = u32::try_from(count).map_err(|_| io::ErrorKind::InvalidInput)?;
    let line = Arc::new((Line::default(), Line::default()));
    let other = {
        let line = Arc::clone(&line);
        on_cpu(there, move || {
            for turn in 1..=turns + 1 {
                spin_until(&line.0, turn)?;
                line.1.0.store(turn, Ordering::Release);
            }
            Ok(())
        })
    };
    let samples = on_cpu(here, move || {
        let trip = |turn| {
            let start = now_ns();
            line.0.0.store(turn, Ordering::Release);
            spin_until(&line.1, turn)?;
            Ok(now_ns() - start)
        };
        trip(1)?;
        (2..=turns + 1).map(trip).collect()
    });
    both(samples, other)
}

/// A value with a cache line (and its neighbour, which is fetched with it) to itself.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU32);

fn spin_until(line: &Line, turn: u32) -> io::Result<()> {
    let end = now_ns() + STUCK.as_nanos() as u64;
    loop {
        // The clock costs more than a cache line's way, so it is read seldom.
        for _ in 0..10_000 {
            if line.0.load(Ordering::Acquire) == turn {
                return Ok(());
            }
            hint::spin_loop();
        }
        if now_ns() > end {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// How late a thread on `cpu` sees a deadline `ahead` away that it spins for.
///
/// # Errors
/// When the thread cannot be pinned.
pub fn spin_lateness(cpu: usize, ahead: Duration, count: usize) -> io::Result<Vec<u64>> {
    lateness(cpu, ahead, count, |deadline| {
        while now_ns() < deadline {
            hint::spin_loop();
        }
        Ok(())
    })
}

/// How late a thread on `cpu` wakes from an absolute `clock_nanosleep` on CLOCK_MONOTONIC, `ahead` away.
///
/// # Errors
/// When the thread cannot be pinned, or the system refuses to sleep.
pub fn sleep_lateness(cpu: usize, ahead: Duration, count: usize) -> io::Result<Vec<u64>> {
    lateness(cpu, ahead, count, |deadline| {
        let time = Timespec {
            tv_sec: (deadline / 1_000_000_000).cast_signed(),
            tv_nsec: (deadline % 1_000_000_000).cast_signed(),
        };
        while let Err(error) = clock_nanosleep_absolute(ClockId::Monotonic, &time) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        Ok(())
    })
}

fn lateness(
    cpu: usize,
    ahead: Duration,
    count: usize,
    wait: impl Fn(u64) -> io::Result<()> + Send + 'static,
) -> io::Result<Vec<u64>> {
    let ahead = ahead.as_nanos() as u64;
    let sample = move || {
        let deadline = now_ns() + ahead;
        wait(deadline)?;
        Ok(now_ns().saturating_sub(deadline))
    };
    join(on_cpu(cpu, move || (0..count).map(|_| sample()).collect()))
}

/// Runs `work` in a thread of the caller's policy and priority on `cpu`.
fn on_cpu<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> JoinHandle<io::Result<T>> {
    thread::spawn(move || {
        let mut set = CpuSet::new();
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
        sched_setaffinity(None, &set)?;
        work()
    })
}

fn join<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a measuring thread panicked")))
}

fn both(
    samples: JoinHandle<io::Result<Vec<u64>>>,
    other: JoinHandle<io::Result<()>>,
) -> io::Result<Vec<u64>> {
    let (samples, other) = (join(samples), join(other));
    other.and(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_floor_gives_as_many_samples_as_asked_for() {
        let cpu = rustix::thread::sched_getcpu();
        assert_eq!(eventfd_round_trips(cpu, cpu, 5).unwrap().len(), 5);
        assert_eq!(spin_lateness(cpu, Duration::from_micros(20), 5).unwrap().len(), 5);
        assert_eq!(sleep_lateness(cpu, Duration::from_micros(20), 5).unwrap().len(), 5);
        assert_eq!(cache_line_round_trips(cpu, cpu, 2).unwrap().len(), 2);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(spin_lateness(CpuSet::MAX_CPU, Duration::ZERO, 1).is_err());
    }
}
