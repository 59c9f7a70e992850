//! An endpoint whose certificate nobody vouches for.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A TLS server on a free port of the loopback device with a certificate of its own making. It lives as long as the
/// runtime that it was started in.
pub struct SelfSigned {
    address: SocketAddr,
}

impl SelfSigned {
    /// Starts it.
    ///
    /// # Errors
    /// When the certificate cannot be made or no port is free.
    pub async fn start() -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
            .map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .map_err(io::Error::other)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Clients are expected to refuse the certificate.
                drop(tokio::spawn(acceptor.accept(stream)));
            }
        });
        Ok(Self { address })
    }

    /// The base address to give to clients: `https://127.0.0.1:PORT/v1`.
    pub fn url(&self) -> String {
        format!("https://{}/v1", self.address)
    }
}
