//! The nearest known name to one that is not known. Only ever choose among names that the asking key may know.

use strsim::osa_distance;

/// Longer names are not typing errors, and a caller could send them at no cost.
const MAX_LENGTH: usize = 64;

/// The name that differs least from `wrong`, upper and lower case alike: in at most a third of its letters, a swap of
/// neighbours counting as one. The first of several such.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if MAX_LENGTH < wrong.chars().take(MAX_LENGTH + 1).count() {
        return None;
    }
    let wrong = wrong.to_lowercase();
    known
        .into_iter()
        .map(|name| (osa_distance(&wrong, &name.to_lowercase()), name))
        .filter(|(steps, name)| *steps <= (name.chars().count() / 3).max(1))
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name_and_noise_finds_none() {
        let names = ["id", "customer_id", "status", "ID Number", "keyFields", "rowLevelSecurity"];
        for (wrong, right) in [
            ("staus", Some("status")),
            ("Status", Some("status")),
            ("sttaus", Some("status")),
            ("customer", Some("customer_id")),
            ("ide", Some("id")),
            ("id_number", Some("ID Number")),
            ("keyfields", Some("keyFields")),
            ("rowlevelsecurty", Some("rowLevelSecurity")),
            ("colour", None),
            ("total", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names), right, "{wrong}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), names), None);
    }
}
