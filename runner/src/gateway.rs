//! Where a sandbox finds the gateway to models, if it has one.

/// The port of its loopback interface. Below the range that kernels give to sockets by themselves.
pub const PORT: u16 = 24_117;

/// Where the host's socket is shown, for the runner to connect to.
pub const SOCKET: &str = "/.memtrial-gateway";

/// What `serve` is told.
pub const FLAG: &str = "--gateway";
