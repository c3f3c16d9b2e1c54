//! How late this machine's timers are.

use std::io;
use std::time::{Duration, Instant};

use vmm_sys_util::timerfd::TimerFd;

/// Waits measured.
const ROUNDS: usize = 32;
/// Length of each.
const WAIT: Duration = Duration::from_micros(200);
/// Least and most that is spun for one deadline, in nanoseconds: below, a single slow wake-up is late; above, a
/// deadline every millisecond would spin all the time.
const BOUNDS: std::ops::RangeInclusive<u64> = 50_000..=1_000_000;

/// How long before a deadline a sleeping thread should be called, in nanoseconds: one and a half times what all but
/// the worst tenth of timer waits were late, measured now. Takes about 10 ms.
///
/// # Errors
/// The kernel has no timer for us.
pub fn spin_ns() -> io::Result<u64> {
    let mut timer = TimerFd::new().map_err(io::Error::from)?;
    let mut late = [0; ROUNDS];
    for slot in &mut late {
        let begin = Instant::now();
        timer.reset(WAIT, None).map_err(io::Error::from)?;
        timer.wait().map_err(io::Error::from)?;
        *slot = u64::try_from(begin.elapsed().saturating_sub(WAIT).as_nanos()).unwrap_or(u64::MAX);
    }
    Ok(margin(&mut late))
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
        assert!(BOUNDS.contains(&spin_ns().unwrap()));
    }
}
