//! One object, written from a thread that may block: what fits into one part is put at its end, what is longer in parts of one size,
//! two of which are on their way while the next is filled.

use std::io::{self, Write};
use std::sync::Arc;

use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, MultipartUpload, ObjectStoreExt as _, PutMultipartOptions, PutOptions,
    PutPayload, Result,
};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::objects::{Objects, Uploads};
use super::{disposition, media_type};

/// Of each part but the last. S3 takes 5 MiB and more, R2 only parts of one size.
const PART_LEN: usize = 8 << 20;
/// S3 takes no more of one object.
const MAX_PARTS: usize = 10_000;
/// Parts on their way at a time.
const UNDER_WAY: usize = 2;

pub(in crate::export_jobs) struct Upload {
    objects: Objects,
    whole: Path,
    /// What is there while the object is not.
    part: Path,
    attributes: Attributes,
    runtime: Handle,
    filling: Vec<u8>,
    n_bytes: u64,
    begun: Option<Begun>,
}

/// An upload of several parts.
struct Begun {
    parts: Parts,
    n_parts: usize,
    under_way: JoinSet<Result<Option<(usize, PartId)>>>,
    put: Vec<(usize, PartId)>,
}

enum Parts {
    ById(Arc<dyn MultipartStore>, String),
    Whole(Box<dyn MultipartUpload>),
}

impl Upload {
    pub(super) fn new(objects: Objects, id: &str, fence: i32, name: &str) -> Upload {
        let attributes = Attributes::from_iter([
            (Attribute::ContentDisposition, disposition(name)),
            (Attribute::ContentType, media_type(name).to_owned()),
        ]);
        Upload {
            whole: objects.whole(id, fence),
            part: objects.part(id, fence),
            objects,
            attributes,
            runtime: Handle::current(),
            filling: Vec::new(),
            n_bytes: 0,
            begun: None,
        }
    }

    /// The object is there as a whole once this returns. Gives its length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        let runtime = self.runtime.clone();
        runtime.block_on(self.end()).map_err(io::Error::other)?;
        Ok(self.n_bytes)
    }

    async fn end(&mut self) -> Result<()> {
        let last = std::mem::take(&mut self.filling);
        let Some(mut begun) = self.begun.take() else {
            let options = PutOptions { attributes: self.attributes.clone(), ..PutOptions::default() };
            self.objects.store.put_opts(&self.whole, last.into(), options).await?;
            return Ok(());
        };
        if !last.is_empty() {
            begun.put(&self.whole, last.into());
        }
        begun.wait(0).await?;
        match &mut begun.parts {
            Parts::ById(store, upload) => {
                begun.put.sort_by_key(|(n, _)| *n);
                let put = begun.put.drain(..).map(|(_, part)| part).collect();
                store.complete_multipart(&self.whole, upload, put).await?;
            }
            Parts::Whole(upload) => _ = upload.complete().await?,
        }
        if let Err(error) = self.objects.delete(&self.part).await {
            // it goes with the object
            tracing::debug!(%error, "the note of a finished upload cannot be removed");
        }
        Ok(())
    }

    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        let begun = match &mut self.begun {
            Some(begun) => begun,
            none => {
                none.insert(begin(&self.objects, &self.whole, &self.part, self.attributes.clone()).await?)
            }
        };
        begun.wait(UNDER_WAY - 1).await?;
        begun.put(&self.whole, bytes.into());
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filling.capacity() == 0 {
            // a small file needs no room for a part
            self.filling.reserve(bytes.len().max(PART_LEN >> 5));
        }
        let taken = bytes.len().min(PART_LEN - self.filling.len());
        self.filling.extend_from_slice(&bytes[..taken]);
        self.n_bytes += taken as u64;
        if self.filling.len() == PART_LEN {
            if self.begun.as_ref().is_some_and(|begun| begun.n_parts + 1 == MAX_PARTS) {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let full = std::mem::replace(&mut self.filling, Vec::with_capacity(PART_LEN));
            let runtime = self.runtime.clone();
            runtime.block_on(self.put(full)).map_err(io::Error::other)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn begin(objects: &Objects, whole: &Path, part: &Path, attributes: Attributes) -> Result<Begun> {
    let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
    let parts = match &objects.uploads {
        Uploads::ById(store) => {
            let upload = store.create_multipart_opts(whole, options).await?;
            // before the first part, so that nothing is left behind that could not be found
            objects.store.put(part, upload.clone().into_bytes().into()).await?;
            Parts::ById(store.clone(), upload)
        }
        Uploads::Whole => Parts::Whole(objects.store.put_multipart_opts(whole, options).await?),
    };
    Ok(Begun { parts, n_parts: 0, under_way: JoinSet::new(), put: Vec::new() })
}

impl Begun {
    fn put(&mut self, whole: &Path, bytes: PutPayload) {
        let n = self.n_parts;
        self.n_parts += 1;
        match &mut self.parts {
            Parts::ById(store, upload) => {
                let (store, whole, upload) = (store.clone(), whole.clone(), upload.clone());
                self.under_way.spawn(async move {
                    let part = store.put_part(&whole, &upload, n, bytes).await?;
                    Ok(Some((n, part)))
                });
            }
            Parts::Whole(upload) => {
                let put = upload.put_part(bytes);
                self.under_way.spawn(async move {
                    put.await?;
                    Ok(None)
                });
            }
        }
    }

    /// Until at most so many parts are on their way.
    async fn wait(&mut self, at_most: usize) -> Result<()> {
        while at_most < self.under_way.len() {
            if let Some(put) = self.under_way.join_next().await {
                self.put.extend(put.map_err(|source| Error::JoinError { source })??);
            }
        }
        Ok(())
    }
}
