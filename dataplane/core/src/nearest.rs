//! The nearest known name to one that is not known. Only ever choose among names that the asking key may know.

/// Longer ones are no typing errors, and cost a stranger nothing to send.
const LONGEST: usize = 64;

/// The name that differs least from `wrong`, upper and lower case alike: in at most a third of its letters, a swap of
/// neighbours counting as one. The first of several such.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: Vec<char> = wrong.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
    if LONGEST < wrong.len() {
        return None;
    }
    known
        .into_iter()
        .map(|name| (distance(&wrong, name), name))
        .filter(|(steps, name)| *steps <= (name.chars().count() / 3).max(1))
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, name)| name)
}

/// How many letters to insert, remove, replace or swap with their neighbour, in lower case.
fn distance(wrong: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=wrong.len()).collect();
    for i in 1..=name.len() {
        let mut row = vec![i];
        for j in 1..=wrong.len() {
            let replaced = last[j - 1] + usize::from(name[i - 1] != wrong[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if 1 < i && 1 < j && name[i - 1] == wrong[j - 2] && name[i - 2] == wrong[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[wrong.len()]
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
