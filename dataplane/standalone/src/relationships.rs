//! `set-relationship`: writes manifests of Relationships, to standard output or into a folder of manifests.

mod draft;
mod folder;
mod foreign_keys;

pub(crate) use folder::write_new;
pub(crate) use foreign_keys::manifests as of_foreign_keys;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use rowgate_core::yaml;
use rowgate_crds::{Cardinality, Relationship, Tenant};
use rowgate_reconcile::source::SourceError;
use rowgate_reconcile::source::dir::Declared;

use crate::psql::PsqlError;
use crate::terminal::{print, say};

/// Exit code when nothing was written.
const MISTAKE: u8 = 2;

/// The flags of `set-relationship`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  rowgate-dataplane set-relationship --from orders.customer_id --to customers.id --inverse orders
  rowgate-dataplane set-relationship --from orders --to tags --through app.order_tags --manifests examples/shop
  rowgate-dataplane set-relationship --from-foreign-keys --tenant shop --manifests examples/shop
  rowgate-dataplane set-relationship --from orders.customer_id --to customers.id --tenant shop | kubectl apply -f -")]
pub struct SetRelationshipFlags {
    /// The entity where it starts, and its fields that are compared; without fields in --from and --to: the columns of the
    /// foreign key between both tables [example: orders.customer_id]
    #[arg(
        long,
        value_name = "ENTITY.FIELDS",
        required_unless_present = "from_foreign_keys",
        requires = "to"
    )]
    pub from: Option<String>,
    /// The entity where it leads, and as many of its fields, separated by commas [example: customers.id]
    #[arg(long, value_name = "ENTITY.FIELDS", requires = "from")]
    pub to: Option<String>,
    /// The table that links both, for many-to-many [example: app.order_tags]
    #[arg(long, value_name = "SCHEMA.TABLE", requires = "from")]
    pub through: Option<String>,
    /// Its name, a field of the entity where it starts [default: customer, of a field customer_id; else the entity where it leads]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub name: Option<String>,
    /// The name of the way back, a field of the entity where it leads [default: there is no way back]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub inverse: Option<String>,
    /// How many rows a row leads to [default: one; with --through many]
    #[arg(long, value_enum, ignore_case = true, requires = "from")]
    pub cardinality: Option<HowMany>,
    /// Take the first row by key where no unique index proves that there is one at most
    #[arg(long, requires = "from")]
    pub assume_unique: bool,
    /// One for each foreign key between two entities that no Relationship joins yet; standalone must be running
    #[arg(long, conflicts_with_all = ["from", "to", "through", "name", "inverse", "cardinality", "assume_unique"])]
    pub from_foreign_keys: bool,
    /// The Tenant's name [default: the only Tenant of --manifests or --state]
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Folder of manifests that it is added to, in a file of its own; it must be valid there [default: standard output]
    #[arg(long, value_name = "FOLDER")]
    pub manifests: Option<PathBuf>,
    /// State folder of the standalone Rowgate that serves the Tenant
    #[arg(long, env = "ROWGATE_STATE", value_name = "FOLDER", default_value = ".rowgate")]
    pub state: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HowMany {
    One,
    Many,
}

impl From<HowMany> for Cardinality {
    fn from(cardinality: HowMany) -> Cardinality {
        match cardinality {
            HowMany::One => Cardinality::One,
            HowMany::Many => Cardinality::Many,
        }
    }
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SetRelationshipError {
    #[error("{0}")]
    Mistakes(String),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Database(#[from] PsqlError),
    #[error("cannot read the foreign keys of the database: {0}")]
    ForeignKeys(#[source] rowgate_pg::failure::PgError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// Returns 2 when nothing was written.
pub fn run(flags: &SetRelationshipFlags) -> ExitCode {
    match written(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(MISTAKE)
        }
    }
}

fn written(flags: &SetRelationshipFlags) -> Result<(), SetRelationshipError> {
    let declared = match &flags.manifests {
        Some(folder) => Declared::in_manifests(folder)?,
        None => Declared::in_state(&flags.state)?,
    };
    let (tenant, known) = tenant(flags, &declared)?;
    let of_tenant = |it: &&Relationship| {
        it.spec.tenant_ref.name == tenant
            && known.is_none_or(|known| known.metadata.namespace == it.metadata.namespace)
    };
    let others: Vec<&Relationship> = declared.relationships.iter().filter(of_tenant).collect();
    let drafts = match (&flags.from, &flags.to) {
        (Some(from), Some(to)) => vec![draft::of_flags(flags, from, to)?],
        _ => {
            let known = known.ok_or_else(|| unknown(&tenant, flags, &declared))?;
            let drafts = foreign_keys::drafts(&flags.state, known, &others)?;
            if drafts.is_empty() {
                say("every foreign key between two entities has its Relationship; nothing was written");
                return Ok(());
            }
            drafts
        }
    };
    let manifests = drafts
        .iter()
        .map(|draft| draft.manifest(&tenant, known, &others))
        .collect::<Result<Vec<_>, SetRelationshipError>>()?;
    match &flags.manifests {
        Some(dir) => folder::add(dir, &drafts, &manifests),
        None => {
            let texts: Vec<String> = manifests.iter().map(yaml::document_of).collect();
            print(&texts.join("---\n"));
            Ok(())
        }
    }
}

/// The Tenant's name, and the Tenant where it is declared.
fn tenant<'d>(
    flags: &SetRelationshipFlags,
    declared: &'d Declared,
) -> Result<(String, Option<&'d Tenant>), SetRelationshipError> {
    let named = |tenant: &&Tenant| tenant.metadata.name.as_deref() == flags.tenant.as_deref();
    match (&flags.tenant, &declared.tenants[..]) {
        (Some(name), tenants) => match tenants.iter().find(named) {
            None if flags.manifests.is_some() => Err(unknown(name, flags, declared)),
            found => Ok((name.clone(), found)),
        },
        (None, [only]) => Ok((only.metadata.name.clone().unwrap_or_default(), Some(only))),
        (None, []) => Err(SetRelationshipError::Mistakes(format!(
            "no Tenant is declared in {}; name the Relationship's Tenant with --tenant",
            place(flags)
        ))),
        (None, several) => Err(SetRelationshipError::Mistakes(format!(
            "{} has {} Tenants; choose one with --tenant: {}",
            place(flags),
            several.len(),
            names(several)
        ))),
    }
}

fn unknown(tenant: &str, flags: &SetRelationshipFlags, declared: &Declared) -> SetRelationshipError {
    let known = match &declared.tenants[..] {
        [] => "no Tenant is declared there".to_owned(),
        tenants => format!("declared there: {}", names(tenants)),
    };
    SetRelationshipError::Mistakes(format!("there is no Tenant {tenant} in {}; {known}", place(flags)))
}

fn place(flags: &SetRelationshipFlags) -> String {
    let folder = flags.manifests.as_ref().unwrap_or(&flags.state);
    format!("the folder {}", folder.display())
}

fn names(tenants: &[Tenant]) -> String {
    let names: Vec<&str> = tenants.iter().filter_map(|it| it.metadata.name.as_deref()).collect();
    names.join(", ")
}
