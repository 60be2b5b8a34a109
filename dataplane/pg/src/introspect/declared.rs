//! Functions and procedures as the database declares them, and what of them a request can call.

use std::collections::{BTreeMap, HashMap};

use rowgate_sql::catalog::{
    FieldType, Mode, Operators, Output, Param, Returns, Routine, RoutineKind, Structures, Volatility,
};
use rowgate_sql::text::Ident;
use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use crate::catalog::kind;
use crate::failure::PgError;

/// One row of `pg_proc`, with what its types are made of below domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub kind: Kind,
    /// SECURITY DEFINER.
    pub definer: bool,
    /// Names in its body mean the same whoever calls it: it has a `search_path` of its own, or PostgreSQL read the body
    /// when it was made (`begin atomic`, `return`).
    pub settled: bool,
    pub language: String,
    /// Nobody gets out of the database by this language.
    pub trusted: bool,
    pub set: bool,
    pub strict: bool,
    pub volatility: Volatility,
    /// In declared order.
    pub arguments: Vec<Argument>,
    pub result: DeclaredType,
    /// Of a composite result: its columns.
    pub columns: Vec<(String, DeclaredType)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Function,
    Procedure,
    Aggregate,
    Window,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// `None`: it has none.
    pub name: Option<String>,
    pub mode: ArgMode,
    pub has_default: bool,
    pub ty: DeclaredType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgMode {
    In,
    InOut,
    Out,
    Variadic,
    /// A column of `returns table`.
    Table,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredType {
    pub oid: u32,
    /// As `format_type` writes it.
    pub name: String,
    /// Below domains.
    pub base_oid: u32,
    /// `pg_type.typtype` below domains, with `a` for arrays; `p` are pseudo-types.
    pub base_kind: char,
}

/// Why no request can call a routine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    Aggregate,
    Window,
    /// It returns `trigger` or `event_trigger`.
    Trigger,
    Variadic,
    /// The language, which is not trusted.
    Language(String),
    /// The number of a parameter without a name, from 1.
    Unnamed(usize),
    /// The parameter and its type, which no value outside SQL has.
    Parameter(String, String),
    /// The same of the result.
    Result(String),
    /// `returns record`, without a word on its columns.
    Record,
}

impl Declared {
    /// What a call takes and gives, in the database's own names. `typed` says how values of a type are read.
    pub fn callable(&self, typed: &dyn Fn(&DeclaredType) -> FieldType) -> Result<Routine, Obstacle> {
        let kind = match self.kind {
            Kind::Function => RoutineKind::Function,
            Kind::Procedure => RoutineKind::Procedure,
            Kind::Aggregate => return Err(Obstacle::Aggregate),
            Kind::Window => return Err(Obstacle::Window),
        };
        if !self.trusted {
            return Err(Obstacle::Language(self.language.clone()));
        }
        if self.result.is(TRIGGER) || self.result.is(EVENT_TRIGGER) {
            return Err(Obstacle::Trigger);
        }
        let mut params = Vec::new();
        let mut outputs = Vec::new();
        for (i, argument) in self.arguments.iter().enumerate() {
            let mode = match argument.mode {
                ArgMode::In => Some(Mode::In),
                ArgMode::InOut => Some(Mode::InOut),
                ArgMode::Out => (kind == RoutineKind::Procedure).then_some(Mode::Out),
                ArgMode::Variadic => return Err(Obstacle::Variadic),
                ArgMode::Table => None,
            };
            let name = argument.name.as_ref().and_then(Ident::new).ok_or(Obstacle::Unnamed(i + 1))?;
            if argument.ty.base_kind == 'p' {
                return Err(Obstacle::Parameter(name.as_str().to_owned(), argument.ty.name.clone()));
            }
            let (exposed, ty) = (name.as_str().to_owned(), typed(&argument.ty));
            if argument.mode.is_given() {
                outputs.push(Output { name: exposed.clone(), column: name.clone(), ty: ty.clone() });
            }
            if let Some(mode) = mode {
                let has_default = argument.has_default;
                params.push(Param { name: exposed, argument: name, ty, mode, has_default });
            }
        }
        let outputs = match self.result.base_kind {
            _ if kind == RoutineKind::Procedure => outputs,
            'p' if self.result.is(VOID) => Vec::new(),
            'p' if !self.result.is(RECORD) => return Err(Obstacle::Result(self.result.name.clone())),
            'p' if outputs.is_empty() => return Err(Obstacle::Record),
            'p' => outputs,
            'c' => {
                let columns = self.columns.iter().filter_map(|(name, ty)| output(name, typed(ty)));
                columns.collect()
            }
            // its only OUT parameter, or without one the function, gives the value its name
            _ if outputs.len() == 1 => outputs,
            _ => output(&self.name, typed(&self.result)).into_iter().collect(),
        };
        let returns = match (outputs.is_empty(), self.set) {
            (true, _) => Returns::Nothing,
            (false, true) => Returns::Rows(outputs),
            (false, false) => Returns::Row(outputs),
        };
        Ok(Routine { kind, params, returns, strict: self.strict, volatility: self.volatility })
    }
}

