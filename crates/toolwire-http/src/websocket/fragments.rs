//! Cuts the long frames that a peer sends into short ones.
//!
//! The WebSocket library reads each frame into a buffer that never shrinks, but collects a message of several frames in
//! memory that leaves with it. So nothing is kept of a long message after its end. What this deliberately does not do:
//! judge frames. One that is wrong or longer than the limit of messages goes on as it came.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum payload of a data frame behind this, and of one read. A multiple of four, so that the mask of each piece begins
/// with its first byte.
pub(super) const PIECE_BYTES: usize = 16 * 1024;

/// The size of the longest head of a frame.
const HEAD_BYTES: usize = 14;

/// Marks the last frame of a message, in the first byte.
const FIN: u8 = 0x80;
/// The kind of a frame, in the first byte.
const OPCODE: u8 = 0x0f;
/// The kind of a frame that goes on with a message. Those up to binary carry data.
const CONTINUATION: u8 = 0;
const BINARY: u8 = 2;
/// Marks a frame whose payload is masked, in the second byte.
const MASKED: u8 = 0x80;
/// Says in the place of a length that it follows in two bytes, or in eight.
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// Where in a sequence of frames the reading is.
#[derive(Debug)]
pub(super) struct Fragments {
    limit: u64,
    /// The bytes of a head that were taken back because it is not complete, or that are to be given out.
    head: Vec<u8>,
    /// Whether `head` is to be given out as it is, in front of a piece.
    is_made: bool,
    /// The number of bytes to pass on before the next head.
    skip: u64,
    long: Option<Long>,
}

/// A frame that is being cut.
#[derive(Debug)]
struct Long {
    /// What is left of the current piece.
    piece: usize,
    /// What is left of the frame after that.
    rest: u64,
    is_last: bool,
    mask: Option<[u8; 4]>,
}

/// The head of a frame.
struct Head {
    first: u8,
    length: u64,
    mask: Option<[u8; 4]>,
    /// The number of bytes that it takes.
    bytes: usize,
}

impl Fragments {
    /// Cuts frames of messages of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        Self { limit, head: Vec::new(), is_made: false, skip: 0, long: None }
    }

    /// Reads into `buf`, and returns the number of bytes that came from `stream`. None came at its end, whether there is
    /// something in `buf` or not.
    pub(super) fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.is_made {
            // Given out alone, and at once, because there may be nothing behind it yet.
            let given = self.head.len().min(buf.remaining());
            buf.put_slice(&self.head[..given]);
            self.head.drain(..given);
            self.is_made = !self.head.is_empty();
            return Poll::Ready(Ok(0));
        }
        let kept = self.head.len().min(buf.remaining());
        let most = match &self.long {
            Some(long) => long.piece,
            None => PIECE_BYTES - kept,
        };
        let room = buf.initialize_unfilled();
        room[..kept].copy_from_slice(&self.head[..kept]);
        let end = room.len().min(kept.saturating_add(most));
        let mut fresh = ReadBuf::new(&mut room[kept..end]);
        ready!(Pin::new(stream).poll_read(task, &mut fresh))?;
        let read = fresh.filled().len();
        self.head.drain(..kept);
        let passed = if read == 0 { kept } else { self.pass(&mut room[..kept + read]) };
        buf.advance(passed);
        Poll::Ready(Ok(read))
    }

    /// Looks at what has come, and returns how much of it goes on: its first bytes, which may have changed.
    fn pass(&mut self, data: &mut [u8]) -> usize {
        if let Some(long) = &mut self.long {
            long.piece -= data.len();
            self.next_piece();
            return data.len();
        }
        let mut at = 0;
        while let Some(rest) = data.get_mut(at..).filter(|rest| !rest.is_empty()) {
            if self.skip > 0 {
                let step = usize::try_from(self.skip).unwrap_or(usize::MAX).min(rest.len());
                self.skip -= step as u64;
                at += step;
                continue;
            }
            let Some(head) = Head::read(rest) else {
                self.head.extend_from_slice(rest);
                return at;
            };
            let is_data = head.first & OPCODE <= BINARY;
            if is_data && head.length > PIECE_BYTES as u64 && head.length <= self.limit {
                return at + self.cut(&head, rest);
            }
            self.skip = head.length;
            at += head.bytes;
        }
        at
    }

    /// Begins to cut the frame that is at the beginning of `data` and goes on after it, and returns how much of that goes on.
    fn cut(&mut self, head: &Head, data: &mut [u8]) -> usize {
        let payload = data.len() - head.bytes;
        let piece = Head { first: head.first & !FIN, length: PIECE_BYTES as u64, mask: head.mask, bytes: 0 };
        let short = piece.write();
        // The head of a long frame is at least as long as that of a short one.
        data.copy_within(head.bytes.., short.len());
        data[..short.len()].copy_from_slice(&short);
        self.long = Some(Long {
            piece: PIECE_BYTES - payload,
            rest: head.length - PIECE_BYTES as u64,
            is_last: head.first & FIN != 0,
            mask: head.mask,
        });
        short.len() + payload
    }

    /// Makes the head of the next piece, if the one before is complete.
    fn next_piece(&mut self) {
        let Some(long) = self.long.as_mut().filter(|long| long.piece == 0) else { return };
        if long.rest == 0 {
            self.long = None;
            return;
        }
        let length = long.rest.min(PIECE_BYTES as u64);
        long.rest -= length;
        long.piece = usize::try_from(length).unwrap_or(PIECE_BYTES);
        let fin = if long.rest == 0 && long.is_last { FIN } else { 0 };
        self.head = Head { first: CONTINUATION | fin, length, mask: long.mask, bytes: 0 }.write();
        self.is_made = true;
    }
}

