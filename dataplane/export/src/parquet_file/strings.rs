//! Values of bytes, one behind the other in blocks that never move: a buffer that grows is there twice while it does.

use std::{iter, mem, vec};

use bytes::Bytes;

/// The first block is this long, each further one twice as long as the one before.
const MIN_BLOCK: usize = 4 << 10;
/// No block is longer, unless for a value that is.
const MAX_BLOCK: usize = 64 << 10;

/// Values of bytes.
#[derive(Default)]
pub(super) struct Strings {
    blocks: Vec<Block>,
    /// The block that takes the next value.
    open: Vec<u8>,
    n_open: usize,
    /// Where each value ends in its block.
    ends: Vec<u32>,
    /// Where a value is made that does not come as it is held.
    scratch: Vec<u8>,
}

struct Block {
    bytes: Bytes,
    n_values: usize,
}

impl Strings {
    /// Adds a value, of less than 4 GiB; returns how many bytes it takes.
    #[inline]
    pub(super) fn push(&mut self, value: &[u8]) -> usize {
        if self.open.capacity() - self.open.len() < value.len() {
            self.next_block(value.len());
        }
        self.open.extend_from_slice(value);
        self.n_open += 1;
        self.ends.push(self.open.len() as u32);
        value.len() + size_of::<u32>()
    }

    /// Adds the value that `make` appends to a buffer, without the quotes if it `is_unquoted` and has some.
    pub(super) fn push_made<E>(
        &mut self,
        is_unquoted: bool,
        make: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut scratch = mem::take(&mut self.scratch);
        scratch.clear();
        make(&mut scratch)?;
        let value = match &scratch[..] {
            [b'"', value @ .., b'"'] if is_unquoted => value,
            value => value,
        };
        let n_bytes = self.push(value);
        self.scratch = scratch;
        Ok(n_bytes)
    }

    pub(super) fn n_values(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let mut n_before = 0;
        let closed = self.blocks.iter().map(|block| (&block.bytes[..], block.n_values));
        closed.chain([(&self.open[..], self.n_open)]).flat_map(move |(bytes, n_values)| {
            let ends = &self.ends[n_before..][..n_values];
            n_before += n_values;
            let starts = iter::once(0).chain(ends.iter().copied());
            starts.zip(ends).map(move |(start, end)| &bytes[start as usize..*end as usize])
        })
    }

    /// Removes all values. Each block is freed when the values in it are.
    pub(super) fn take(&mut self) -> Taken {
        self.close();
        self.scratch.shrink_to(MIN_BLOCK);
        Taken {
            blocks: mem::take(&mut self.blocks).into_iter(),
            block: Bytes::new(),
            n_left: 0,
            start: 0,
            ends: mem::take(&mut self.ends).into_iter(),
        }
    }

    #[cold]
    fn next_block(&mut self, n_bytes: usize) {
        let doubled = (2 * self.open.capacity()).clamp(MIN_BLOCK, MAX_BLOCK);
        self.close();
        self.open = Vec::with_capacity(doubled.max(n_bytes));
    }

    fn close(&mut self) {
        let bytes = Bytes::from(mem::take(&mut self.open));
        self.blocks.push(Block { bytes, n_values: mem::take(&mut self.n_open) });
    }
}

/// Values that were removed, in order.
pub(super) struct Taken {
    blocks: vec::IntoIter<Block>,
    block: Bytes,
    n_left: usize,
    start: usize,
    ends: vec::IntoIter<u32>,
}

impl Iterator for Taken {
    type Item = Bytes;

    #[inline]
    fn next(&mut self) -> Option<Bytes> {
        while self.n_left == 0 {
            let Block { bytes, n_values } = self.blocks.next()?;
            (self.block, self.n_left, self.start) = (bytes, n_values, 0);
        }
        let end = self.ends.next()? as usize;
        self.n_left -= 1;
        Some(self.block.slice(mem::replace(&mut self.start, end)..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order_whatever_their_length() {
        let lens = [0, 1, MIN_BLOCK, 0, 5, MAX_BLOCK, MAX_BLOCK + 1, 0, 3, 2 * MAX_BLOCK, 0, 0, 7];
        let expected: Vec<Vec<u8>> =
            (0..3).flat_map(|_| lens).enumerate().map(|(i, len)| vec![i as u8; len]).collect();
        let mut strings = Strings::default();
        for _ in 0..2 {
            expected.iter().for_each(|value| _ = strings.push(value));
            assert_eq!(strings.n_values(), expected.len());
            assert!(strings.values().eq(expected.iter().map(|value| &value[..])));
            assert!(strings.take().eq(expected.iter().map(|value| &value[..])));
            assert_eq!((strings.n_values(), strings.values().count()), (0, 0));
            assert_eq!(strings.take().next(), None);
        }
    }
}
