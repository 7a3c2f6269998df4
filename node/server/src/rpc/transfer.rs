//! TransferService: whole graphs out and in.

mod delete_link;
mod export;
mod import;
mod list;

use std::sync::Arc;

use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use waggle_proto::wire::transfer_service_server::TransferService;
use waggle_proto::wire::{
    DeleteLinkReply, DeleteLinkRequest, ExportPage, ExportRequest, ImportPart, ImportReply, ListReply, ListRequest,
};

use crate::engine::Engine;

/// TransferService.
#[derive(Clone)]
pub(crate) struct TransferCalls {
    pub(crate) engine: Arc<Engine>,
}

#[tonic::async_trait]
impl TransferService for TransferCalls {
    type ExportStream = ReceiverStream<Result<ExportPage, Status>>;

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        Ok(Response::new(export::handle(&self.engine, request.into_inner()).await?))
    }

    async fn import(&self, request: Request<Streaming<ImportPart>>) -> Result<Response<ImportReply>, Status> {
        let started = self.engine.clock.monotonic();
        let result = import::handle(&self.engine, request.into_inner()).await;
        let spent = self.engine.clock.monotonic().saturating_sub(started);
        metrics::histogram!("waggle_node_call_duration_seconds", "call" => "import").record(spent.as_secs_f64());
        Ok(Response::new(result?))
    }

    async fn delete_link(&self, request: Request<DeleteLinkRequest>) -> Result<Response<DeleteLinkReply>, Status> {
        Ok(Response::new(
            delete_link::handle(&self.engine, request.into_inner()).await?,
        ))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListReply>, Status> {
        Ok(Response::new(list::handle(&self.engine, request.into_inner()).await?))
    }
}
