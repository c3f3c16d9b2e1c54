//! The last lines of a text that keeps coming.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Lines kept for messages.
const KEPT: usize = 40;

/// The last lines that came from somewhere. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(crate) fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// Follows `source` to its end in a thread.
    pub(crate) fn follow(&self, source: impl Read + Send + 'static) -> thread::JoinHandle<()> {
        let tail = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
                tail.push(String::from_utf8_lossy(&line).trim_end());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        let tail = Tail::default();
        (0..100).for_each(|n| tail.push(&n.to_string()));
        assert_eq!(tail.lines().len(), KEPT);
        assert_eq!(tail.lines().last().unwrap(), "99");
    }

    #[test]
    fn a_followed_source_is_read_to_its_end_even_without_a_last_newline() {
        let tail = Tail::default();
        tail.follow(&b"a\nb"[..]).join().unwrap();
        assert_eq!(tail.text(), "a\nb");
    }
}
