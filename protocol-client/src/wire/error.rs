//! What can be wrong with bytes on the wire or with the versions that two sides speak.

use std::fmt;

use kafka_protocol::messages::ApiKey;

/// An error of the wire layer, by whose fault it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// Peer: a frame larger than this side accepts.
    FrameTooLarge {
        /// The size that the frame declares.
        size: u32,
        /// The limit on this side.
        limit: usize,
    },
    /// Peer: a frame with a negative length or one too small for its header.
    FrameTooShort {
        /// The size that the frame declares.
        size: i32,
    },
    /// Peer: bytes of another protocol where a frame's length should be.
    NotKafka {
        /// The protocol that they look like.
        looks_like: &'static str,
    },
    /// Peer: a message that doesn't have the shape of its API and version.
    Malformed {
        /// Kafka's name of the message.
        message: &'static str,
        /// The message's version.
        version: i16,
        /// The field at which the walk ended.
        field: &'static str,
        /// What doesn't fit.
        problem: Problem,
    },
    /// Peer: a message of the right shape with a value that doesn't decode (a string that isn't
    /// UTF-8, a null where none may be).
    Undecodable {
        /// The API.
        api: ApiKey,
        /// The message's version.
        version: i16,
        /// The decoder's words.
        reason: String,
    },
    /// Peer: a request for an API that doesn't exist here.
    UnknownApi {
        /// The number in the request.
        key: i16,
    },
    /// Configuration: the broker doesn't offer an API that is needed.
    ApiNotOffered {
        /// The API.
        api: ApiKey,
    },
    /// Configuration: the broker and this client share no version of an API.
    NoCommonVersion {
        /// The API.
        api: ApiKey,
        /// What this client speaks, oldest and latest.
        ours: (i16, i16),
        /// What the broker offers, oldest and latest.
        theirs: (i16, i16),
    },
    /// A version of an API that this side doesn't read.
    UnsupportedVersion {
        /// The API.
        api: ApiKey,
        /// The version.
        version: i16,
    },
    /// Our bug: a message that doesn't encode in the version it was meant for.
    Unencodable {
        /// The API.
        api: ApiKey,
        /// The version.
        version: i16,
        /// The encoder's words.
        reason: String,
    },
}

/// What doesn't fit in a malformed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// A field reaches past the end of the message.
    Truncated,
    /// An array declares more elements than there are bytes left.
    TooManyElements {
        /// The declared count.
        declared: usize,
        /// Bytes left in the message.
        left: usize,
    },
    /// A length below −1, which is null.
    NegativeLength {
        /// The length.
        declared: i32,
    },
    /// A variable-length number wider than 32 bits.
    OverlongVarint,
    /// A tag that is not greater than the one before it.
    TagOutOfOrder {
        /// The tag.
        tag: u32,
    },
    /// A tagged field whose content isn't as long as its size says.
    TagSize {
        /// The tag.
        tag: u32,
    },
    /// More unknown tags in one place than any version of Kafka has.
    TooManyTags {
        /// The limit.
        limit: usize,
    },
    /// Decoded, the message would take far more memory than its size.
    TooMuchMemory,
    /// Bytes follow the message.
    BytesAfterTheEnd {
        /// How many.
        left: usize,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameTooLarge { size, limit } => {
                write!(f, "a frame of {size} bytes exceeds the limit of {limit}")
            }
            Self::FrameTooShort { size } => write!(f, "a frame of {size} bytes has no room for a header"),
            Self::NotKafka { looks_like } => write!(
                f,
                "the peer speaks {looks_like}, not the plain Kafka protocol; check the port and security.protocol"
            ),
            Self::Malformed { message, version, field, problem } => {
                write!(f, "malformed {message} version {version} at {field}: {problem}")
            }
            Self::Undecodable { api, version, reason } => {
                write!(f, "undecodable {api:?} message version {version}: {reason}")
            }
            Self::UnknownApi { key } => write!(f, "unknown API key {key}"),
            Self::ApiNotOffered { api } => write!(f, "the broker does not offer {api:?}"),
            Self::NoCommonVersion { api, ours, theirs } => write!(
                f,
                "no common version of {api:?}: this client speaks {} to {}, the broker {} to {}",
                ours.0, ours.1, theirs.0, theirs.1
            ),
            Self::UnsupportedVersion { api, version } => {
                write!(f, "version {version} of {api:?} is not supported")
            }
            Self::Unencodable { api, version, reason } => {
                write!(f, "cannot encode {api:?} version {version}: {reason}")
            }
        }
    }
}

impl std::error::Error for WireError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "it reaches past the end"),
            Self::TooManyElements { declared, left } => {
                write!(f, "{declared} elements are declared and {left} bytes are left")
            }
            Self::NegativeLength { declared } => write!(f, "length {declared}"),
            Self::OverlongVarint => write!(f, "a varint wider than 32 bits"),
            Self::TagOutOfOrder { tag } => write!(f, "tag {tag} is out of order"),
            Self::TagSize { tag } => write!(f, "tag {tag} is not as long as it says"),
            Self::TooManyTags { limit } => write!(f, "more than {limit} unknown tags"),
            Self::TooMuchMemory => write!(f, "it would take far more memory than its size"),
            Self::BytesAfterTheEnd { left } => write!(f, "{left} bytes follow the message"),
        }
    }
}
