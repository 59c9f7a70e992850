//! Java, Kotlin, Scala and Clojure.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "jvm", parsers: &[], aliases: &[] };
