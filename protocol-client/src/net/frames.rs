//! Frames on their way: cutting received bytes into frames, and queueing frames for one vectored write.
//!
//! Neither copies: a received frame is split off the read buffer, and a sent one stays where it was encoded.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

use crate::wire::WireError;
use crate::wire::frame::{LENGTH_PREFIX_BYTES, RESPONSE_BYTES_MAX, frame_size};

/// Room made for one read. Memory grows with what arrives, not with what a length field promises.
const READ_BYTES_MAX: usize = 1024 * 1024;
const READ_BYTES_MIN: usize = 16 * 1024;

/// Collects received bytes and gives out whole frames (without their length).
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    buffer: BytesMut,
}

impl FrameReader {
    /// The buffer to read into, with room for what the current frame still misses.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        let missing = match self.size() {
            Some(Ok(size)) => (LENGTH_PREFIX_BYTES + size).saturating_sub(self.buffer.len()),
            _ => READ_BYTES_MIN,
        };
        self.buffer.reserve(missing.clamp(READ_BYTES_MIN, READ_BYTES_MAX));
        &mut self.buffer
    }

    /// The next whole frame, if it has arrived.
    ///
    /// # Errors
    /// When the length is negative or above [`RESPONSE_BYTES_MAX`].
    pub(super) fn next_frame(&mut self) -> Result<Option<Bytes>, WireError> {
        let Some(size) = self.size().transpose()? else {
            return Ok(None);
        };
        if self.buffer.len() < LENGTH_PREFIX_BYTES + size {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_PREFIX_BYTES);
        Ok(Some(self.buffer.split_to(size).freeze()))
    }

    fn size(&self) -> Option<Result<usize, WireError>> {
        self.buffer.first_chunk().map(|prefix| frame_size(*prefix, RESPONSE_BYTES_MAX))
    }
}

/// Frames to be written in one go.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    frames: VecDeque<Bytes>,
    bytes: usize,
}

impl FrameQueue {
    pub(super) fn push(&mut self, frame: Bytes) {
        if !frame.is_empty() {
            self.bytes += frame.len();
            self.frames.push_back(frame);
        }
    }
}

impl Buf for FrameQueue {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.frames.front().map_or(&[], |frame| frame.chunk())
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut used = 0;
        for (slice, frame) in slices.iter_mut().zip(&self.frames) {
            *slice = IoSlice::new(frame);
            used += 1;
        }
        used
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "advanced past the end of the frames");
        self.bytes -= count;
        while count > 0 {
            let Some(front) = self.frames.front_mut() else { return };
            let step = count.min(front.len());
            front.advance(step);
            count -= step;
            if front.is_empty() {
                self.frames.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_survive_any_cut_of_the_stream(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 4..50), 0..10),
            cut in 1_usize..40,
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend(i32::try_from(body.len()).unwrap().to_be_bytes());
                stream.extend(body);
            }
            let mut reader = FrameReader::default();
            let mut seen: Vec<Vec<u8>> = Vec::new();
            for piece in stream.chunks(cut) {
                reader.buffer().extend_from_slice(piece);
                while let Some(frame) = reader.next_frame().unwrap() {
                    seen.push(frame.to_vec());
                }
            }
            prop_assert_eq!(seen, bodies);
        }

        #[test]
        fn the_queue_yields_its_frames_in_order_whatever_the_writes_take(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..10),
            step in 1_usize..15,
        ) {
            let mut queue = FrameQueue::default();
            bodies.iter().for_each(|body| queue.push(Bytes::copy_from_slice(body)));
            let mut written = Vec::new();
            while queue.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 4];
                let used = queue.chunks_vectored(&mut slices);
                let all: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.to_vec()).collect();
                let taken = step.min(all.len());
                written.extend_from_slice(&all[..taken]);
                queue.advance(taken);
            }
            prop_assert_eq!(written, bodies.concat());
        }
    }

    #[test]
    fn a_hostile_length_is_refused_and_reserves_nothing() {
        for length in [-1, i32::MIN, i32::MAX] {
            let mut reader = FrameReader::default();
            reader.buffer().extend_from_slice(&length.to_be_bytes());
            assert!(reader.next_frame().is_err(), "{length}");
        }
        let mut reader = FrameReader::default();
        let largest = i32::try_from(RESPONSE_BYTES_MAX).unwrap();
        reader.buffer().extend_from_slice(&largest.to_be_bytes());
        assert_eq!(reader.next_frame(), Ok(None));
        assert!(reader.buffer().capacity() <= 4 * READ_BYTES_MAX);
    }
}
