//! The rows of one level as JSON, each in the list of the row around that it belongs to.

use std::collections::HashMap;

use rowgate_core::cursor::Position;
use rowgate_sql::compile::{CompiledLevel, OrderColumn};

use super::key::Key;
use crate::wire::failure::Malformed;

/// The columns of a row.
pub(super) type Values<'v> = [Option<&'v [u8]>];

/// Room that a level begins with, so that a page does not grow step by step.
const FIRST_BYTES: usize = 4 << 10;
const FIRST_ROWS: usize = 64;

#[derive(Default)]
pub(super) struct Level {
    /// All that came, those beyond their lists too.
    pub(super) n_rows: usize,
    pub(super) json: Vec<u8>,
    /// All of them have come.
    pub(super) is_ended: bool,
    rows: Vec<Row>,
    lists: Vec<List>,
    /// Asked for each row that is not of the same list as the one before, so that the hash is a fast one; its seed is random.
    by_key: HashMap<Key, usize, ahash::RandomState>,
    /// The key and the list of the last row. Rows mostly stand in the table list by list.
    last: Option<(Key, usize)>,
    /// Of each row what it is ordered by, so many bytes each, where rows come in no order.
    places: Vec<u8>,
    width: usize,
}

/// A part of the level's JSON, and the number of the next row of its list.
pub(super) struct Row {
    start: usize,
    end: usize,
    next: usize,
}

/// The rows of one list, by their numbers.
#[derive(Default)]
pub(super) struct List {
    first: usize,
    last: usize,
    pub(super) n_rows: usize,
    pub(super) more: bool,
    /// Where the last row stands; empty where nothing asks for it.
    pub(super) position: Position,
    is_unordered: bool,
}

impl Level {
    /// The number of the list that a row belongs to. `None`: to none. Adds what a new one takes to `n_bytes`. `first_bytes`: how long the
    /// lists within the rows are, all together.
    pub(super) fn list_of(
        &mut self,
        values: &Values<'_>,
        columns: &[usize],
        first_bytes: impl FnOnce() -> usize,
        n_bytes: &mut usize,
    ) -> Option<usize> {
        self.n_rows += 1;
        let key = Key::of(values, columns)?;
        if let Some((last, list)) = &self.last
            && *last == key
        {
            return Some(*list);
        }
        let list = self.by_key.get(&key).copied().unwrap_or_else(|| {
            if self.lists.is_empty() {
                self.json.reserve(FIRST_BYTES + first_bytes());
                self.rows.reserve(FIRST_ROWS);
            }
            *n_bytes += key.n_bytes() + size_of::<(Key, usize)>() + size_of::<List>();
            self.by_key.insert(key.clone(), self.lists.len());
            self.lists.push(List::default());
            self.lists.len() - 1
        });
        self.last = Some((key, list));
        Some(list)
    }

    /// Whether a list has as many rows as it may have; one more is there.
    pub(super) fn is_full(&mut self, list: usize, take: usize) -> bool {
        let list = &mut self.lists[list];
        list.more |= list.n_rows == take;
        list.more
    }

    /// Adds the row whose JSON begins at `start` and ends where all of it does.
    pub(super) fn push(
        &mut self,
        list: usize,
        start: usize,
        values: &Values<'_>,
        of: &CompiledLevel,
    ) -> Result<(), Malformed> {
        let number = self.rows.len();
        self.rows.push(Row { start, end: self.json.len(), next: number });
        if let Some(order) = &of.order {
            place(values, order, &mut self.places)?;
            if number == 0 {
                self.width = self.places.len();
            }
        }
        let list = &mut self.lists[list];
        if list.n_rows == 0 {
            list.first = number;
        } else {
            self.rows[list.last].next = number;
            // byte by byte: they are few, and slices would be compared by a call of memcmp
            list.is_unordered |= of.order.is_some()
                && self.places[number * self.width..].iter().lt(at(&self.places, self.width, list.last));
        }
        (list.last, list.n_rows) = (number, list.n_rows + 1);
        if of.binding.is_some() || of.is_first() {
            let columns = &of.shape.position;
            list.position.resize(columns.len(), None);
            for (kept, column) in list.position.iter_mut().zip(columns) {
                match (kept.as_mut(), values[*column]) {
                    // the memory of the row before
                    (Some(kept), Some(value)) => {
                        kept.clear();
                        kept.extend_from_slice(value);
                    }
                    (_, value) => *kept = value.map(<[u8]>::to_vec),
                }
            }
        }
        Ok(())
    }

