//! The files of the page, read once: only what stood in the folder then has an address.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;

/// By name. There are no folders among them.
pub(super) struct Assets(BTreeMap<String, (Bytes, &'static str)>);

impl Assets {
    /// Or what a person does to have them.
    pub(super) fn read(folder: Option<&Path>) -> Result<Assets, String> {
        const REMEDY: &str =
            "run make console in a checkout of Rowgate, and give --console the folder that it prints";
        let Some(folder) = folder else {
            return Err(format!("The console has no files to show: {REMEDY}."));
        };
        let failed =
            |why: String| format!("The console has no files to show: {}: {why}; {REMEDY}.", folder.display());
        let files = files(folder).map_err(|error| failed(error.to_string()))?;
        match files.contains_key("index.html") {
            true => Ok(Assets(files)),
            false => Err(failed("it holds no index.html".to_owned())),
        }
    }

    /// The bytes of a file, and their media type.
    pub(super) fn find(&self, name: &str) -> Option<(Bytes, &'static str)> {
        self.0.get(name).cloned()
    }
}

impl fmt::Debug for Assets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files", self.0.len())
    }
}

fn files(folder: &Path) -> io::Result<BTreeMap<String, (Bytes, &'static str)>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        // no other kind of file belongs to a page
        let Some((name, media)) = name.and_then(|name| media_type(&name).map(|media| (name, media))) else {
            continue;
        };
        files.insert(name, (Bytes::from(fs::read(&path)?), media));
    }
    Ok(files)
}

fn media_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "ttf" => "font/ttf",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_page_says_what_to_do() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for missing in [None, Some(folder.path()), Some(Path::new("/nowhere/at/all"))] {
            let why = Assets::read(missing).expect_err("there is no page");
            assert!(why.contains("make console") && why.contains("--console"), "{why}");
        }
        fs::write(folder.path().join("index.html"), "<p>").expect("the folder is ours");
        fs::write(folder.path().join("secret.key"), "x").expect("the folder is ours");
        let assets = Assets::read(Some(folder.path())).expect("there is a page");
        assert_eq!(assets.find("index.html").map(|(bytes, _)| bytes), Some(Bytes::from("<p>")));
        for name in ["secret.key", "", "..", "../index.html", "/index.html", "INDEX.HTML"] {
            assert!(assets.find(name).is_none(), "{name}");
        }
    }
}
