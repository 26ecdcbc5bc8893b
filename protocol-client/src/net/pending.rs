//! The answer to one request that was sent.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::Decodable;
use tokio::sync::oneshot;

use super::codec;
use crate::cluster::{NodeId, Reply};
use crate::error::Error;

/// Resolves to the decoded answer. Dropping it detaches: the request stays sent and the connection reads on.
#[derive(Debug)]
#[must_use = "the answer says whether the request succeeded"]
pub struct Pending<R> {
    answer: oneshot::Receiver<Result<Bytes, Error>>,
    api: ApiKey,
    version: i16,
    node: Option<NodeId>,
    peer: String,
    _response: PhantomData<fn() -> R>,
}

impl<R> Pending<R> {
    pub(super) fn new(
        answer: oneshot::Receiver<Result<Bytes, Error>>,
        api: ApiKey,
        version: i16,
        node: Option<NodeId>,
        peer: String,
    ) -> Self {
        Self { answer, api, version, node, peer, _response: PhantomData }
    }

    /// The version in which the request was sent.
    #[must_use]
    pub fn version(&self) -> i16 {
        self.version
    }
}

impl<R: Decodable> Future for Pending<R> {
    type Output = Result<Reply<R>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let frame = match Pin::new(&mut self.answer).poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(Ok(frame))) => frame,
            Poll::Ready(Ok(Err(error))) => return Poll::Ready(Err(error)),
            // The connection's task tells everybody before it ends, unless its runtime or its owner dropped it.
            Poll::Ready(Err(_)) => return Poll::Ready(Err(Error::Closed)),
        };
        let decoded = codec::decode_response(self.api, self.version, frame);
        Poll::Ready(match decoded {
            Ok(body) => Ok(Reply { body, version: self.version, node: self.node }),
            Err(error) => Err(Error::Malformed { peer: self.peer.clone(), what: error.to_string() }),
        })
    }
}
