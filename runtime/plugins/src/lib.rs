//! Converters between the data model of Connect and bytes.
