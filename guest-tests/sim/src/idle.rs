//! A CPU with nothing to do: which idle state it takes, and what it costs to leave it.

use crate::core::Core;
use crate::events::Source;
use crate::switch::Leave;
use crate::trace::What;

/// Weight of the past in the mean of idle times: three quarters.
const MEMORY: u64 = 4;

impl Core {
    /// The body of the idle thread.
    pub fn idle(&self) {
        let cpu = self.me();
        let this = &self.cpus[cpu];
        loop {
            self.take_interrupts(cpu);
            if this.need_resched.is_set() {
                self.schedule(Leave::Preempted);
                continue;
            }
            let (state, exit) = self.choose_state(cpu);
            this.exit_latency.set(exit);
            self.note(What::Idle { state });
            if self.machine.nohz {
                self.disarm(Source::Tick(cpu));
            }
            let since = self.now();
            self.park(cpu, None);
            this.exit_latency.set(0);
            let mean = match this.idle_mean.get() {
                0 => self.now() - since,
                mean => (mean * (MEMORY - 1) + (self.now() - since)) / MEMORY,
            };
            this.idle_mean.set(mean.max(1));
            if self.machine.nohz {
                self.arm(Source::Tick(cpu), self.next_tick(cpu));
            }
        }
    }

    /// What the menu governor comes to, in short: the deepest state that pays for the shorter of the time to the next
    /// timer and the usual idle time. (The real one corrects the timer by a learned factor, and looks for a repeating
    /// interval in the last eight.)
    fn choose_state(&self, cpu: usize) -> (usize, u64) {
        let timer = {
            let sched = self.sched.borrow();
            let here = sched.threads.iter().filter(|thread| thread.cpu == cpu);
            here.filter_map(|thread| thread.soft_expiry).min()
        };
        let until_timer = timer.map_or(u64::MAX, |timer| timer.saturating_sub(self.now()));
        let usual = Some(self.cpus[cpu].idle_mean.get()).filter(|mean| *mean > 0).unwrap_or(u64::MAX);
        let predicted = until_timer.min(usual);
        let states = self.machine.idle.iter().enumerate();
        let mut pays = states.filter(|(_, state)| state.residency.0 <= predicted);
        pays.next_back().map_or((0, 0), |(index, state)| (index + 1, state.exit.0))
    }

    /// The next point of the CPU's grid of ticks.
    pub fn next_tick(&self, cpu: usize) -> u64 {
        let period = self.machine.tick_ns();
        let phase = self.cpus[cpu].tick_phase.get();
        let periods = (self.now() + period - phase) / period;
        phase + periods * period
    }
}
