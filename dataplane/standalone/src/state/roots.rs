//! Root secrets: files of mode 0600 in the state folder, generated when they do not exist.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rowgate_core::derive::Root;

/// Reads the root in `path`.
pub fn load(path: &Path) -> io::Result<Root> {
    let text = fs::read_to_string(path)?;
    Root::from_hex(&text).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Reads the root in `path`, or generates one. A file that holds no root is an error and is never replaced: everything
/// derived from the root would be lost.
pub fn load_or_make(path: &Path) -> io::Result<Root> {
    match load(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let root = Root::new(rand::random());
            write_private(path, &format!("{}\n", root.reveal_hex()))?;
            Ok(root)
        }
        loaded => loaded,
    }
}

/// Writes a file that only its owner can read, completely or not at all.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_added_extension("new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_root_is_made_once_private_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operator.root");
        let made = load_or_make(&path).unwrap();
        assert_eq!(load_or_make(&path).unwrap().fingerprint(), made.fingerprint());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        fs::write(&path, "half a ro").unwrap();
        assert!(load_or_make(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "half a ro");
    }
}
