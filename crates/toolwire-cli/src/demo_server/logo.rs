//! The logo: a few pixels, written as a PNG without any library.
//!
//! The picture is stored, not compressed: it is smaller than the tables a compressor would bring along.

/// A plug on its wire: `.` is transparent, `o` the wire, `#` the plug.
const PIXELS: [&[u8; SIDE]; SIDE] = [
    b"................",
    b"....##....##....",
    b"....##....##....",
    b"....##....##....",
    b"..############..",
    b"..############..",
    b"..############..",
    b"...##########...",
    b"...##########...",
    b"....########....",
    b"......####......",
    b".......oo.......",
    b".......oo.......",
    b".......oooooo...",
    b"...........oo...",
    b"...........oo...",
];

/// The width and height of the picture.
const SIDE: usize = 16;
/// Red, green and blue of each colour: transparent, plug, wire.
const PALETTE: [u8; 9] = [0, 0, 0, 0x2d, 0x5b, 0xff, 0xff, 0x8a, 0x3d];
/// How opaque the first colour is; the others are fully.
const TRANSPARENCY: [u8; 1] = [0];

/// The logo as a PNG file.
pub(super) fn png() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(side().to_be_bytes());
    header.extend(side().to_be_bytes());
    // Eight bits per pixel, colours from the palette, the only methods there are, not interlaced.
    header.extend([8, 3, 0, 0, 0]);

    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, *b"IHDR", &header);
    chunk(&mut file, *b"PLTE", &PALETTE);
    chunk(&mut file, *b"tRNS", &TRANSPARENCY);
    chunk(&mut file, *b"IDAT", &stored(&scanlines()));
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn side() -> u32 {
    u32::try_from(SIDE).unwrap_or(u32::MAX)
}

/// The pixels row by row, each row behind a zero: no filter.
fn scanlines() -> Vec<u8> {
    let colour = |pixel: &u8| match pixel {
        b'#' => 1,
        b'o' => 2,
        _ => 0,
    };
    let row = |row: &&[u8; SIDE]| std::iter::once(0).chain(row.iter().map(colour)).collect::<Vec<u8>>();
    PIXELS.iter().flat_map(row).collect()
}

/// A zlib stream of one stored block, which holds at most 65,535 bytes; a picture of this size has 272.
fn stored(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(data);
    stream.extend(adler32(data).to_be_bytes());
    stream
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let summed: Vec<u8> = kind.iter().chain(data).copied().collect();
    file.extend(length.to_be_bytes());
    file.extend(&summed);
    file.extend(crc32(&summed).to_be_bytes());
}

/// The checksum of a PNG chunk.
fn crc32(data: &[u8]) -> u32 {
    let shift = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !data.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
}

/// The checksum of a zlib stream.
fn adler32(data: &[u8]) -> u32 {
    let add = |(a, b), byte: &u8| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    };
    let (a, b) = data.iter().fold((1, 0), add);
    (b << 16) | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_their_published_check_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn every_chunk_is_where_the_one_before_says() {
        let file = png();
        let mut rest = &file[8..];
        let mut kinds = Vec::new();
        while let [a, b, c, d, after @ ..] = rest {
            let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap();
            let (summed, after) = after.split_at(4 + length);
            let (sum, after) = after.split_at(4);
            assert_eq!(crc32(summed).to_be_bytes(), sum);
            kinds.push(String::from_utf8_lossy(&summed[..4]).into_owned());
            rest = after;
        }
        assert_eq!(kinds, ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"]);
        assert_eq!(scanlines().len(), SIDE * (SIDE + 1));
    }
}
