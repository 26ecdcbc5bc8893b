//! JSON as Kafka Connect writes it: text, numbers and the records of the offsets topic byte for byte, and a reader that keeps numbers as
//! they were written.
//!
//! The bytes matter where they are an identity: the key of an offset is compared, compacted and partitioned by its bytes.

mod number;
mod offsets;
mod parse;
mod text;

pub use number::{write_f32, write_f64, write_i64};
pub(crate) use number::{write_f32_bare, write_f64_bare};
pub use offsets::{
    OffsetJsonError, offset_key_bytes, offset_value_bytes, parse_offset_key, parse_offset_value, write_offset_key,
    write_offset_value,
};
pub use parse::{DEPTH_MAX, Json, JsonError, parse};
pub use text::{write_base64, write_text, write_text_bytes};
