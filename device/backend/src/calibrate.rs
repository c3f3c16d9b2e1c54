//! How late this machine's timers are.

use std::time::{Duration, Instant};
use std::{io, thread};

use vmm_sys_util::timerfd::TimerFd;

use crate::error::DeviceError;
use crate::thread_place::place;

/// Waits measured: short ones, and as long ones as let a CPU fall asleep deeply and its caches be used by others,
/// which make it wake later. A tenth of all is left out as the worst, so there are more long ones than that.
const WAITS: [(usize, Duration); 2] = [(16, Duration::from_micros(200)), (16, Duration::from_millis(5))];
/// Least and most that is spun for one deadline, in nanoseconds: below, a single slow wake-up is late; above, a
/// deadline every millisecond would spin all the time.
const BOUNDS: std::ops::RangeInclusive<u64> = 50_000..=1_000_000;

/// How long before a deadline a sleeping thread should be called, in nanoseconds: one and a half times what all but
/// the worst tenth of timer waits were late, measured now, where the thread that meets deadlines will run. Takes
/// about 90 ms.
///
/// # Errors
/// What [`place`] says, or the kernel has no timer for us.
pub fn spin_ns(cpu: Option<usize>, realtime: Option<u8>) -> Result<u64, DeviceError> {
    let measured = thread::scope(|scope| {
        let measure = || {
            place(cpu, realtime)?;
            lateness().map_err(DeviceError::system("measure the timers"))
        };
        scope.spawn(measure).join()
    });
    let mut late = measured.map_err(|_| DeviceError::Daemon("measuring the timers panicked".into()))??;
    Ok(margin(&mut late))
}

/// How late each of [`WAITS`] ended, in nanoseconds.
fn lateness() -> io::Result<Vec<u64>> {
    let mut timer = TimerFd::new().map_err(io::Error::from)?;
    let mut late = Vec::new();
    for (rounds, wait) in WAITS {
        for _ in 0..rounds {
            let begin = Instant::now();
            timer.reset(wait, None).map_err(io::Error::from)?;
            timer.wait().map_err(io::Error::from)?;
            late.push(u64::try_from(begin.elapsed().saturating_sub(wait).as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Ok(late)
}

fn margin(late: &mut [u64]) -> u64 {
    late.sort_unstable();
    let most = late.get(late.len() * 9 / 10).copied().unwrap_or(0);
    most.saturating_add(most / 2).clamp(*BOUNDS.start(), *BOUNDS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_leaves_out_the_worst_and_stays_in_bounds() {
        let mut late: Vec<u64> = (1..=32).map(|n| n * 10_000).collect();
        late[31] = 50_000_000;
        assert_eq!(margin(&mut late), 435_000);
        assert_eq!(margin(&mut [0; 32]), 50_000);
        assert_eq!(margin(&mut [u64::MAX; 32]), 1_000_000);
        assert_eq!(margin(&mut []), 50_000);
    }

    #[test]
    fn this_machine_has_a_timer() {
        assert!(BOUNDS.contains(&spin_ns(Some(0), None).unwrap()));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        assert!(matches!(spin_ns(Some(usize::MAX), None), Err(DeviceError::Cpu { .. })));
    }
}
