//! The one way out of a sandbox without network: a port of its own loopback whose connections are passed on to a
//! socket of the host.
//!
//! It is turned by the loop that watches a command: nothing in a sandbox lives while no command runs. So it needs
//! neither a thread nor a process, a command cannot end it, and it ends with the sandbox.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

use crate::fault::{During, Result};

/// Connections at once; more wait to be accepted.
const MOST: usize = 64;
/// Bytes on their way in one direction of a connection.
const CHUNK: usize = 64 << 10;
/// Reads and writes of one direction in one turn, so that none holds up the others.
const ROUNDS: usize = 8;

/// A listening port and its connections.
pub struct Relay {
    listener: TcpListener,
    socket: PathBuf,
    links: Vec<Link>,
}

impl Relay {
    /// Listens on this port of the loopback interface, for connections to this socket.
    pub fn open(port: u16, socket: &Path) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .during(format_args!("listen on port {port} of the sandbox"))?;
        listener.set_nonblocking(true).during("listen")?;
        Ok(Self { listener, socket: socket.to_owned(), links: Vec::new() })
    }

    /// What to wait for before the next turn.
    pub fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if self.links.len() < MOST {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        for link in &self.links {
            let flags = |reads: &Flow, writes: &Flow| reads.reading() | writes.writing();
            // Without a wish the kernel would still report the end of a side, again and again.
            let mut wish = |fd: &'a dyn AsFd, flags: PollFlags| {
                if !flags.is_empty() {
                    fds.push(PollFd::from_borrowed_fd(fd.as_fd(), flags));
                }
            };
            wish(&link.inside, flags(&link.out, &link.back));
            wish(&link.outside, flags(&link.back, &link.out));
        }
    }

    /// Takes new connections and passes on what is there.
    pub fn turn(&mut self) {
        while self.links.len() < MOST {
            let Ok((inside, _)) = self.listener.accept() else { break };
            // One that cannot be passed on is closed, as by a host that does not listen.
            self.links.extend(Link::open(inside, &self.socket).ok());
        }
        self.links.retain_mut(|link| link.turn().unwrap_or(false));
    }

    /// Drops every connection, those not yet accepted as well: whoever made them is dead.
    pub fn clear(&mut self) {
        self.links.clear();
        while self.listener.accept().is_ok() {}
    }
}

/// One connection: a side in the sandbox, a side on the host.
struct Link {
    inside: TcpStream,
    outside: UnixStream,
    out: Flow,
    back: Flow,
}

impl Link {
    fn open(inside: TcpStream, socket: &Path) -> io::Result<Self> {
        inside.set_nonblocking(true)?;
        let _ = inside.set_nodelay(true);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let outside = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Not blocking: where too many wait already, this one is turned away.
        rustix::net::connect(&outside, &SocketAddrUnix::new(socket)?)?;
        Ok(Self { inside, outside: outside.into(), out: Flow::default(), back: Flow::default() })
    }

    /// Moves what can be moved. Returns whether anything is left to do.
    fn turn(&mut self) -> io::Result<bool> {
        self.out.turn(&self.inside, &self.outside)?;
        self.back.turn(&self.outside, &self.inside)?;
        Ok(!(self.out.closed && self.back.closed))
    }
}

/// One direction of a connection.
#[derive(Default)]
struct Flow {
    pending: Vec<u8>,
    written: usize,
    /// The source has said its last.
    ended: bool,
    /// And the other side has been told.
    closed: bool,
}

impl Flow {
    fn reading(&self) -> PollFlags {
        if self.pending.is_empty() && !self.ended { PollFlags::IN } else { PollFlags::empty() }
    }

    fn writing(&self) -> PollFlags {
        if self.pending.is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    }

    fn turn<R, W>(&mut self, mut from: &R, mut to: &W) -> io::Result<()>
    where
        for<'a> &'a R: Read,
        W: AsFd,
        for<'a> &'a W: Write,
    {
        for _ in 0..ROUNDS {
            let moved = if !self.pending.is_empty() {
                to.write(&self.pending[self.written..]).map(|written| self.wrote(written))
            } else if !self.ended {
                self.pending.resize(CHUNK, 0);
                let read = from.read(&mut self.pending);
                self.pending.truncate(read.as_ref().copied().unwrap_or(0));
                read.map(|read| self.ended = read == 0)
            } else {
                if !self.closed {
                    self.closed = true;
                    // A side that is gone already needs no telling.
                    let _ = rustix::net::shutdown(to, Shutdown::Write);
                }
                return Ok(());
            };
            match moved {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn wrote(&mut self, written: usize) {
        self.written += written;
        if self.written == self.pending.len() {
            self.pending.clear();
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    use rustix::event::{Timespec, poll};

    use super::*;

    /// A host that reads each connection to its end and sends it back.
    fn echo(socket: &Path) {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(io::Result::ok) {
                std::thread::spawn(move || {
                    let mut all = Vec::new();
                    (&stream).read_to_end(&mut all).unwrap();
                    let _ = (&stream).write_all(&all);
                });
            }
        });
    }

    fn opened(folder: &Path) -> (Relay, u16) {
        let relay = Relay::open(0, &folder.join("s")).unwrap();
        let port = relay.listener.local_addr().unwrap().port();
        (relay, port)
    }

    fn turn_until(relay: &mut Relay, mut done: impl FnMut(&Relay) -> bool) {
        let began = Instant::now();
        while !done(relay) {
            assert!(began.elapsed() < Duration::from_secs(30), "the relay does not get on");
            let mut fds = Vec::new();
            relay.watch(&mut fds);
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).unwrap();
            drop(fds);
            relay.turn();
        }
    }

    #[test]
    fn many_large_talks_come_through_whole_in_both_directions() {
        let folder = tempfile::tempdir().unwrap();
        echo(&folder.path().join("s"));
        let (mut relay, port) = opened(folder.path());
        // More than are passed on at once.
        let talks: Vec<_> = (0..MOST + 9)
            .map(|n| {
                std::thread::spawn(move || {
                    let sent: Vec<u8> = (0..300_000 + n).map(|i| (i * 7 + n) as u8).collect();
                    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                    (&stream).write_all(&sent).unwrap();
                    stream.shutdown(std::net::Shutdown::Write).unwrap();
                    let mut back = Vec::new();
                    (&stream).read_to_end(&mut back).unwrap();
                    back == sent
                })
            })
            .collect();
        turn_until(&mut relay, |_| talks.iter().all(std::thread::JoinHandle::is_finished));
        assert!(talks.into_iter().all(|talk| talk.join().unwrap()));
        turn_until(&mut relay, |relay| relay.links.is_empty());
    }

    #[test]
    fn where_nobody_listens_the_connection_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut relay, port) = opened(folder.path());
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        relay.turn();
        assert!(relay.links.is_empty());
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }

    #[test]
    fn what_the_dead_have_sent_is_not_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        let host = UnixListener::bind(folder.path().join("s")).unwrap();
        host.set_nonblocking(true).unwrap();
        let (mut relay, port) = opened(folder.path());
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(b"POST /v1/chat/completions").unwrap();
        drop(stream);
        relay.clear();
        relay.turn();
        assert!(relay.links.is_empty());
        assert_eq!(host.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
