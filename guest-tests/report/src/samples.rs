//! Raw latency samples as they travel: little-endian `u32` nanoseconds in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Latencies in nanoseconds, in the order in which they were taken. A sample beyond `u32::MAX` (4.29 s) is
/// stored as `u32::MAX`; no probe interval comes near it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples(pub Vec<u32>);

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|s| s.to_le_bytes()).collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        if bytes.len() % 4 != 0 {
            return Err(D::Error::custom(format!(
                "sample data is {} bytes long, which is no multiple of 4",
                bytes.len()
            )));
        }
        let samples = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        Ok(Self(samples))
    }
}
