//! How a message is laid out on the wire, as data: the vocabulary of the tables in `shapes`.
//!
//! A shape says what each field is and in which versions it is there, and how much memory
//! kafka-protocol takes for one element; the guard needs no more. Nullability is left out: the guard
//! lets a null pass wherever a length stands, and the decoder says where none is allowed.
//!
//! Source: the protocol guide's primitive types; KIP-482 for flexible versions and tagged fields.

use std::mem::size_of;

/// A message that has no flexible version.
pub(super) const NEVER: i16 = i16::MAX;

/// One request or response in all its versions.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    /// The versions that both Kafka and kafka-protocol have.
    pub(super) versions: (i16, i16),
    /// The first version with compact lengths and tagged fields.
    pub(super) flexible_since: i16,
    pub(super) body: Shape,
}

/// A message's body, or a struct within it.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) fields: &'static [Field],
    pub(super) tagged: &'static [Tagged],
    /// Bytes of the Rust struct that one of these becomes.
    pub(super) memory_bytes: usize,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) since: i16,
    pub(super) until: i16,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) struct Tagged {
    pub(super) tag: u32,
    pub(super) field: Field,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// This many bytes.
    Fixed(usize),
    /// `string` or `nullable_string`.
    String,
    /// `bytes` or `records`.
    Bytes,
    /// An array of numbers.
    Fixeds(usize),
    /// An array of strings.
    Strings,
    /// An array of structs.
    Array(&'static Shape),
    /// A struct in place.
    Struct(&'static Shape),
}

pub(super) const BOOL: Kind = Kind::Fixed(1);
pub(super) const INT8: Kind = Kind::Fixed(1);
pub(super) const INT16: Kind = Kind::Fixed(2);
pub(super) const INT32: Kind = Kind::Fixed(4);
pub(super) const INT64: Kind = Kind::Fixed(8);
pub(super) const UUID: Kind = Kind::Fixed(16);
pub(super) const STRING: Kind = Kind::String;
pub(super) const BYTES: Kind = Kind::Bytes;
pub(super) const INT32S: Kind = Kind::Fixeds(4);
pub(super) const INT64S: Kind = Kind::Fixeds(8);
pub(super) const STRINGS: Kind = Kind::Strings;

pub(super) const fn array(element: &'static Shape) -> Kind {
    Kind::Array(element)
}

pub(super) const fn structure(shape: &'static Shape) -> Kind {
    Kind::Struct(shape)
}

/// A field that is there from a version on.
pub(super) const fn since(version: i16, name: &'static str, kind: Kind) -> Field {
    between(version, i16::MAX, name, kind)
}

/// A field that is there in the versions from `since` to `until`, both included.
pub(super) const fn between(since: i16, until: i16, name: &'static str, kind: Kind) -> Field {
    Field { name, since, until, kind }
}

/// An optional field with a tag of its own.
pub(super) const fn tagged(tag: u32, version: i16, name: &'static str, kind: Kind) -> Tagged {
    Tagged { tag, field: since(version, name, kind) }
}

/// A struct that kafka-protocol decodes to `T`.
pub(super) const fn shape<T>(fields: &'static [Field], tagged: &'static [Tagged]) -> Shape {
    Shape { fields, tagged, memory_bytes: size_of::<T>() }
}

/// A whole message that kafka-protocol decodes to `T`.
pub(super) const fn message<T>(
    name: &'static str,
    oldest: i16,
    latest: i16,
    flexible_since: i16,
    fields: &'static [Field],
    tagged: &'static [Tagged],
) -> Message {
    Message { name, versions: (oldest, latest), flexible_since, body: shape::<T>(fields, tagged) }
}
