//! Why a request, or a part of it, was not done: Kafka's code and a sentence for the answer's `error_message`.

use kafka_protocol::ResponseError;

/// Kafka's code and what an operator should read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Kafka's error code.
    pub code: ResponseError,
    /// What failed and with what.
    pub message: String,
}

impl Refusal {
    /// A refusal with this code and sentence.
    pub fn new(code: ResponseError, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<ResponseError> for Refusal {
    fn from(code: ResponseError) -> Self {
        Self::new(code, code.to_string())
    }
}