fn output(name: &str, ty: FieldType) -> Option<Output> {
    Some(Output { name: name.to_owned(), column: Ident::new(name)?, ty })
}

impl ArgMode {
    fn is_given(self) -> bool {
        matches!(self, ArgMode::InOut | ArgMode::Out | ArgMode::Table)
    }

    fn is_taken(self) -> bool {
        matches!(self, ArgMode::In | ArgMode::InOut | ArgMode::Variadic)
    }
}

const VOID: u32 = 2278;
const RECORD: u32 = 2249;
const TRIGGER: u32 = 2279;
const EVENT_TRIGGER: u32 = 3838;

impl DeclaredType {
    fn is(&self, oid: u32) -> bool {
        self.base_oid == oid
    }

    /// As values of it are read and written; nothing of a call is compared.
    #[must_use]
    pub fn field(&self, structures: &Structures) -> FieldType {
        FieldType {
            oid: self.oid,
            name: self.name.clone(),
            kind: kind(&self.base_kind.to_string()),
            base_oid: self.base_oid,
            operators: Operators::Nowhere,
            nested: structures.nested(self.oid),
        }
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    oid: Oid,
    schema: String,
    name: String,
    kind: String,
    definer: bool,
    settled: bool,
    language: String,
    trusted: bool,
    set: bool,
    strict: bool,
    volatility: String,
    n_defaults: i16,
}

#[derive(sqlx::FromRow)]
struct PartRow {
    routine: Oid,
    /// As `pg_proc.proargmodes`; `r` the result, `c` a column of it.
    mode: String,
    name: Option<String>,
    type_oid: Oid,
    type_name: String,
    base_oid: Oid,
    base_kind: String,
}

/// The routines of these oids, by oid. Type names are spelled for the search path of the caller's transaction.
pub(crate) async fn routines(
    conn: &mut PgConnection,
    oids: &[Oid],
) -> Result<BTreeMap<u32, Declared>, PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "select p.oid, n.nspname::text as schema, p.proname::text as name, p.prokind::text as kind, p.prosecdef as definer,
                p.prosqlbody is not null or exists (
                    select from pg_catalog.unnest(p.proconfig) c where c like 'search\\_path=%') as settled,
                l.lanname::text as language, l.lanpltrusted as trusted, p.proretset as set, p.proisstrict as strict,
                p.provolatile::text as volatility, p.pronargdefaults as n_defaults
         from pg_catalog.pg_proc p
         join pg_catalog.pg_namespace n on n.oid = p.pronamespace
         join pg_catalog.pg_language l on l.oid = p.prolang
         where p.oid = any ($1)",
    )
    .bind(oids)
    .fetch_all(&mut *conn)
    .await?;
    let parts: Vec<PartRow> = sqlx::query_as(
        "with recursive routine as (
             select * from pg_catalog.pg_proc where oid = any ($1)
         ), result as (
             select r.oid as routine, t.oid, t.typtype, t.typbasetype, t.typrelid
             from routine r join pg_catalog.pg_type t on t.oid = r.prorettype
             union all
             select r.routine, t.oid, t.typtype, t.typbasetype, t.typrelid
             from result r join pg_catalog.pg_type t on t.oid = r.typbasetype
             where r.typtype = 'd'
         ), part as (
             select r.oid as routine, a.position, coalesce(r.proargmodes[a.position]::text, 'i') as mode,
                    nullif(r.proargnames[a.position], '') as name, a.type
             from routine r
             cross join pg_catalog.unnest(coalesce(r.proallargtypes, r.proargtypes::oid[]))
                        with ordinality a (type, position)
             union all
             select oid, 0, 'r', null, prorettype from routine
             union all
             select r.routine, a.attnum, 'c', a.attname::text, a.atttypid
             from result r join pg_catalog.pg_attribute a on a.attrelid = r.typrelid
             where r.typtype = 'c' and a.attnum > 0 and not a.attisdropped
         ), base as (
             select t.oid as type, t.oid, t.typtype, t.typbasetype, t.typsubscript
             from pg_catalog.pg_type t where t.oid in (select type from part)
             union all
             select b.type, t.oid, t.typtype, t.typbasetype, t.typsubscript
             from base b join pg_catalog.pg_type t on t.oid = b.typbasetype
             where b.typtype = 'd'
         )
         select p.routine, p.mode, p.name, p.type as type_oid, pg_catalog.format_type(p.type, null) as type_name,
                b.oid as base_oid,
                case when b.typsubscript::oid = 'pg_catalog.array_subscript_handler'::regproc::oid then 'a'
                     else b.typtype::text end as base_kind
         from part p
         join base b on b.type = p.type and b.typtype <> 'd'
         order by p.routine, p.position",
    )
    .bind(oids)
    .fetch_all(conn)
    .await?;
    let mut by_routine: HashMap<u32, Vec<PartRow>> = HashMap::new();
    for part in parts {
        by_routine.entry(part.routine.0).or_default().push(part);
    }
    rows.into_iter()
        .map(|row| Ok((row.oid.0, declared(&row, by_routine.remove(&row.oid.0).unwrap_or_default())?)))
        .collect()
}

