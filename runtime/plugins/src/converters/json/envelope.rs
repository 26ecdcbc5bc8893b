//! A schema as JSON: `type`, its content, `optional`, `name`, `version`, `doc`, `parameters`, `default`, and in a struct last `field`.

use oncewire_api::converter::ConvertError;
use oncewire_api::{Schema, SchemaType};

use super::write::{too_deep, write_value};
use super::{DEPTH_MAX, Rules};
use crate::json::{write_i64, write_text};

/// The name of a type in the envelope.
pub(super) fn type_name(schema_type: SchemaType) -> &'static str {
    match schema_type {
        SchemaType::Float32 => "float",
        SchemaType::Float64 => "double",
        other => other.name(),
    }
}

pub(super) fn write_schema(
    schema: &Schema,
    field: Option<&str>,
    rules: Rules,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    out.extend_from_slice(b"{\"type\":");
    write_text(type_name(schema.schema_type()), out);
    match (schema.schema_type(), schema.key_schema(), schema.value_schema()) {
        (SchemaType::Map, Some(keys), Some(values)) => {
            out.extend_from_slice(b",\"keys\":");
            write_schema(keys, None, rules, depth + 1, out)?;
            out.extend_from_slice(b",\"values\":");
            write_schema(values, None, rules, depth + 1, out)?;
        }
        (SchemaType::Array, _, Some(items)) => {
            out.extend_from_slice(b",\"items\":");
            write_schema(items, None, rules, depth + 1, out)?;
        }
        (SchemaType::Struct, _, _) => {
            out.extend_from_slice(b",\"fields\":[");
            for (index, field) in schema.fields().iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_schema(&field.schema, Some(&field.name), rules, depth + 1, out)?;
            }
            out.push(b']');
        }
        _ => {}
    }
    out.extend_from_slice(if schema.is_optional() { b",\"optional\":true" } else { b",\"optional\":false" });
    write_annotations(schema, rules, depth, out)?;
    if let Some(field) = field {
        out.extend_from_slice(b",\"field\":");
        write_text(field, out);
    }
    out.push(b'}');
    Ok(())
}

fn write_annotations(schema: &Schema, rules: Rules, depth: usize, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    if let Some(name) = schema.name() {
        out.extend_from_slice(b",\"name\":");
        write_text(name, out);
    }
    if let Some(version) = schema.version() {
        out.extend_from_slice(b",\"version\":");
        write_i64(version.into(), out);
    }
    if let Some(doc) = schema.doc() {
        out.extend_from_slice(b",\"doc\":");
        write_text(doc, out);
    }
    if schema.parameters().len() > 0 {
        out.extend_from_slice(b",\"parameters\":");
        for (index, (key, value)) in schema.parameters().enumerate() {
            out.push(if index == 0 { b'{' } else { b',' });
            write_text(key, out);
            out.push(b':');
            write_text(value, out);
        }
        out.push(b'}');
    }
    if let Some(default) = schema.default_value() {
        out.extend_from_slice(b",\"default\":");
        write_value(Some(schema), Some(default), rules, depth + 1, out)?;
    }
    Ok(())
}
