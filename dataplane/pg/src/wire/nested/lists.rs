//! The rows of each level as JSON, by the rows around them that they belong to.

use rowgate_core::cursor::{self, Position};
use rowgate_core::derive::CursorKey;
use rowgate_sql::compile::{CompiledLevel, Member};
use rowgate_sql::query::ConnectionPart;
use rowgate_sql::shape::{Encoding, Shape};

use super::Nested;
use super::key::Key;
use super::level::{self, Level, List, Values};
use crate::wire::connection::frames::Fields;
use crate::wire::encode::json;
use crate::wire::failure::{Malformed, Stop, Unwritten};

/// All of an answer is in memory until its last row has come, so that it has no more bytes than these; 32 MiB.
const MAX_BYTES: usize = 32 << 20;

/// A row of so many columns takes no memory of its own while it is read.
const FEW: usize = 16;

/// Where the columns of a row are while it is read.
#[derive(Default)]
struct Room<'v> {
    few: [Option<&'v [u8]>; FEW],
    many: Vec<Option<&'v [u8]>>,
}

impl<'v> Room<'v> {
    /// So many, all NULL.
    fn values(&mut self, n: usize) -> &mut [Option<&'v [u8]>] {
        match self.few.get_mut(..n) {
            Some(few) => few,
            None => {
                self.many.resize(n, None);
                &mut self.many
            }
        }
    }
}

/// Rows so far. A level is read before those around it.
pub(crate) struct Lists<'n> {
    nested: &'n Nested,
    levels: Vec<Level>,
    n_bytes: usize,
    /// Not all rows are kept.
    is_cut: bool,
}

/// The first level as a page of rows.
pub(crate) struct Page {
    pub(crate) json: Vec<u8>,
    pub(crate) n_rows: usize,
    pub(crate) more: bool,
    pub(crate) last: Option<Position>,
    pub(crate) count: Option<i64>,
}

/// Why rows do not become an answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    Malformed(Malformed),
    /// It would be longer than an answer may be, or hold a cursor longer than one may be.
    TooLong,
}

impl From<Unwritten> for NoAnswer {
    fn from(unwritten: Unwritten) -> NoAnswer {
        match unwritten {
            Unwritten::Malformed(malformed) => malformed.into(),
            Unwritten::TooLong => NoAnswer::TooLong,
        }
    }
}

impl From<Malformed> for NoAnswer {
    fn from(malformed: Malformed) -> NoAnswer {
        NoAnswer::Malformed(malformed)
    }
}

impl From<NoAnswer> for Stop {
    fn from(failure: NoAnswer) -> Stop {
        match failure {
            NoAnswer::Malformed(malformed) => Stop::Malformed(malformed),
            NoAnswer::TooLong => Stop::TooLong,
        }
    }
}

