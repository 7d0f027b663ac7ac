//! Bytes as texts that sort as they do, for keys and wakes. For stores of this project.

use std::fmt::Write as _;

/// Two digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a text that [`encode`] has made, and of no other.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

/// The same for as many bytes as an id has.
pub fn decode_exact<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_is_taken() {
        assert_eq!(encode(&[0, 9, 171, 255]), "0009abff");
        assert_eq!(decode_exact("0009abff"), Some([0, 9, 171, 255]));
        for text in ["0", "0g", "ää", "0009abff00", "", "0009ABFF"] {
            assert_eq!(decode_exact::<4>(text), None, "{text}");
        }
    }
}
