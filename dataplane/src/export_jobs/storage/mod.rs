//! Where the files of exports are: a folder, or object storage. A file is whole or not there; what is being written beside it has a
//! name that ends with `.part`, so that what an attempt left behind when it died is found and removed.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use rowgate_core::name::Ulid;

use folder::Folder;
use objects::Objects;
use upload::Upload;

pub(crate) mod folder;
mod http;
pub(crate) mod location;
pub(crate) mod objects;
mod upload;

const PART: &str = ".part";
/// Bytes that are held before a file gets them.
const BUFFER: usize = 256 << 10;

/// Ids and fences of files, whole or not.
pub(super) type Found = HashSet<(String, i32)>;

/// Where the files go, as a setting says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageConfig {
    Folder(PathBuf),
    Objects(location::Location),
}

/// Why there is no place for files.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("--exports-dir: cannot write to the folder {}: {source}; name a folder that you can write to", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("--exports-url: {0}; its credentials come from the environment, such as AWS_ACCESS_KEY_ID")]
    Objects(#[source] object_store::Error),
}

#[derive(Debug, Clone)]
pub(crate) enum Storage {
    Folder(Folder),
    Objects(Objects),
}

/// A file that is being written.
pub(super) enum Writer {
    File(BufWriter<File>),
    Upload(Box<Upload>),
}

impl Storage {
    pub(super) fn open(place: &StorageConfig) -> Result<Storage, StorageError> {
        match place {
            StorageConfig::Folder(path) => {
                let folder = Folder::open(path);
                let folder = folder.map_err(|source| StorageError::Folder { path: path.clone(), source });
                folder.map(Storage::Folder)
            }
            StorageConfig::Objects(location) => {
                location.open().map(Storage::Objects).map_err(StorageError::Objects)
            }
        }
    }

    /// An empty file to write to, which is called `name` where it is downloaded. Only for threads that may block.
    pub(super) fn begin(&self, id: &str, fence: i32, name: &str) -> io::Result<Writer> {
        match self {
            Storage::Folder(folder) => {
                let file = BufWriter::with_capacity(BUFFER, folder.begin(id, fence)?);
                Ok(Writer::File(file))
            }
            Storage::Objects(objects) => {
                Ok(Writer::Upload(Box::new(Upload::new(objects.clone(), id, fence, name))))
            }
        }
    }

    /// The file is whole: from here on it can be given out. Returns its length. Only for threads that may block.
    pub(super) fn finish(&self, id: &str, fence: i32, writer: Writer) -> io::Result<u64> {
        match (self, writer) {
            (Storage::Folder(folder), Writer::File(file)) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                folder.finish(id, fence, &file)
            }
            (_, Writer::Upload(upload)) => upload.finish(),
            (Storage::Objects(_), Writer::File(_)) => Err(io::Error::other("a file of another storage")),
        }
    }

    /// Removes what an attempt has written, if it has. What fails is logged, and tried again by the next sweep.
    pub(super) async fn remove(&self, id: &str, fence: i32) {
        match self {
            Storage::Folder(folder) => folder.remove(id, fence),
            Storage::Objects(objects) => objects.remove(id, fence).await,
        }
    }

    /// All files, whole or not.
    pub(super) async fn list(&self) -> io::Result<Found> {
        match self {
            Storage::Folder(folder) => folder.list(),
            Storage::Objects(objects) => objects.list().await.map_err(io::Error::other),
        }
    }

    /// Whether there is no whole file; `false` where it cannot be told.
    pub(super) async fn lacks(&self, id: &str, fence: i32) -> bool {
        match self {
            Storage::Folder(folder) => matches!(folder.read(id, fence), Ok(None)),
            Storage::Objects(objects) => objects.lacks(id, fence).await,
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::File(file) => file.write(bytes),
            Writer::Upload(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Writer::File(file) => file.flush(),
            Writer::Upload(upload) => upload.flush(),
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Folder(_) => f.write_str("--exports-dir"),
            Storage::Objects(objects) => write!(f, "--exports-url {}", objects.url()),
        }
    }
}

/// Which job and attempt a file is of; `None`: it is not ours.
fn parsed(name: &str) -> Option<(String, i32)> {
    let (id, fence) = name.strip_suffix(PART).unwrap_or(name).split_once('.')?;
    id.parse::<Ulid>().ok()?;
    Some((id.to_owned(), fence.parse().ok()?))
}

/// What a browser does with the file.
pub(crate) fn disposition(name: &str) -> String {
    format!("attachment; filename=\"{name}\"")
}

/// By the ending of its name.
pub(crate) fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv") => "text/csv; charset=utf-8; header=present",
        Some("jsonl") => "application/x-ndjson",
        Some("parquet") => "application/vnd.apache.parquet",
        Some("gz") => "application/gzip",
        Some("zst") => "application/zstd",
        _ => "application/octet-stream",
    }
}
