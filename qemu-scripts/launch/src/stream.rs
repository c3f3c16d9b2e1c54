//! The two byte streams that leave a guest, each read by a thread of its own.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use execlab_init::END_OF_RESULTS;

use crate::Error;

/// Longest line that is taken for one; what is longer comes in pieces. A block of a few seconds is some 100 kB.
const LONGEST_LINE: usize = 64 << 20;

/// What the reading threads tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Bytes came, though perhaps not a whole line.
    Alive,
    /// A line of the console.
    Console(String),
    /// A line of the results channel.
    Results(String),
}

/// A socket on which QEMU connects one stream, and the thread that reads it. Dropping it ends both.
#[derive(Debug)]
pub(crate) struct Stream {
    path: PathBuf,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    /// Reads the console; a copy goes to `log`.
    pub(crate) fn console(path: &Path, log: Option<File>, messages: Sender<Message>) -> Result<Self, Error> {
        Self::open(path, move |stream| read_console(stream, log, &messages))
    }

    /// Reads the results channel, and answers the mark at its end.
    pub(crate) fn results(path: &Path, messages: Sender<Message>) -> Result<Self, Error> {
        Self::open(path, move |stream| read_results(stream, &messages))
    }

    fn open(path: &Path, read: impl FnOnce(UnixStream) + Send + 'static) -> Result<Self, Error> {
        let listener = UnixListener::bind(path).map_err(Error::file("listening on", path))?;
        let reader = thread::spawn(move || {
            if let Ok((stream, _)) = listener.accept() {
                read(stream);
            }
        });
        Ok(Self { path: path.to_owned(), reader: Some(reader) })
    }

    /// Reads what is left. QEMU must have ended.
    pub(crate) fn finish(&mut self) {
        // If QEMU never connected, the thread still waits for somebody who does.
        let _ = UnixStream::connect(&self.path);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.finish();
    }
}

fn read_console(mut stream: UnixStream, mut log: Option<File>, messages: &Sender<Message>) {
    let mut lines = Lines::default();
    each_chunk(&mut stream, messages, |_, chunk| {
        // A full disk must not end the run.
        log = log.take().filter(|mut log| log.write_all(chunk).is_ok());
        lines.feed(chunk, |line| messages.send(Message::Console(line)));
    });
    lines.end(|line| messages.send(Message::Console(line)));
}

fn read_results(mut stream: UnixStream, messages: &Sender<Message>) {
    let mut lines = Lines::default();
    each_chunk(&mut stream, messages, |stream, chunk| {
        let end = chunk.iter().position(|byte| *byte == END_OF_RESULTS);
        lines.feed(&chunk[..end.unwrap_or(chunk.len())], |line| messages.send(Message::Results(line)));
        if end.is_some() {
            // PID 1 waits for this before it powers off; if it is gone, nothing waits.
            let _ = stream.write_all(&[END_OF_RESULTS]);
        }
    });
    lines.end(|line| messages.send(Message::Results(line)));
}

fn each_chunk(
    stream: &mut UnixStream,
    messages: &Sender<Message>,
    mut handle: impl FnMut(&mut UnixStream, &[u8]),
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let _ = messages.send(Message::Alive);
                handle(stream, &buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Cuts bytes into lines.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn feed<E>(&mut self, bytes: &[u8], mut emit: impl FnMut(String) -> Result<(), E>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.0.len() >= LONGEST_LINE {
                self.end(&mut emit);
            }
        }
    }

    /// Emits what has no newline yet. Nobody listening any more is no error of ours.
    fn end<E>(&mut self, mut emit: impl FnMut(String) -> Result<(), E>) {
        let text = String::from_utf8_lossy(&self.0);
        let text = text.trim_end();
        if !text.is_empty() {
            let _ = emit(text.to_owned());
        }
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn received(write: impl FnOnce(&mut UnixStream)) -> Vec<Message> {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("s");
        let (sender, receiver) = channel();
        let mut stream = Stream::results(&path, sender).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        write(&mut client);
        drop(client);
        stream.finish();
        receiver.iter().filter(|message| *message != Message::Alive).collect()
    }

    #[test]
    fn lines_arrive_whole_however_they_were_cut() {
        let messages = received(|client| {
            client.write_all(b"{\"a\"").unwrap();
            client.write_all(b":1}\r\n\n{}").unwrap();
        });
        assert_eq!(messages, [Message::Results("{\"a\":1}".into()), Message::Results("{}".into())]);
    }

    #[test]
    fn the_end_mark_is_answered_and_is_no_line() {
        let messages = received(|client| {
            client.write_all(b"x\n\x04").unwrap();
            let mut answer = [0];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [END_OF_RESULTS]);
        });
        assert_eq!(messages, [Message::Results("x".into())]);
    }

    #[test]
    fn a_stream_that_nobody_connects_ends_when_dropped() {
        let work = tempfile::tempdir().unwrap();
        drop(Stream::results(&work.path().join("s"), channel().0).unwrap());
    }
}
