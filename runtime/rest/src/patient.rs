//! A stream that gives up on a peer which does not read: a write that makes no way for too long is an error.
//!
//! hyper limits how long a request's head may take; without this, a client that never reads its answer would hold a connection for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a write may make no way.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream with a limit for its writes.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S) -> Self {
        Patient { stream, deadline: Box::pin(sleep_until(Instant::now())), waiting: false }
    }

    /// Passes progress on; turns waiting for too long into an error.
    fn limit<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = false;
            return polled;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + WRITE_TIMEOUT);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.limit(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limit(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_given_up_on() {
        let (ours, _theirs) = duplex(4);
        let error = Patient::new(ours).write_all(b"more than four").await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
