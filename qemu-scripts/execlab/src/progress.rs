//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere (CI logs).

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Progress over a known number of steps.
pub struct Progress {
    bar: Option<ProgressBar>,
    label: String,
    total: u64,
    last_line: Instant,
}

impl Progress {
    /// Starts at 0 of `total`.
    pub fn new(label: &str, total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(
                "{prefix} [{bar:30}] {pos}/{len} {msg} ({elapsed}, about {eta} left)",
            );
            let bar = ProgressBar::new(total);
            // A template that does not parse leaves the default style: still a bar.
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(label.to_owned());
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self { bar, label: label.to_owned(), total, last_line: Instant::now() }
    }

    /// Corrects the number of steps, which may become known late.
    pub fn set_total(&mut self, total: u64) {
        self.total = total;
        if let Some(bar) = &self.bar {
            bar.set_length(total);
        }
    }

    /// Says how far it is and what is going on.
    pub fn set(&mut self, done: u64, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(what.to_owned());
            }
            None if self.last_line.elapsed() >= LINE_INTERVAL || done == self.total => {
                eprintln!("{}: {done}/{} {what}", self.label, self.total);
                self.last_line = Instant::now();
            }
            None => {}
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