impl<'n> Lists<'n> {
    pub(crate) fn new(nested: &'n Nested) -> Lists<'n> {
        let levels = nested.levels.iter().map(|_| Level::default()).collect();
        Lists { nested, levels, n_bytes: 0, is_cut: false }
    }

    /// Adds a row that the statement of the level `at` gave. All lists in the rows of that level are complete.
    pub(crate) fn add(&mut self, at: usize, body: &[u8]) -> Result<(), NoAnswer> {
        if self.is_cut {
            return Ok(());
        }
        let of = &self.nested.levels[at];
        let n_columns = of.statement_shape().columns.len();
        let mut fields = Fields::of_row(body)?;
        if fields.n_values() != n_columns {
            return Err(Malformed("a row whose number of columns differs from its statement").into());
        }
        let mut room = Room::default();
        let given = room.values(n_columns);
        for value in given.iter_mut() {
            *value = fields.value()?;
        }
        let Some(within) = &of.list_within else { return self.add_row(at, given) };
        if given[within.key].is_some() {
            let n_columns = self.nested.levels[within.level].shape.columns.len();
            return match self.levels[within.level].is_ended {
                false => self.add_row(within.level, &given[..n_columns]),
                true => Err(Malformed("a row of a list behind those around it").into()),
            };
        }
        self.end_level(within.level);
        let mut room = Room::default();
        let values = room.values(within.columns_around.len());
        values.iter_mut().zip(&within.columns_around).for_each(|(value, column)| *value = given[*column]);
        self.add_row(at, values)
    }

    fn add_row(&mut self, at: usize, values: &Values<'_>) -> Result<(), NoAnswer> {
        let of = &self.nested.levels[at];
        let (before, within) = self.levels.split_at_mut(at + 1);
        let Some(level) = before.last_mut() else { return Ok(()) };
        let inside =
            || self.nested.levels[at + 1..].iter().zip(&*within).filter(|(of, _)| of.around == Some(at));
        let first_bytes = || inside().map(|(_, level)| level.json.len()).sum();
        let Some(list) = level.list_of(values, &of.key, first_bytes, &mut self.n_bytes) else {
            return Ok(());
        };
        // where they come in no order, which are the first is known in the end
        if of.order.is_none() && level.is_full(list, of.take) {
            return if of.is_whole { Err(NoAnswer::TooLong) } else { Ok(()) };
        }
        let start = level.json.len();
        let within = Within { nested: self.nested, levels: within, first: at + 1 };
        write_row(of, values, &within, &mut level.json)?;
        level.push(list, start, values, of)?;
        self.n_bytes += level.json.len() - start + size_of::<level::Row>();
        if self.n_bytes <= MAX_BYTES {
            return Ok(());
        }
        // rows beyond their lists may be among them
        self.is_cut = self.nested.levels.iter().any(|level| level.order.is_some());
        if self.is_cut { Ok(()) } else { Err(NoAnswer::TooLong) }
    }

    /// The last row has come that the statement of the level `at` gives.
    pub(crate) fn end(&mut self, at: usize) {
        if let Some(within) = &self.nested.levels[at].list_within {
            self.end_level(within.level);
        }
        self.end_level(at);
    }

    fn end_level(&mut self, at: usize) {
        if !self.levels[at].is_ended {
            self.levels[at].end(&self.nested.levels[at]);
        }
    }

    /// Whether lists that were asked for together may have more rows than came.
    pub(crate) fn are_cut(&self) -> bool {
        let mut levels = self.nested.levels.iter().zip(&self.levels);
        self.is_cut || levels.any(|(of, level)| of.bound.is_some_and(|bound| bound <= level.n_rows))
    }

    /// All of the answer.
    pub(crate) fn page(mut self) -> Result<Page, NoAnswer> {
        let mut out = Vec::with_capacity(self.levels[0].json.len() + 64);
        let is_document = !self.nested.members.is_empty();
        if is_document {
            let within = Within { nested: self.nested, levels: &self.levels, first: 0 };
            out.push(b'{');
            within.members(&self.nested.members, &[], None, &mut out)?;
            out.push(b'}');
        }
        let list = self.levels[0].take_list();
        let (n_rows, more) = (list.n_rows, list.more);
        if is_document {
            return Ok(Page { json: out, n_rows, more, last: None, count: None });
        }
        self.levels[0].write(&list, &mut out);
        let counts = self.nested.levels.get(1).is_some_and(CompiledLevel::is_root_value);
        let count = self.levels.get(1).filter(|_| counts).map(Level::number).transpose()?;
        let last = (0 < n_rows && !list.position.is_empty()).then_some(list.position);
        Ok(Page { json: out, n_rows, more, last, count })
    }
}

/// The levels from the number `first` on, whose lists are complete.
struct Within<'a> {
    nested: &'a Nested,
    levels: &'a [Level],
    first: usize,
}

