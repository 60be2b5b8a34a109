//! async-graphql validates a document and executes it, unless it is asked for the first alone.

use std::sync::Arc;

use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute};
use async_graphql::{Response, async_trait};

/// In the data of a request: it is executed. Only introspection has values to give.
pub(crate) struct Introspects;

/// The extension that leaves execution out.
pub(super) struct ValidateOnly;

impl ExtensionFactory for ValidateOnly {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(ValidateOnly)
    }
}

#[async_trait::async_trait]
impl Extension for ValidateOnly {
    async fn execute(
        &self,
        ctx: &ExtensionContext<'_>,
        operation_name: Option<&str>,
        next: NextExecute<'_>,
    ) -> Response {
        match ctx.data_opt::<Introspects>() {
            Some(_) => next.run(ctx, operation_name).await,
            None => Response::default(),
        }
    }
}
