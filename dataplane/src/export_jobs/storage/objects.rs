//! Files as objects below one path of a bucket. While one is uploaded, `<id>.<fence>.part` holds the id of the upload, so that any
//! replica can end what another left behind.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::{Method, Signer};
use object_store::{Error, ObjectStore, ObjectStoreExt as _, Result};

use super::location::Location;
use super::{Found, PART, parsed};

/// The id of an upload is no longer, in bytes.
const MAX_UPLOAD_ID: u64 = 16 << 10;

#[derive(Debug, Clone)]
pub(crate) struct Objects {
    location: Location,
    pub(super) store: Arc<dyn ObjectStore>,
    signer: Arc<dyn Signer>,
    pub(super) uploads: Uploads,
}

/// How a file of several parts is uploaded.
#[derive(Clone)]
pub(super) enum Uploads {
    /// Under an id, with which what is left of it can be removed.
    ById(Arc<dyn MultipartStore>),
    /// Azure: parts belong to the object, and those of an upload that broke off go by themselves.
    Whole,
}

impl Objects {
    pub(super) fn new(
        location: Location,
        store: Arc<dyn ObjectStore>,
        signer: Arc<dyn Signer>,
        uploads: Uploads,
    ) -> Objects {
        Objects { location, store, signer, uploads }
    }

    pub(super) fn url(&self) -> &Location {
        &self.location
    }

    pub(super) fn whole(&self, id: &str, fence: i32) -> Path {
        self.location.object(&format!("{id}.{fence}"))
    }

    pub(super) fn part(&self, id: &str, fence: i32) -> Path {
        self.location.object(&format!("{id}.{fence}{PART}"))
    }

    /// Where the file can be read without credentials for so long, by this method alone.
    pub(crate) async fn link(&self, id: &str, fence: i32, method: Method, life: Duration) -> Result<String> {
        Ok(self.signer.signed_url(method, &self.whole(id, fence), life).await?.into())
    }

    /// Whether an object can be written and removed. Asked once, so that a mistake is known before the first job.
    pub(crate) async fn probe(&self, replica: &str) -> Result<()> {
        let path = self.location.object(&format!(".probe-{replica}"));
        self.store.put(&path, "probe".into()).await?;
        self.store.delete(&path).await
    }

    pub(super) async fn remove(&self, id: &str, fence: i32) {
        for removed in [self.end_upload(id, fence).await, self.delete(&self.whole(id, fence)).await] {
            if let Err(error) = removed {
                tracing::warn!(%error, "an object of an export cannot be removed");
            }
        }
    }

    /// Ends the upload of an attempt, if it has begun one that has not ended.
    async fn end_upload(&self, id: &str, fence: i32) -> Result<()> {
        let part = self.part(id, fence);
        if let Uploads::ById(uploads) = &self.uploads {
            let upload = match self.store.get(&part).await {
                Err(Error::NotFound { .. }) => return Ok(()),
                found => found?,
            };
            // what is longer was not written by us
            if upload.meta.size <= MAX_UPLOAD_ID {
                let upload = String::from_utf8_lossy(&upload.bytes().await?).into_owned();
                match uploads.abort_multipart(&self.whole(id, fence), &upload).await {
                    // it has been completed, or ended
                    Ok(()) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.delete(&part).await
    }

    pub(super) async fn delete(&self, path: &Path) -> Result<()> {
        match self.store.delete(path).await {
            Err(Error::NotFound { .. }) => Ok(()),
            deleted => deleted,
        }
    }

    pub(super) async fn list(&self) -> Result<Found> {
        let listed = self.store.list(Some(self.location.prefix()));
        let files = listed.try_filter_map(async |object| {
            // what stands deeper is not ours
            let is_below = object.location.prefix_matches(self.location.prefix());
            let mut below = object.location.parts().skip(self.location.prefix().parts().count());
            let name = below.next().filter(|_| is_below && below.next().is_none());
            Ok(name.and_then(|name| parsed(name.as_ref())))
        });
        files.try_collect().await
    }

    pub(super) async fn lacks(&self, id: &str, fence: i32) -> bool {
        matches!(self.store.head(&self.whole(id, fence)).await, Err(Error::NotFound { .. }))
    }
}

/// Whether a write failed because of object storage, which may take it another time.
pub(in crate::export_jobs) fn is_of_storage(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Error>())
}

impl std::fmt::Debug for Uploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Uploads::ById(_) => "ById",
            Uploads::Whole => "Whole",
        })
    }
}
