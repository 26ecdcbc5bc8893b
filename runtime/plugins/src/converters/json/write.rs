//! A value as JSON.

use oncewire_api::converter::ConvertError;
use oncewire_api::record::logical;
use oncewire_api::{Decimal, Schema, SchemaType, Struct, Value};

use super::{DEPTH_MAX, DecimalFormat, Rules};
use crate::converters::decimal::write_decimal;
use crate::json::{write_base64, write_f32, write_f64, write_i64, write_text, write_text_bytes};

pub(super) fn write_value(
    schema: Option<&Schema>,
    value: Option<&Value>,
    rules: Rules,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    let Some(value) = value else { return write_null(schema, rules, depth, out) };
    if let Some(schema) = schema {
        match schema.name() {
            Some(name @ (logical::DECIMAL | logical::DATE | logical::TIME | logical::TIMESTAMP)) => {
                return write_logical(name, schema, value, rules, out);
            }
            _ if schema.schema_type() != value.schema_type() => {
                let message = format!("value is {}, but its schema says {}", value.kind(), schema.schema_type());
                return Err(ConvertError::Value(message));
            }
            _ => {}
        }
    }
    match value {
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int8(number) => write_i64(i64::from(*number), out),
        Value::Int16(number) => write_i64(i64::from(*number), out),
        Value::Int32(number) => write_i64(i64::from(*number), out),
        Value::Int64(number) => write_i64(*number, out),
        Value::Float32(number) => write_f32(*number, out),
        Value::Float64(number) => write_f64(*number, out),
        Value::Text(text) => write_text_bytes(text.as_bytes(), out),
        Value::Bytes(bytes) => write_base64(bytes, out),
        Value::Array(items) => write_array(schema, items, rules, depth, out)?,
        Value::Map(entries) => write_map(schema, entries, rules, depth, out)?,
        Value::Struct(value) => write_struct(schema, value, rules, depth, out)?,
        Value::Decimal(_) | Value::Date(_) | Value::Time(_) | Value::Timestamp(_) => {
            let message = format!("a {} needs a schema with the name of its logical type", value.kind());
            return Err(ConvertError::Value(message));
        }
    }
    Ok(())
}

pub(super) fn too_deep() -> ConvertError {
    ConvertError::Value(format!("value is nested deeper than {DEPTH_MAX}"))
}

fn write_null(schema: Option<&Schema>, rules: Rules, depth: usize, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    match schema {
        Some(schema) if rules.replace_null_with_default && schema.default_value().is_some() => {
            write_value(Some(schema), schema.default_value(), rules, depth + 1, out)
        }
        Some(schema) if !schema.is_optional() => {
            let message = format!(
                "value is null, but its schema says {} that is not optional and has no default",
                schema.schema_type()
            );
            Err(ConvertError::Value(message))
        }
        _ => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

fn write_logical(
    name: &str,
    schema: &Schema,
    value: &Value,
    rules: Rules,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    match (name, value) {
        (logical::DECIMAL, Value::Decimal(decimal)) => write_decimal_value(schema, decimal, rules, out)?,
        (logical::DATE, Value::Date(number)) | (logical::TIME, Value::Time(number)) => {
            write_i64(i64::from(*number), out)
        }
        (logical::TIMESTAMP, Value::Timestamp(number)) => write_i64(*number, out),
        _ => return Err(ConvertError::Value(format!("value is {}, but its schema says {name}", value.kind()))),
    }
    Ok(())
}

fn write_decimal_value(
    schema: &Schema,
    decimal: &Decimal,
    rules: Rules,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    if rules.decimal_format == DecimalFormat::Numeric {
        return write_decimal(decimal, out);
    }
    let scale = schema.parameter(logical::SCALE).and_then(|text| text.parse::<i32>().ok());
    if scale != Some(decimal.scale) {
        let expected = scale.map_or_else(|| "none".into(), |scale| scale.to_string());
        let message = format!("decimal has scale {}, but its schema says {expected}", decimal.scale);
        return Err(ConvertError::Value(message));
    }
    write_base64(decimal.unscaled_bytes(), out);
    Ok(())
}

fn write_array(
    schema: Option<&Schema>,
    items: &[Option<Value>],
    rules: Rules,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    let element = schema.and_then(Schema::value_schema);
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(element, item.as_ref(), rules, depth + 1, out)?;
    }
    out.push(b']');
    Ok(())
}

/// With text as keys an object, else a list of pairs.
fn write_map(
    schema: Option<&Schema>,
    entries: &[(Option<Value>, Option<Value>)],
    rules: Rules,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    let (key_schema, value_schema) = (schema.and_then(Schema::key_schema), schema.and_then(Schema::value_schema));
    let as_object = match key_schema {
        Some(key) => key.schema_type() == SchemaType::String,
        None => entries.iter().all(|(key, _)| matches!(key, Some(Value::Text(_)))),
    };
    out.push(if as_object { b'{' } else { b'[' });
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if as_object {
            let Some(Value::Text(key)) = key else {
                let kind = key.as_ref().map_or("null", Value::kind);
                return Err(ConvertError::Value(format!("key of a map is {kind}, but its schema says string")));
            };
            write_text_bytes(key.as_bytes(), out);
            out.push(b':');
            write_value(value_schema, value.as_ref(), rules, depth + 1, out)?;
        } else {
            out.push(b'[');
            write_value(key_schema, key.as_ref(), rules, depth + 1, out)?;
            out.push(b',');
            write_value(value_schema, value.as_ref(), rules, depth + 1, out)?;
            out.push(b']');
        }
    }
    out.push(if as_object { b'}' } else { b']' });
    Ok(())
}

fn write_struct(
    schema: Option<&Schema>,
    value: &Struct,
    rules: Rules,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    if schema != Some(value.schema()) {
        return Err(ConvertError::Value("the schema of a struct is not the one that it was made with".into()));
    }
    out.push(b'{');
    for (index, (field, value)) in value.schema().fields().iter().zip(value.values()).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(&field.name, out);
        out.push(b':');
        write_value(Some(&field.schema), value.as_ref(), rules, depth + 1, out)
            .map_err(|error| in_field(&field.name, error))?;
    }
    out.push(b'}');
    Ok(())
}

fn in_field(name: &str, error: ConvertError) -> ConvertError {
    ConvertError::Value(format!("field '{name}': {error}"))
}