fn declared(row: &Row, parts: Vec<PartRow>) -> Result<Declared, PgError> {
    let (mut arguments, mut columns, mut result) = (Vec::new(), Vec::new(), None);
    for part in parts {
        let ty = DeclaredType {
            oid: part.type_oid.0,
            name: part.type_name,
            base_oid: part.base_oid.0,
            base_kind: part.base_kind.chars().next().unwrap_or('p'),
        };
        let mode = match part.mode.as_str() {
            "i" => ArgMode::In,
            "b" => ArgMode::InOut,
            "o" => ArgMode::Out,
            "v" => ArgMode::Variadic,
            "t" => ArgMode::Table,
            "r" => {
                result = Some(ty);
                continue;
            }
            "c" => {
                columns.push((part.name.unwrap_or_default(), ty));
                continue;
            }
            other => return Err(PgError::unexpected(format!("a parameter of mode {other}"))),
        };
        arguments.push(Argument { name: part.name, mode, has_default: false, ty });
    }
    // the last of those that are taken have defaults
    let taken = arguments.iter_mut().rev().filter(|argument| argument.mode.is_taken());
    let n_defaults = usize::try_from(row.n_defaults).unwrap_or(0);
    taken.take(n_defaults).for_each(|argument| argument.has_default = true);
    Ok(Declared {
        oid: row.oid.0,
        schema: row.schema.clone(),
        name: row.name.clone(),
        kind: match row.kind.as_str() {
            "f" => Kind::Function,
            "p" => Kind::Procedure,
            "a" => Kind::Aggregate,
            "w" => Kind::Window,
            other => return Err(PgError::unexpected(format!("a routine of kind {other}"))),
        },
        definer: row.definer,
        settled: row.settled,
        language: row.language.clone(),
        trusted: row.trusted,
        set: row.set,
        strict: row.strict,
        volatility: match row.volatility.as_str() {
            "i" => Volatility::Immutable,
            "s" => Volatility::Stable,
            _ => Volatility::Volatile,
        },
        arguments,
        result: result.ok_or_else(|| PgError::unexpected("a routine without a result type"))?,
        columns,
    })
}