impl Head {
    /// Reads the head at the beginning of `data`; `None` if it is not complete.
    fn read(data: &[u8]) -> Option<Self> {
        let (&first, rest) = data.split_first()?;
        let (&second, rest) = rest.split_first()?;
        let (length, rest) = match second & !MASKED {
            TWO_BYTES => {
                let (bytes, rest) = rest.split_first_chunk()?;
                (u16::from_be_bytes(*bytes).into(), rest)
            }
            EIGHT_BYTES => {
                let (bytes, rest) = rest.split_first_chunk()?;
                (u64::from_be_bytes(*bytes), rest)
            }
            short => (short.into(), rest),
        };
        let (mask, rest) = if second & MASKED == 0 {
            (None, rest)
        } else {
            let (mask, rest) = rest.split_first_chunk()?;
            (Some(*mask), rest)
        };
        Some(Self { first, length, mask, bytes: data.len() - rest.len() })
    }

    /// Writes the head of a frame of at most [`PIECE_BYTES`].
    fn write(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        head.push(self.first);
        match u8::try_from(self.length) {
            Ok(length) if length < TWO_BYTES => head.push(masked | length),
            _ => {
                head.push(masked | TWO_BYTES);
                head.extend_from_slice(&u16::try_from(self.length).unwrap_or(u16::MAX).to_be_bytes());
            }
        }
        head.extend_from_slice(self.mask.as_ref().map_or(&[][..], |mask| &mask[..]));
        head
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// A frame as it is sent, with a payload that shows where each byte belongs.
    fn frame(first: u8, length: usize, mask: Option<[u8; 4]>) -> Vec<u8> {
        let masked = if mask.is_some() { MASKED } else { 0 };
        let mut frame = vec![first];
        match length {
            0..126 => frame.push(masked | u8::try_from(length).unwrap()),
            126..65_536 => {
                frame.push(masked | TWO_BYTES);
                frame.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(masked | EIGHT_BYTES);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(mask.as_ref().map_or(&[][..], |mask| &mask[..]));
        let mask = mask.unwrap_or_default();
        frame.extend((0..length).map(|at| u8::try_from(at % 251).unwrap() ^ mask[at % 4]));
        frame
    }

    /// The frames in `bytes`: the first byte and the payload of each.
    fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some(head) = Head::read(bytes) {
            let (payload, rest) =
                bytes[head.bytes..].split_at(usize::try_from(head.length).expect("a frame fits"));
            let mask = head.mask.unwrap_or_default();
            frames.push((
                head.first,
                payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect(),
            ));
            bytes = rest;
        }
        assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
        frames
    }

    /// What comes out when `bytes` come in pieces of `sent` bytes and are read in pieces of `taken` bytes.
    async fn cut(bytes: Vec<u8>, sent: usize, taken: usize, limit: usize) -> Vec<u8> {
        let (mut near, mut far) = tokio::io::duplex(sent);
        tokio::spawn(async move { near.write_all(&bytes).await });
        let (mut fragments, mut out) = (Fragments::new(limit), Vec::new());
        loop {
            let mut room = vec![0; taken];
            let mut buf = ReadBuf::new(&mut room);
            let read = poll_fn(|task| fragments.poll_read(&mut far, task, &mut buf)).await.unwrap();
            out.extend_from_slice(buf.filled());
            if read == 0 && buf.filled().is_empty() {
                return out;
            }
        }
    }

    #[tokio::test]
    async fn long_frames_are_cut_and_nothing_else_changes() {
        const TEXT: u8 = 1;
        const PING: u8 = 9;
        for mask in [None, Some([1, 2, 3, 4])] {
            let lengths =
                [0, 5, 125, 126, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, 65_535, 65_536, 200_001];
            let mut sent = Vec::new();
            for length in lengths {
                sent.extend(frame(TEXT | FIN, length, mask));
                sent.extend(frame(PING | FIN, 9, mask));
            }
            // A message in frames of its own, one of them long.
            sent.extend(frame(TEXT, 7, mask));
            sent.extend(frame(CONTINUATION, 100_000, mask));
            sent.extend(frame(CONTINUATION | FIN, 3, mask));
            for (step, taken) in
                [(5, 14), (113, 20), (1000, 4096), (PIECE_BYTES, PIECE_BYTES), (1 << 20, 1 << 20)]
            {
                let out = frames(&cut(sent.clone(), step, taken, 1 << 20).await);
                assert!(out.iter().all(|(_, payload)| payload.len() <= PIECE_BYTES));
                let (mut messages, mut message) = (Vec::new(), Vec::new());
                for (first, payload) in out {
                    if first & OPCODE == PING {
                        assert_eq!((first, payload.len()), (PING | FIN, 9));
                        continue;
                    }
                    assert_eq!(first & OPCODE == TEXT, message.is_empty() && first & OPCODE != CONTINUATION);
                    message.extend(payload);
                    if first & FIN != 0 {
                        messages.push(std::mem::take(&mut message));
                    }
                }
                let (last, others) = messages.split_last().unwrap();
                assert_eq!(others.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
                assert!(others.iter().all(|message| {
                    message.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 251)
                }));
                assert_eq!(last.len(), 7 + 100_000 + 3);
            }
        }
    }

    #[tokio::test]
    async fn a_frame_that_is_longer_than_a_message_may_be_goes_on_as_it_came() {
        let sent = frame(1 | FIN, 100_000, Some([9; 4]));
        assert_eq!(cut(sent.clone(), 1000, 1000, 99_999).await, sent);
        let broken = frame(1 | FIN, 100_000, None)[..50_001].to_vec();
        let out = cut(broken, 1000, 1000, 100_000).await;
        assert_eq!(out.len(), 50_001 - 10 + 4 * 4, "four pieces have begun");
    }
}