impl Within<'_> {
    /// The list of a level that belongs to the row around it with these values.
    fn list(&self, level: usize, values: &Values<'_>) -> Option<(&Level, &List)> {
        let of = self.nested.levels.get(level)?;
        let found = self.levels.get(level.checked_sub(self.first)?)?;
        found.list(&Key::of(values, &of.key_around)?).map(|list| (found, list))
    }

    /// Writes members, joined by commas. `shape`: of the row around them, if there is one.
    fn members(
        &self,
        members: &[Member],
        values: &Values<'_>,
        shape: Option<&Shape>,
        out: &mut Vec<u8>,
    ) -> Result<(), NoAnswer> {
        for (i, member) in members.iter().enumerate() {
            if 0 < i {
                out.push(b',');
            }
            self.member(member, values, shape, out)?;
        }
        Ok(())
    }

    fn member(
        &self,
        member: &Member,
        values: &Values<'_>,
        shape: Option<&Shape>,
        out: &mut Vec<u8>,
    ) -> Result<(), NoAnswer> {
        match member {
            Member::Column(at) => {
                let column = shape.and_then(|shape| shape.columns.get(*at));
                let column = column.ok_or(Malformed("a member without its column"))?;
                out.extend_from_slice(column.label.as_deref().unwrap_or_default().as_bytes());
                value(values[*at], &column.encoding, out)?;
            }
            Member::Constant(text) => out.extend_from_slice(text.as_bytes()),
            Member::Object { label, presence, members } => {
                out.extend_from_slice(label.as_bytes());
                match presence {
                    Some(column) if values[*column].is_none() => out.extend_from_slice(b"null"),
                    _ => {
                        out.push(b'{');
                        self.members(members, values, shape, out)?;
                        out.push(b'}');
                    }
                }
            }
            Member::List { label, level, more, count } => {
                let found = self.list(*level, values);
                self.array(label, found, out);
                if found.is_some_and(|(_, list)| list.more) {
                    out.push(b',');
                    out.extend_from_slice(more.as_bytes());
                    out.extend_from_slice(b"true");
                }
                if let Some((label, level)) = count {
                    out.push(b',');
                    self.count(label, *level, values, out);
                }
            }
            Member::Row { label, level } => {
                out.extend_from_slice(label.as_bytes());
                let first = self.list(*level, values).and_then(|(of, list)| of.first(list));
                out.extend_from_slice(first.unwrap_or(b"null"));
            }
            Member::Connection { label, parts } => {
                out.extend_from_slice(label.as_bytes());
                out.push(b'{');
                for (i, (label, part)) in parts.iter().enumerate() {
                    if 0 < i {
                        out.push(b',');
                    }
                    self.part(label, part, values, out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }

    fn part(
        &self,
        label: &str,
        part: &ConnectionPart,
        values: &Values<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), NoAnswer> {
        match part {
            ConnectionPart::Items(level) => self.array(label, self.list(*level, values), out),
            ConnectionPart::Count(level) => self.count(label, *level, values, out),
            ConnectionPart::Constant(json) => {
                out.extend_from_slice(label.as_bytes());
                out.extend_from_slice(json.as_bytes());
            }
            ConnectionPart::HasNextPage(level) => {
                out.extend_from_slice(label.as_bytes());
                let more = self.list(*level, values).is_some_and(|(_, list)| list.more);
                out.extend_from_slice(if more { b"true" } else { b"false" });
            }
            ConnectionPart::EndCursor(level) => {
                out.extend_from_slice(label.as_bytes());
                let last = self.list(*level, values).map(|(_, list)| &list.position);
                let binding = self.nested.levels.get(*level).and_then(|level| level.binding);
                match last.filter(|last| !last.is_empty()).zip(binding) {
                    Some((last, binding)) => end_cursor(&self.nested.cursors, binding, last, out)?,
                    None => out.extend_from_slice(b"null"),
                }
            }
        }
        Ok(())
    }

    fn array(&self, label: &str, found: Option<(&Level, &List)>, out: &mut Vec<u8>) {
        out.extend_from_slice(label.as_bytes());
        out.push(b'[');
        if let Some((level, list)) = found {
            level.write(list, out);
        }
        out.push(b']');
    }

    fn count(&self, label: &str, level: usize, values: &Values<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(label.as_bytes());
        match self.list(level, values) {
            Some((of, list)) => of.write(list, out),
            None => out.push(b'0'),
        }
    }
}

fn write_row(
    of: &CompiledLevel,
    values: &Values<'_>,
    within: &Within<'_>,
    out: &mut Vec<u8>,
) -> Result<(), NoAnswer> {
    if of.is_value {
        return value(values[0], &of.shape.columns[0].encoding, out);
    }
    out.push(b'{');
    if of.members.is_empty() {
        let mut is_first = true;
        for (column, it) in of.shape.columns.iter().zip(values) {
            let Some(label) = &column.label else { continue };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(label.as_bytes());
            value(*it, &column.encoding, out)?;
        }
    } else {
        within.members(&of.members, values, Some(&of.shape), out)?;
    }
    out.push(b'}');
    Ok(())
}

fn value(value: Option<&[u8]>, encoding: &Encoding, out: &mut Vec<u8>) -> Result<(), NoAnswer> {
    match value {
        None => out.extend_from_slice(b"null"),
        Some(value) => json::write(encoding, value, out)?,
    }
    Ok(())
}

fn end_cursor(
    cursors: &CursorKey,
    binding: cursor::Binding,
    last: &Position,
    out: &mut Vec<u8>,
) -> Result<(), NoAnswer> {
    let token = cursor::encode(cursors, binding, last);
    if cursor::MAX_TOKEN_LEN < token.len() {
        return Err(NoAnswer::TooLong);
    }
    out.push(b'"');
    out.extend_from_slice(token.as_bytes());
    out.push(b'"');
    Ok(())
}
