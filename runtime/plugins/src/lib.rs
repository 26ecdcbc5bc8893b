//! Converters between the data model of Connect and bytes, the JSON of the internal topics, and config providers.
//!
//! One plug-in is one file under `converters/` and one line in [`converters`]. What a converter writes are the bytes that Kafka Connect's
//! own converter of that name writes; vectors recorded from it hold that (`tests/golden/json-converter`).

mod converters;
pub mod json;
pub mod providers;

pub use converters::{
    ByteArrayConverter, JsonConverter, PrimitiveConverter, PrimitiveType, SimpleHeaderConverter, StringConverter,
    converters,
};
