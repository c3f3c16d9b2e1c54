//! An error in words for a person.

/// An error with its causes in one line. Some errors say their cause themselves; it is not said twice.
pub fn words(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut said, cause| {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&cause);
        }
        said
    })
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_cause_that_the_error_says_itself_is_said_once() {
        let full = || std::io::Error::other("No space left");
        let own = anyhow::Error::new(full()).context("writing x: No space left");
        assert_eq!(words(&own), "writing x: No space left");
        assert_eq!(words(&anyhow::Error::new(full()).context("writing x")), "writing x: No space left");
    }
}
