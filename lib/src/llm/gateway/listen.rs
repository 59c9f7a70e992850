//! Where the gateway is listened to.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Gateway, routes};

/// An open door of the gateway. Dropping it shuts it: no request is taken any more, those under way are answered.
#[derive(Debug)]
pub struct Listening {
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Listening {
    /// The TCP address; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The path of the Unix socket; `None` for TCP.
    pub fn path(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Takes no further request and waits until those under way are answered.
    pub async fn drain(mut self) {
        self.shut();
        if let Some(task) = self.task.take() {
            // It ends by itself: a panic inside has been printed.
            let _ = task.await;
        }
    }

    fn shut(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The server may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(path) = self.socket.take() {
            // Nobody can connect any more, whether the name goes or stays.
            let _ = fs_err::remove_file(path);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.shut();
    }
}

pub(super) async fn tcp(gateway: Gateway, address: SocketAddr) -> io::Result<Listening> {
    if !address.ip().is_loopback() && !gateway.0.settings.beyond_loopback {
        let words = format!("{address} can be reached from outside, which was not asked for");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let server = axum::serve(listener, routes::router(gateway)).with_graceful_shutdown(until(stopped));
    let task = tokio::spawn(async {
        // Errors of single connections end those alone; the accept loop has none to return.
        let _ = server.await;
    });
    Ok(Listening { address: Some(address), socket: None, stop: Some(stop), task: Some(task) })
}

pub(super) async fn unix(gateway: Gateway, path: &Path) -> io::Result<Listening> {
    let listener = UnixListener::bind(path).map_err(|error| {
        let taken = error.kind() == io::ErrorKind::AddrInUse;
        let hint = if taken { ": remove it if no gateway listens there" } else { "" };
        io::Error::new(error.kind(), format!("{}: {error}{hint}", path.display()))
    })?;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let (stop, stopped) = oneshot::channel();
    let server = axum::serve(listener, routes::router(gateway)).with_graceful_shutdown(until(stopped));
    let task = tokio::spawn(async {
        let _ = server.await;
    });
    Ok(Listening { address: None, socket: Some(path.to_owned()), stop: Some(stop), task: Some(task) })
}

async fn until(stopped: oneshot::Receiver<()>) {
    // A sender that is gone means the same.
    let _ = stopped.await;
}
