//! The loop inside a sandbox: one request, one answer, until the host closes its end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memtrial_runner::gateway;
use memtrial_runner::wire::{self, Answer, Call, Reply, Request};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{DumpableBehavior, Pid, getpid, set_child_subreaper, set_dumpable_behavior};

use crate::exec::{self, HostGone};
use crate::fault::Fault;
use crate::files::Root;
use crate::hand;
use crate::oom::OomCounter;
use crate::relay::Relay;
use crate::tree;

/// What a sandbox is served with.
pub struct Serve {
    /// Where absolute paths start.
    pub root: PathBuf,
    /// What holds the limits, where the runner set them.
    pub limits: Option<String>,
    /// Open events of the memory control group.
    pub oom: Option<File>,
    /// Whether there is a way out.
    pub gateway: bool,
}

/// Answers requests until the end of standard input, then ends everything below this process.
pub fn serve(serve: Serve) -> Result<(), Fault> {
    if getpid() == Pid::INIT {
        // Without this a process of the sandbox could write answers of its own into this one's standard output.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    } else {
        let _ = set_child_subreaper(Some(getpid()));
    }
    let root = Root::new(serve.root);
    let oom = OomCounter::new(serve.oom);
    let relay = serve.gateway.then(|| Relay::open(gateway::PORT, Path::new(gateway::SOCKET)));
    let mut relay = relay.transpose()?;
    // Unbuffered: the end of the pipe must be seen by `poll` while a command runs.
    let mut input = File::from(fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(gone)?);
    let mut output = File::from(fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(gone)?);
    while let Some((request, length)) = wire::read_header::<Request>(&mut input).map_err(gone)? {
        if let Call::Hand(program) = &request.call {
            // Answered first: from here on the output is the program's.
            wire::write(&mut output, &Reply { id: request.id, answer: Answer::Handed }, &[]).map_err(gone)?;
            return hand::run(program, &root.locate(&program.cwd), relay.as_mut());
        }
        let mut body = (&mut input).take(length as u64);
        let answered = answer(&request.call, &mut body, &root, &oom, relay.as_mut(), serve.limits.as_ref());
        io::copy(&mut body, &mut io::sink()).map_err(gone)?;
        let Ok((answer, bytes)) = answered else { break };
        wire::write(&mut output, &Reply { id: request.id, answer }, &bytes).map_err(gone)?;
    }
    tree::end(None);
    Ok(())
}

fn gone(error: impl Into<io::Error>) -> Fault {
    Fault(format!("the host: {}", error.into()))
}

fn answer(
    call: &Call,
    body: &mut io::Take<&mut File>,
    root: &Root,
    oom: &OomCounter,
    relay: Option<&mut Relay>,
    limits: Option<&String>,
) -> Result<(Answer, Vec<u8>), HostGone> {
    let failed = |fault: Fault| (Answer::Failed { reason: fault.0 }, Vec::new());
    Ok(match call {
        Call::Ping => (Answer::Pong { limits: limits.cloned() }, Vec::new()),
        Call::Exec(command) => {
            let mut stdin = Vec::new();
            body.read_to_end(&mut stdin).map_err(|_| HostGone)?;
            let (finished, bytes) = exec::run(command, &root.locate(&command.cwd), stdin, oom, relay)?;
            (Answer::Ended(finished), bytes)
        }
        Call::Put { path, mode } => {
            let length = body.limit();
            root.put(path, *mode, body, length).map_or_else(failed, |()| (Answer::Written, Vec::new()))
        }
        Call::Get { path, limit } => match root.get(path, *limit) {
            Ok(Some(bytes)) => (Answer::File, bytes),
            Ok(None) => (Answer::Absent, Vec::new()),
            Err(fault) => failed(fault),
        },
        Call::Hand(_) => failed(Fault("the connection can be handed over as a whole alone".into())),
    })
}
