/// One character of a URI: an octet that stands for itself or is percent-encoded.
///
/// `/` and `%2F` are different units with the same octet, so that nothing ever splits an encoded octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) octet: u8,
    pub(super) encoded: bool,
}

impl Unit {
    /// Whether this is the plain character `octet`.
    pub(super) fn is(self, octet: u8) -> bool {
        self == Self { octet, encoded: false }
    }

    /// Whether this is the first octet of a character.
    pub(super) const fn starts_character(self) -> bool {
        self.octet & 0xC0 != 0x80
    }
}

/// Reads the units of a URI; `None` if a `%` is not followed by two hexadecimal digits.
///
/// Octets beyond ASCII have no place in a URI. Where they are found all the same, they are read as encoded.
pub(super) fn units(uri: &str) -> Option<Vec<Unit>> {
    let mut units = Vec::with_capacity(uri.len());
    let mut bytes = uri.bytes();
    while let Some(byte) = bytes.next() {
        units.push(if byte == b'%' {
            let (high, low) = (hex_digit(bytes.next()?)?, hex_digit(bytes.next()?)?);
            Unit { octet: high << 4 | low, encoded: true }
        } else {
            Unit { octet: byte, encoded: !byte.is_ascii() }
        });
    }
    Some(units)
}

/// The units as numbers, which the machine compares many at once.
pub(super) fn numbers(units: &[Unit]) -> Vec<u16> {
    units.iter().map(|unit| u16::from(unit.octet) | u16::from(unit.encoded) << 8).collect()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The text that units stand for; `None` if it is not UTF-8.
pub(super) fn decode(units: &[Unit]) -> Option<String> {
    String::from_utf8(units.iter().map(|unit| unit.octet).collect()).ok()
}
