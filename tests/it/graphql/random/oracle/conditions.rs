//! Filters, row by row, with SQL's third value: REST says of single comparisons which rows they are true of, and which false.

use super::Oracle;
use super::rest::Spelling;
use crate::graphql::random::document::{Condition, Operand};

/// By row; `None`: neither true nor false.
type Verdicts = Vec<Option<bool>>;

impl Oracle {
    /// Which rows of a table satisfy all conditions.
    pub(super) fn passing(&self, table: usize, conditions: &[Condition]) -> Vec<bool> {
        self.all(table, conditions).into_iter().map(|verdict| verdict == Some(true)).collect()
    }

    fn all(&self, table: usize, conditions: &[Condition]) -> Verdicts {
        let each = conditions.iter().map(|condition| self.one(table, condition));
        each.fold(self.constant(table, true), |found, next| zipped(&found, &next, both))
    }

    fn one(&self, table: usize, condition: &Condition) -> Verdicts {
        match condition {
            // no condition is the empty choice
            Condition::And(each) if each.is_empty() => self.constant(table, false),
            Condition::And(each) => {
                let each = each.iter().map(|conditions| self.all(table, conditions));
                each.fold(self.constant(table, true), |found, next| zipped(&found, &next, both))
            }
            Condition::Or(each) => {
                let each = each.iter().map(|conditions| self.all(table, conditions));
                let negated = each.map(|verdicts| not(&verdicts));
                not(&negated.fold(self.constant(table, true), |found, next| zipped(&found, &next, both)))
            }
            Condition::Not(inner) => not(&self.all(table, inner)),
            Condition::Related(it, inner) => {
                let passes = self.passing(it.to, inner);
                let leads = |rows: &Vec<usize>| Some(rows.iter().any(|row| passes[*row]));
                self.links[it.name].iter().map(leads).collect()
            }
            Condition::Field(field, operators) => {
                let given = operators.iter().filter(|(_, operand)| !matches!(operand, Operand::Null));
                let each = given.map(|(word, operand)| match operand {
                    Operand::Several(texts) if texts.is_empty() => self.constant(table, false),
                    _ => {
                        let says = Spelling::comparison(field.name, field.ty, word, operand);
                        let is_true = self.list(table, Spelling::filter(&says));
                        let is_false = self.list(table, Spelling::filter(&format!("not ({says})")));
                        let verdict = |row: usize| match (is_true.contains(&row), is_false.contains(&row)) {
                            (true, false) => Some(true),
                            (false, true) => Some(false),
                            _ => None,
                        };
                        (0..self.rows[table].len()).map(verdict).collect()
                    }
                });
                each.fold(self.constant(table, true), |found, next| zipped(&found, &next, both))
            }
        }
    }

    fn constant(&self, table: usize, value: bool) -> Verdicts {
        vec![Some(value); self.rows[table].len()]
    }
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(verdicts: &Verdicts) -> Verdicts {
    verdicts.iter().map(|verdict| verdict.map(|it| !it)).collect()
}

fn zipped(a: &Verdicts, b: &Verdicts, join: fn(Option<bool>, Option<bool>) -> Option<bool>) -> Verdicts {
    a.iter().zip(b).map(|(a, b)| join(*a, *b)).collect()
}
