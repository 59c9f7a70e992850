//! What the host and the runner say to each other.
