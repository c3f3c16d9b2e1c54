//! The host's end of the results channel.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use execlab_init::END_OF_RESULTS;
use execlab_report::{Line, read_line};

use crate::Error;

/// What came.
#[derive(Debug)]
pub(crate) enum Received {
    /// A result.
    Line(Box<Line>),
    /// Something that is no result, with a description of it.
    Rubbish(String),
    /// The guest says that nothing follows.
    End,
}

/// A socket on which QEMU delivers what the guest writes.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) path: PathBuf,
    pub(crate) received: Receiver<Received>,
}

impl Channel {
    /// Listens in `folder`. The reader ends with the connection.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("results.sock");
        let listener = UnixListener::bind(&path).map_err(Error::file("cannot listen on", &path))?;
        let (sender, received) = channel();
        thread::spawn(move || {
            let Ok((stream, _)) = listener.accept() else { return };
            // A receiver that went away has what it wanted.
            read(stream, &mut |item| sender.send(item).is_ok());
        });
        Ok(Self { path, received })
    }
}

fn read(stream: UnixStream, deliver: &mut dyn FnMut(Received) -> bool) {
    let mut answer = stream.try_clone().ok();
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match reader.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // The end mark may follow the last newline without one of its own; a text that is cut there waits for more.
        let end = bytes.contains(&END_OF_RESULTS);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == char::from(END_OF_RESULTS));
        let item = match read_line(text) {
            _ if text.is_empty() => None,
            Ok(line) => Some(Received::Line(Box::new(line))),
            Err(error) => Some(Received::Rubbish(error.to_string())),
        };
        if item.is_some_and(|item| !deliver(item)) {
            return;
        }
        if end {
            if let Some(answer) = &mut answer {
                // The guest waits two seconds at most for this.
                let _ = answer.write_all(b"\n");
            }
            deliver(Received::End);
            return;
        }
    }
}
