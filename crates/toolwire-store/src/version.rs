//! Protocol versions in stored records.

use serde::{Deserialize, Deserializer, de::Error as _};
use toolwire_protocol::Version;

/// Reads a version by its name. One that this build does not know is an error: whoever cannot tell what a record was made
/// for must not work on it.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
