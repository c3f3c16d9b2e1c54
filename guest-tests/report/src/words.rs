//! Errors for a person.

use std::error::Error;

/// An error with its causes in one line. Some errors say their cause themselves; it is not said twice.
#[must_use]
pub fn words(error: &(dyn Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !said.contains(&words) {
            said.push_str(": ");
            said.push_str(&words);
        }
        next = cause.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn a_cause_that_was_said_already_is_not_repeated() {
        let broken = || io::Error::other("broken");
        assert_eq!(words(&Outer("cannot open: broken; do this", broken())), "cannot open: broken; do this");
        assert_eq!(words(&Outer("block 3", broken())), "block 3: broken");
    }
}
