//! Real programs under the host.
