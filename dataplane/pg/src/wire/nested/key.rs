//! To which list a row belongs, as the bytes of its columns.

use super::level::Values;

/// What most keys have room in: a number, a uuid, or two numbers.
const SHORT: usize = 16;

/// Compared and hashed for each row. A short one has no memory of its own and is compared as a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The bytes, then zeros, and how many they are.
    Short(u128, u8),
    /// More than [`SHORT`] bytes.
    Long(Vec<u8>),
}

impl Key {
    /// Of the one list of a level whose rows stand within no others.
    pub(super) const EMPTY: Key = Key::Short(0, 0);

    /// The value of the one column, or those of `columns`, each with its length. `None`: one of them is NULL, which equals nothing.
    pub(super) fn of(values: &Values<'_>, columns: &[usize]) -> Option<Key> {
        let value = |column: &usize| values.get(*column).copied().flatten();
        match columns {
            [column] => Some(Key::EMPTY.with(value(column)?)),
            _ => columns.iter().try_fold(Key::EMPTY, |key, column| {
                let value = value(column)?;
                Some(key.with(&(value.len() as u32).to_be_bytes()).with(value))
            }),
        }
    }

    /// Bytes of memory beside its own size.
    pub(super) fn n_bytes(&self) -> usize {
        match self {
            Key::Short(..) => 0,
            Key::Long(bytes) => bytes.len(),
        }
    }

    fn with(self, more: &[u8]) -> Key {
        match self {
            Key::Short(bytes, n) if usize::from(n) + more.len() <= SHORT => {
                let start = usize::from(n);
                let mut all = bytes.to_be_bytes();
                all[start..start + more.len()].copy_from_slice(more);
                Key::Short(u128::from_be_bytes(all), n + more.len() as u8)
            }
            Key::Short(bytes, n) => Key::Long([&bytes.to_be_bytes()[..usize::from(n)], more].concat()),
            Key::Long(bytes) => Key::Long([&bytes[..], more].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_equal_where_all_their_values_are() {
        let long = [7; 40];
        let values = [&b""[..], b"a", b"ab", b"\0", b"\0\0", &[7; 16], &[7; 17], &long].map(Some);
        for columns in [vec![0], vec![0, 1], vec![0, 1, 2]] {
            let rows = |n: usize| (0..values.len().pow(n as u32)).collect::<Vec<_>>();
            let row = |number: usize| -> Vec<Option<&[u8]>> {
                columns
                    .iter()
                    .map(|at| values[number / values.len().pow(*at as u32) % values.len()])
                    .collect()
            };
            let keys: std::collections::HashSet<_> =
                rows(columns.len()).into_iter().map(|number| Key::of(&row(number), &columns)).collect();
            assert_eq!(keys.len(), values.len().pow(columns.len() as u32), "{columns:?}");
            assert!(!keys.contains(&None));
        }
    }

    #[test]
    fn null_equals_nothing() {
        assert_eq!(Key::of(&[None], &[0]), None);
        assert_eq!(Key::of(&[Some(b"a"), None], &[0, 1]), None);
        assert_eq!(Key::of(&[Some(b"a")], &[1]), None, "a column that is not there");
        assert_eq!(Key::of(&[Some(b"a")], &[]), Some(Key::EMPTY));
    }
}
