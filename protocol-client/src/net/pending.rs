//! The answer to one request that was sent.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use kafka_protocol::protocol::Decodable;

use crate::cluster::Reply;
use crate::error::Error;

/// Resolves to the decoded answer. Dropping it detaches: the request stays sent and the connection reads on.
#[derive(Debug)]
#[must_use = "the answer says whether the request succeeded"]
pub struct Pending<R> {
    version: i16,
    _response: PhantomData<fn() -> R>,
}

impl<R> Pending<R> {
    /// The version in which the request was sent.
    #[must_use]
    pub fn version(&self) -> i16 {
        self.version
    }
}

impl<R: Decodable> Future for Pending<R> {
    type Output = Result<Reply<R>, Error>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err(Error::Closed))
    }
}
