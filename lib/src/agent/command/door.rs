//! The gateway's door: a socket in a folder of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::llm::gateway::{Admission, Caller, Caps, Gateway, Listening, Settings};
use crate::llm::{Endpoint, Limiter, LlmError, OnRetry};

/// A gateway that listens for sandboxes. It is shut when this is dropped.
#[derive(Debug)]
pub struct Door {
    gateway: Gateway,
    _listening: Listening,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Door {
    /// Opens a door to this endpoint. Request fields of `may_drop` are left out where the endpoint's format has no place
    /// for them.
    ///
    /// # Errors
    /// When the endpoint's settings cannot work or no socket can be made.
    pub async fn open(
        endpoint: Endpoint,
        limiter: &Limiter,
        may_drop: BTreeSet<String>,
        on_retry: Option<OnRetry>,
    ) -> Result<Self, LlmError> {
        let label = endpoint.base_url.clone();
        let failed = |error: std::io::Error| LlmError::Setup {
            endpoint: label.clone(),
            reason: format!("no socket for its gateway: {error}"),
        };
        let settings = Settings { may_drop, on_retry, keep_requests: true, ..Settings::default() };
        let gateway = Gateway::new(endpoint, limiter, settings)?;
        // A short path: a socket's has room for a hundred bytes.
        let folder = tempfile::tempdir().map_err(failed)?;
        let socket = folder.path().join("gateway");
        let listening = gateway.listen_unix(&socket).await.map_err(failed)?;
        Ok(Self { gateway, _listening: listening, socket, _folder: folder })
    }

    /// What [`crate::sandbox::Spec::gateway`] takes.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Lets a trial in: [`Gateway::admit`], with replies of earlier attempts' journals at hand.
    ///
    /// # Errors
    /// When a journal cannot be used.
    pub fn admit(
        &self,
        caller: Caller,
        caps: Caps,
        journal: &Path,
        earlier: &[PathBuf],
    ) -> Result<Admission, LlmError> {
        let admission = self.gateway.admit(caller, caps, journal)?;
        earlier.iter().try_for_each(|journal| admission.answer_from(journal))?;
        Ok(admission)
    }
}
