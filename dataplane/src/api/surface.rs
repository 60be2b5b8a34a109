//! Which surfaces a replica serves: a deployment may give each of them replicas and an address of its own.

/// A part of the API that has a public address of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Rows, their schema, and what is asked of them: `/auth/{tenant}/...`.
    Data,
    /// Tokens for keys.
    Auth,
    /// What runs longer than a request: `/api/ddl/...`.
    Ddl,
}

/// Those that a replica serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surfaces {
    data: bool,
    auth: bool,
    ddl: bool,
}

impl Surfaces {
    pub const ALL: Surfaces = Surfaces { data: true, auth: true, ddl: true };

    /// Names, separated by commas, at least one.
    pub fn parse(text: &str) -> Result<Surfaces, String> {
        let mut surfaces = Surfaces { data: false, auth: false, ddl: false };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "data" => surfaces.data = true,
                "auth" => surfaces.auth = true,
                "ddl" => surfaces.ddl = true,
                other => return Err(format!("{other:?} is not a surface; give some of data, auth and ddl")),
            }
        }
        match surfaces == (Surfaces { data: false, auth: false, ddl: false }) {
            true => Err("names no surface; give some of data, auth and ddl, separated by commas".to_owned()),
            false => Ok(surfaces),
        }
    }

    #[must_use]
    pub fn has(self, surface: Surface) -> bool {
        match surface {
            Surface::Data => self.data,
            Surface::Auth => self.auth,
            Surface::Ddl => self.ddl,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surfaces_are_named_and_one_at_least() {
        assert_eq!(Surfaces::parse("data, auth,ddl"), Ok(Surfaces::ALL));
        let data = Surfaces::parse("data").expect("a surface");
        assert!(data.has(Surface::Data) && !data.has(Surface::Auth) && !data.has(Surface::Ddl));
        assert!(Surfaces::parse("data,rest").expect_err("unheard of").contains("\"rest\""));
        assert!(Surfaces::parse(" , ").is_err());
    }
}
