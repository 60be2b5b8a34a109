//! Values of any length, one behind the other.

use std::mem;

/// The shortest step in which the buffer grows.
const STEP: usize = 16 << 10;

/// Values of any length in one buffer.
#[derive(Default)]
pub(super) struct Strings {
    /// Where each value ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// Where a value is made that is not there as it is held.
    scratch: Vec<u8>,
}

impl Strings {
    /// Adds a value; returns how many bytes it takes.
    #[inline]
    pub(super) fn push(&mut self, value: &[u8]) -> usize {
        if self.bytes.capacity() - self.bytes.len() < value.len() {
            self.grow(value.len());
        }
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        value.len() + size_of::<usize>()
    }

    /// Adds the value that `make` appends to a buffer, without the quotes if it `is_unquoted` and has some.
    pub(super) fn push_made<E>(
        &mut self,
        is_unquoted: bool,
        make: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut scratch = mem::take(&mut self.scratch);
        scratch.clear();
        let made = make(&mut scratch);
        let value = match &scratch[..] {
            [b'"', value @ .., b'"'] if is_unquoted => value,
            value => value,
        };
        let n_bytes = self.push(value);
        self.scratch = scratch;
        made.map(|()| n_bytes)
    }

    pub(super) fn ends(&self) -> &[usize] {
        &self.ends
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        mem::take(&mut self.bytes)
    }

    /// Removes all values; `bytes` is the buffer that was taken.
    pub(super) fn reset(&mut self, bytes: Vec<u8>) {
        self.ends.clear();
        self.bytes = bytes;
        self.bytes.clear();
        self.scratch.shrink_to(STEP);
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// By a quarter: twice as much would be held as is needed.
    #[cold]
    fn grow(&mut self, n_bytes: usize) {
        self.bytes.reserve_exact(n_bytes.max(self.bytes.capacity() / 4).max(STEP));
    }
}
