//! A plugged-in system's way to the model: the gateway, whose counts are the system's costs.

use std::path::{Path, PathBuf};

use crate::llm::Cost;
use crate::llm::gateway::{Admission, Caller, Caps, Gateway, Listening};
use crate::memory::Scope;
use crate::sandbox::GATEWAY_PORT;

/// The gateway that plugged-in systems ask, and where their calls are written down.
#[derive(Debug, Clone)]
pub struct Calls {
    /// The gateway.
    pub gateway: Gateway,
    /// The folder for journals: a journal for each condition and target. What an earlier, killed build asked is answered
    /// from it. `None`: journals go with the state.
    pub journals: Option<PathBuf>,
    /// What one build with its retrievals may spend.
    pub caps: Caps,
}

/// An open door, for one system.
#[derive(Debug)]
pub(super) struct Door {
    admission: Admission,
    listening: Listening,
    _folder: tempfile::TempDir,
    charged: Cost,
}

impl Door {
    /// Opens it: on a socket that a sandbox is shown, or on this machine's loopback where there is no sandbox.
    pub async fn open(calls: &Calls, scope: &Scope, sandboxed: bool, beside: &Path) -> Result<Self, String> {
        let caller = Caller {
            condition: scope.condition.clone(),
            target: scope.target.to_string(),
            solver: "memory".into(),
            replicate: 1,
            attempt: 1,
        };
        let journal = match &calls.journals {
            Some(folder) => folder.join(&scope.condition).join(scope.target.as_str()),
            None => beside.to_owned(),
        };
        fs_err::create_dir_all(&journal).map_err(|error| error.to_string())?;
        let admission = calls.gateway.admit(caller, calls.caps, &journal.join("calls.jsonl"));
        let admission = admission.map_err(|error| error.to_string())?;
        // A short path: a socket's has room for a hundred bytes.
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let listening = if sandboxed {
            calls.gateway.listen_unix(&folder.path().join("gateway")).await
        } else {
            calls.gateway.listen_tcp(([127, 0, 0, 1], 0).into()).await
        };
        let listening = listening.map_err(|error| error.to_string())?;
        Ok(Self { admission, listening, _folder: folder, charged: Cost::ZERO })
    }

    /// The socket that the sandbox is shown.
    pub fn socket(&self) -> Option<PathBuf> {
        self.listening.path().map(Path::to_owned)
    }

    /// The variables by which SDKs find it.
    pub fn env(&self) -> [(String, String); 5] {
        let port = self.listening.address().map_or(GATEWAY_PORT, |address| address.port());
        let (base, token) = (format!("http://127.0.0.1:{port}"), self.admission.token());
        [
            ("OPENAI_BASE_URL", format!("{base}/v1")),
            ("OPENAI_API_BASE", format!("{base}/v1")),
            ("OPENAI_API_KEY", token.to_owned()),
            ("ANTHROPIC_BASE_URL", base),
            ("ANTHROPIC_API_KEY", token.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }

    /// What was spent since this was last asked.
    pub fn charge(&mut self) -> Cost {
        let spent = self.admission.spent();
        let new = spent.minus(self.charged);
        self.charged = spent;
        new
    }

    /// The first call that a cap forbade, or the last that failed: a program may have swallowed either.
    pub fn trouble(&self) -> Option<String> {
        let standing = self.admission.standing();
        standing.capped.or(standing.failed).map(|error| error.to_string())
    }

    /// Ends the right to call, and waits for the calls under way.
    pub async fn shut(mut self) -> Cost {
        let charged = self.charged;
        self.listening.drain().await;
        self.charged = self.admission.finish().await;
        self.charged.minus(charged)
    }
}
