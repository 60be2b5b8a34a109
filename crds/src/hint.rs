//! The nearest known name to one that is not known.

/// The name nearest to `wrong` by edit distance, upper and lower case alike, when it is near enough to be meant.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let allowed = (wrong.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(&wrong, &name.to_lowercase()), name))
        .filter(|(steps, _)| *steps <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many characters to insert, remove, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if 1 < i && 1 < j && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name_and_noise_finds_none() {
        let known = ["entities", "events", "keyFields", "rowLevelSecurity"];
        for (wrong, right) in [
            ("entites", Some("entities")),
            ("keyfields", Some("keyFields")),
            ("evetns", Some("events")),
            ("rowlevelsecurty", Some("rowLevelSecurity")),
            ("colour", None),
        ] {
            assert_eq!(nearest(wrong, known), right, "{wrong}");
        }
    }
}