    /// The last row has come: puts the lists in order, and leaves out what is beyond them.
    pub(super) fn end(&mut self, of: &CompiledLevel) {
        self.is_ended = true;
        if of.order.is_none() {
            return;
        }
        for list in &mut self.lists {
            if list.is_unordered {
                let mut numbers = numbers(&self.rows, list).collect::<Vec<_>>();
                numbers.sort_by_key(|number| at(&self.places, self.width, *number));
                numbers.windows(2).for_each(|pair| self.rows[pair[0]].next = pair[1]);
                list.first = numbers[0];
            }
            list.more = of.take < list.n_rows;
            list.n_rows = list.n_rows.min(of.take);
        }
    }

    pub(super) fn list(&self, key: &Key) -> Option<&List> {
        self.by_key.get(key).map(|list| &self.lists[*list])
    }

    /// The list of a level whose rows stand within no others.
    pub(super) fn take_list(&mut self) -> List {
        self.by_key.get(&Key::EMPTY).map(|list| std::mem::take(&mut self.lists[*list])).unwrap_or_default()
    }

    /// Writes the rows of a list, joined by commas.
    pub(super) fn write(&self, list: &List, out: &mut Vec<u8>) {
        for (i, number) in numbers(&self.rows, list).enumerate() {
            if 0 < i {
                out.push(b',');
            }
            out.extend_from_slice(self.json(number));
        }
    }

    pub(super) fn first(&self, list: &List) -> Option<&[u8]> {
        (0 < list.n_rows).then(|| self.json(list.first))
    }

    fn json(&self, number: usize) -> &[u8] {
        let Row { start, end, .. } = self.rows[number];
        &self.json[start..end]
    }

    /// The number that the one row of the one list is.
    pub(super) fn number(&self) -> Result<i64, Malformed> {
        let text = std::str::from_utf8(&self.json).ok();
        text.and_then(|text| text.parse().ok()).ok_or(Malformed("a count that is not a bigint"))
    }
}

fn numbers<'r>(rows: &'r [Row], list: &List) -> impl Iterator<Item = usize> + use<'r> {
    let next = move |number: &usize| Some(rows[*number].next);
    let first = (0 < list.n_rows).then_some(list.first);
    std::iter::successors(first, next).take(list.n_rows)
}

fn at(places: &[u8], width: usize, number: usize) -> &[u8] {
    &places[number * width..][..width]
}

/// Adds bytes that compare as the values do.
fn place(values: &Values<'_>, order: &[OrderColumn], out: &mut Vec<u8>) -> Result<(), Malformed> {
    for OrderColumn { column, n_bytes, is_signed, descending } in order {
        let start = out.len();
        match values.get(*column).copied().flatten() {
            None => {
                out.push(1);
                out.resize(out.len() + n_bytes, 0);
            }
            Some(value) if value.len() == *n_bytes => {
                out.push(0);
                out.extend_from_slice(value);
                out[start + 1] ^= if *is_signed { 0x80 } else { 0 };
            }
            Some(_) => return Err(Malformed("a value to order by that is not as long as its type")),
        }
        if *descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_key_stand_in_one_list() {
        let (mut level, mut n_bytes) = (Level::default(), 0);
        let mut list = |values: [Option<&[u8]>; 2]| level.list_of(&values, &[0, 1], || 0, &mut n_bytes);
        let (ab, a_b) = ([Some(&b"ab"[..]), Some(&b""[..])], [Some(&b"a"[..]), Some(&b"b"[..])]);
        assert_eq!([ab, a_b, a_b, ab].map(&mut list), [0, 1, 1, 0].map(Some));
        assert_eq!([[ab[0], None], [None, ab[1]], ab].map(&mut list), [None, None, Some(0)]);
    }

    #[test]
    fn bytes_compare_as_the_values_do() {
        let numbers: Vec<Option<i16>> =
            vec![Some(i16::MIN), Some(-2), Some(-1), Some(0), Some(1), Some(300), None];
        let places = |descending: bool| -> Vec<Vec<u8>> {
            let order = [OrderColumn { column: 0, n_bytes: 2, is_signed: true, descending }];
            let place = |number: &Option<i16>| {
                let bytes = number.map(i16::to_be_bytes);
                let mut out = Vec::new();
                place(&[bytes.as_ref().map(|it| &it[..])], &order, &mut out).expect("a place");
                out
            };
            numbers.iter().map(place).collect()
        };
        assert!(places(false).is_sorted());
        assert!(places(true).iter().rev().is_sorted());
        let unsigned = [OrderColumn { column: 0, n_bytes: 1, is_signed: false, descending: false }];
        let place_of = |value: &[u8]| {
            let mut out = Vec::new();
            place(&[Some(value)], &unsigned, &mut out).map(|()| out)
        };
        assert!(place_of(&[0x7f]).expect("a place") < place_of(&[0x80]).expect("a place"));
        assert!(place_of(&[1, 2]).is_err());
    }
}
