//! What a test binary sent, checked for its order: Hello, Environment, blocks, Done.

use anyhow::{Result, bail};
use execlab_report::{Block, Environment, Hello, Line, PROTOCOL};

/// A stream of result lines, as far as it has come.
#[derive(Debug, Default)]
pub struct Collected {
    hello: Option<Hello>,
    environment: Option<Environment>,
    blocks: Vec<Block>,
    failure: Option<String>,
    done: bool,
}

/// A complete stream.
#[derive(Debug)]
pub struct Complete {
    /// Who spoke, and the plan as it understood it.
    pub hello: Hello,
    /// Where it ran.
    pub environment: Environment,
    /// Every block, in the order in which they were taken.
    pub blocks: Vec<Block>,
}

impl Collected {
    /// Takes one line.
    ///
    /// # Errors
    /// When the line cannot stand where it stands; the message says why.
    pub fn take(&mut self, line: Line) -> Result<()> {
        if self.done {
            bail!("a line came after the last one");
        }
        match line {
            Line::Hello(hello) => {
                if self.hello.is_some() {
                    bail!("the test binary greeted twice: it seems to have restarted");
                }
                if hello.protocol != PROTOCOL {
                    bail!(
                        "the test binary speaks version {} of the result lines, this command version {PROTOCOL}: rebuild both",
                        hello.protocol
                    );
                }
                self.hello = Some(hello);
            }
            // What stops it before the greeting (a plan it refuses) is the only thing worth saying.
            Line::Failure(failure) => self.failure = Some(failure.message),
            _ if self.hello.is_none() => bail!("a result came before the greeting"),
            Line::Environment(environment) => self.environment = Some(environment),
            Line::Block(block) => self.blocks.push(block),
            Line::Done => self.done = true,
            Line::Progress(_) => {}
        }
        Ok(())
    }

    /// The failure that the test binary reported, if any.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The whole stream.
    ///
    /// # Errors
    /// When the test binary reported a failure, or its last line is missing.
    pub fn complete(self) -> Result<Complete> {
        if let Some(message) = self.failure {
            bail!("the test binary gave up: {message}");
        }
        let blocks = self.blocks;
        let (Some(hello), Some(environment), true) = (self.hello, self.environment, self.done) else {
            bail!(
                "the results end after {} blocks, without a last line: the test binary did not finish",
                blocks.len()
            );
        };
        Ok(Complete { hello, environment, blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use execlab_report::{Access, Failure, Plan};

    fn hello(protocol: u32) -> Line {
        let plan = Plan {
            experiment: "submit-latency".into(),
            variants: vec!["tasklet".into()],
            blocks: 1,
            block_seconds: 0.1,
            dilation: 1.0,
            seed: 1,
            access: Access::Pci { driver: None },
            probe: Default::default(),
            load: Default::default(),
        };
        Line::Hello(Hello { protocol, experiment: "submit-latency".into(), version: "0".into(), plan })
    }

    #[test]
    fn a_stream_with_all_its_lines_is_complete() {
        let mut collected = Collected::default();
        for line in [hello(PROTOCOL), Line::Environment(Environment::default()), Line::Done] {
            collected.take(line).unwrap();
        }
        assert!(collected.complete().unwrap().blocks.is_empty());
    }

    #[test]
    fn a_stream_without_its_last_line_is_an_error() {
        let mut collected = Collected::default();
        collected.take(hello(PROTOCOL)).unwrap();
        assert!(collected.complete().unwrap_err().to_string().contains("did not finish"));
    }

    #[test]
    fn a_failure_before_the_greeting_is_shown_in_its_own_words() {
        let mut collected = Collected::default();
        collected.take(Line::Failure(Failure { message: "variants: \"x\" is none".into() })).unwrap();
        assert!(collected.complete().unwrap_err().to_string().contains("\"x\" is none"));
    }

    #[test]
    fn another_protocol_a_second_greeting_and_a_result_before_the_greeting_are_refused() {
        let mut collected = Collected::default();
        assert!(collected.take(Line::Done).is_err());
        assert!(collected.take(hello(PROTOCOL + 1)).is_err());
        collected.take(hello(PROTOCOL)).unwrap();
        assert!(collected.take(hello(PROTOCOL)).is_err());
    }
}
