//! Rules of Go.
