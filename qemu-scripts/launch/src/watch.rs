//! What the guest has said so far, and what follows from it.

use std::time::{Duration, Instant};

use execlab_init::{GuestExit, STARTED_PREFIX};
use execlab_report::read_line;

use crate::outcome::Outcome;
use crate::stream::Message;
use crate::tail::Tail;
use crate::vm::{Event, Limits};

/// Time for QEMU to end by itself after the guest's last words.
const END_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Watch {
    limits: Limits,
    started: Instant,
    last_life: Instant,
    last_words: Option<Instant>,
    console: Tail,
    exit: Option<GuestExit>,
    panic: Option<String>,
    rubbish: Option<String>,
    boot: Option<Duration>,
}

impl Watch {
    pub(crate) fn new(limits: Limits, started: Instant) -> Self {
        Self {
            limits,
            started,
            last_life: started,
            last_words: None,
            console: Tail::default(),
            exit: None,
            panic: None,
            rubbish: None,
            boot: None,
        }
    }

    pub(crate) fn handle(&mut self, message: Message, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        self.last_life = now;
        match message {
            Message::Alive => {}
            Message::Console(line) => {
                self.console(&line, now);
                on_event(Event::Console(&line));
            }
            // After rubbish nothing can be trusted.
            Message::Results(_) if self.rubbish.is_some() => {}
            Message::Results(text) => match read_line(&text) {
                Ok(line) => on_event(Event::Line(line)),
                Err(error) => self.rubbish = Some(error.to_string()),
            },
        }
    }

    fn console(&mut self, line: &str, now: Instant) {
        self.console.push(line);
        if line.contains(STARTED_PREFIX) {
            self.boot.get_or_insert(now - self.started);
        }
        if let Some(exit) = GuestExit::parse_console_line(line) {
            self.exit = Some(exit);
            self.last_words = Some(now);
        } else if line.contains("Kernel panic - not syncing") && self.panic.is_none() {
            self.panic = Some(line.to_owned());
            self.last_words = Some(now);
        }
    }

    /// An outcome that ends the run before QEMU does.
    pub(crate) fn exceeded(&self, now: Instant) -> Option<Outcome> {
        if let Some(problem) = &self.rubbish {
            return Some(Outcome::Rubbish { problem: problem.clone() });
        }
        let hang = |limit, silent| Some(Outcome::Hang { limit, silent });
        if self.last_words.is_some_and(|then| now - then > END_PATIENCE) {
            return hang(END_PATIENCE, true);
        }
        if now.saturating_duration_since(self.last_life) > self.limits.silence {
            return hang(self.limits.silence, true);
        }
        if now - self.started > self.limits.overall {
            return hang(self.limits.overall, false);
        }
        None
    }

    /// What it all comes to, given what the loop saw last. The guest's own words say more than how the machine
    /// went down.
    pub(crate) fn outcome(&self, last: Outcome) -> Outcome {
        if matches!(last, Outcome::Interrupted) {
            return last;
        }
        if let Some(problem) = &self.rubbish {
            return Outcome::Rubbish { problem: problem.clone() };
        }
        if let Some(reason) = &self.panic {
            return Outcome::Panic { reason: Some(reason.clone()) };
        }
        self.exit.clone().map_or(last, Outcome::Finished)
    }

    pub(crate) fn console_tail(&self) -> Vec<String> {
        self.console.lines()
    }

    pub(crate) fn boot(&self) -> Option<Duration> {
        self.boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { overall: Duration::from_secs(100), silence: Duration::from_secs(10) };

    fn watch(messages: &[Message]) -> (Watch, Instant) {
        let start = Instant::now();
        let mut watch = Watch::new(LIMITS, start);
        for message in messages {
            let message = match message {
                Message::Console(line) => Message::Console(line.clone()),
                Message::Results(line) => Message::Results(line.clone()),
                Message::Alive => Message::Alive,
            };
            watch.handle(message, start, &mut |_| {});
        }
        (watch, start)
    }

    #[test]
    fn silence_and_length_are_hangs_and_life_postpones_the_first() {
        let (mut watch, start) = watch(&[]);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watch.exceeded(after(9)), None);
        assert!(matches!(watch.exceeded(after(11)), Some(Outcome::Hang { silent: true, .. })));
        watch.handle(Message::Alive, after(9), &mut |_| {});
        assert_eq!(watch.exceeded(after(18)), None);
        watch.handle(Message::Alive, after(101), &mut |_| {});
        assert!(matches!(watch.exceeded(after(102)), Some(Outcome::Hang { silent: false, .. })));
    }

    #[test]
    fn a_panic_counts_more_than_the_quiet_end_of_qemu() {
        let (watch, _) = watch(&[Message::Console("[1] Kernel panic - not syncing: sysrq".into())]);
        let outcome = watch.outcome(Outcome::Panic { reason: None });
        assert!(matches!(outcome, Outcome::Panic { reason: Some(text) } if text.contains("sysrq")));
    }

    #[test]
    fn rubbish_is_reported_with_its_beginning() {
        let (watch, start) = watch(&[Message::Results("\u{7f}ELF rubbish".into())]);
        let outcome = watch.exceeded(start).unwrap();
        assert!(matches!(outcome, Outcome::Rubbish { problem } if problem.contains("ELF rubbish")));
    }

    #[test]
    fn the_stated_exit_counts_even_if_qemu_does_not_end() {
        let (watch, start) = watch(&[Message::Console("execlab-init: exit status 7".into())]);
        let hang = watch.exceeded(start + Duration::from_secs(11)).unwrap();
        assert_eq!(watch.outcome(hang), Outcome::Finished(GuestExit::Code(7)));
    }

    #[test]
    fn the_boot_time_is_the_wall_time_to_pid_1_s_first_words() {
        let (mut watch, start) = watch(&[]);
        let line = Message::Console("execlab-init: started after 1.812 s".into());
        watch.handle(line, start + Duration::from_secs(5), &mut |_| {});
        assert_eq!(watch.boot(), Some(Duration::from_secs(5)));
    }
}
