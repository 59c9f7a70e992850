//! What Java's, Kotlin's, Scala's and Clojure's runners say of their tests.

pub(super) mod ant;
pub(super) mod gradle;
pub(super) mod lein;
pub(super) mod maven;
pub(super) mod scala;
