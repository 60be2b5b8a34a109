//! The key of one row, as it is typed.

use std::fmt;

/// The names of the key fields, and their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowKey(Vec<(String, String)>);

impl RowKey {
    /// Of the only key field.
    #[must_use]
    pub(super) fn of(field: &str, value: &str) -> RowKey {
        RowKey(vec![(field.to_owned(), value.to_owned())])
    }

    /// `order_id=7,line_no=2`, or with slashes as in URLs: `order_id/7/line_no/2`. `None`: a value alone.
    pub(super) fn parse(text: &str) -> Result<Option<RowKey>, String> {
        if text.is_empty() {
            return Err(wrong(text));
        }
        if !text.contains(['=', '/']) {
            return Ok(None);
        }
        let pairs: Option<Vec<(&str, &str)>> = if text.contains('=') {
            text.split(',').map(|pair| pair.split_once('=')).collect()
        } else {
            let parts: Vec<&str> = text.split('/').collect();
            parts.chunks(2).map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect()
        };
        // What is left out of a value would name another row.
        let pairs =
            pairs.filter(|pairs| pairs.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(Some(RowKey(pairs.ok_or_else(|| wrong(text))?.into_iter().map(owned).collect())))
    }

    /// In turn, as an address has them.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(name, value)| [name.as_str(), value])
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&pairs.join(","))
    }
}

fn wrong(text: &str) -> String {
    format!(
        "{text:?} is not a key; write the name and the value of each key field, such as order_id=7,line_no=2"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_names_and_values() {
        let parsed = |text: &str| RowKey::parse(text).expect(text).map(|key| key.to_string());
        for (text, key) in [
            ("id=7", "id=7"),
            ("id/7", "id=7"),
            ("a=1,b=x y", "a=1,b=x y"),
            ("a/1/b/2", "a=1,b=2"),
            ("code=x/y", "code=x/y"),
            ("code=p=q", "code=p=q"),
            ("code/a,b", "code=a,b"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(key), "{text}");
        }
        assert_eq!((parsed("7"), parsed("a,b")), (None, None));
        for text in ["", "=", "id/", "/id/7", "id/7/", "id/7/x", "id=", "=7", "id=7,8", "id=7,", "7,id=8"] {
            RowKey::parse(text).expect_err(text);
        }
    }
}
