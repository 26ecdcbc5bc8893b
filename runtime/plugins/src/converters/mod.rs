//! The converters, one file each, and the list of them.

mod byte_array;
mod decimal;
mod json;
mod primitive;
mod simple_header;
mod string;

use oncewire_api::plugin::{Plugin, PluginFactory};

pub use byte_array::ByteArrayConverter;
pub use json::JsonConverter;
pub use primitive::{PrimitiveConverter, PrimitiveType};
pub use simple_header::SimpleHeaderConverter;
pub use string::StringConverter;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The converters of this crate, for the worker's registry.
pub fn converters() -> Vec<Plugin> {
    let plugin = |class, summary, factory| Plugin { class, version: VERSION, summary, factory };
    vec![
        plugin(
            "org.apache.kafka.connect.json.JsonConverter",
            "JSON, with the schema in each record or without",
            PluginFactory::Converter(|| Box::new(JsonConverter::default())),
        ),
        plugin(
            "org.apache.kafka.connect.storage.StringConverter",
            "text",
            PluginFactory::Converter(|| Box::new(StringConverter::default())),
        ),
        plugin(
            "org.apache.kafka.connect.converters.ByteArrayConverter",
            "bytes, unchanged",
            PluginFactory::Converter(|| Box::new(ByteArrayConverter)),
        ),
        plugin(
            "org.apache.kafka.connect.converters.BooleanConverter",
            "a boolean in one byte",
            PluginFactory::Converter(|| Box::new(PrimitiveConverter::new(PrimitiveType::Boolean))),
        ),
        plugin(
            "org.apache.kafka.connect.converters.ShortConverter",
            "a 16-bit number, big-endian",
            PluginFactory::Converter(|| Box::new(PrimitiveConverter::new(PrimitiveType::Short))),
        ),
        plugin(
            "org.apache.kafka.connect.converters.IntegerConverter",
            "a 32-bit number, big-endian",
            PluginFactory::Converter(|| Box::new(PrimitiveConverter::new(PrimitiveType::Integer))),
        ),
        plugin(
            "org.apache.kafka.connect.converters.LongConverter",
            "a 64-bit number, big-endian",
            PluginFactory::Converter(|| Box::new(PrimitiveConverter::new(PrimitiveType::Long))),
        ),
        plugin(
            "org.apache.kafka.connect.converters.FloatConverter",
            "a 32-bit floating-point number, big-endian",
            PluginFactory::Converter(|| Box::new(PrimitiveConverter::new(PrimitiveType::Float))),
        ),
        plugin(
            "org.apache.kafka.connect.converters.DoubleConverter",
            "a 64-bit floating-point number, big-endian",
            PluginFactory::Converter(|| Box::new(PrimitiveConverter::new(PrimitiveType::Double))),
        ),
        plugin(
            "org.apache.kafka.connect.storage.SimpleHeaderConverter",
            "header values as text; the default for headers",
            PluginFactory::HeaderConverter(|| Box::new(SimpleHeaderConverter)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use oncewire_api::plugin::PluginRegistry;

    use super::*;

    #[test]
    fn each_converter_answers_to_its_three_names() {
        let registry = PluginRegistry::new(converters());
        for name in [
            "org.apache.kafka.connect.json.JsonConverter",
            "JsonConverter",
            "Json",
            "String",
            "ByteArrayConverter",
            "Long",
        ] {
            assert!(registry.converter(name).is_ok(), "{name}");
        }
        assert!(registry.header_converter("SimpleHeaderConverter").is_ok());
        assert!(registry.header_converter("StringConverter").is_ok(), "converters serve for headers too");
        assert!(registry.converter("SimpleHeaderConverter").is_err(), "but not the other way round");
    }
}
