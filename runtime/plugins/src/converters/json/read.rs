//! JSON back into schemas and values.
//!
//! Stricter than Java's converter, which cuts a number to the width that its schema says: a number that does not fit is refused here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oncewire_api::converter::ConvertError;
use oncewire_api::record::logical;
use oncewire_api::{Decimal, Schema, SchemaBuilder, SchemaType, Struct, Text, Value};

use super::Rules;
use super::envelope::type_name;
use crate::converters::decimal::read_decimal;
use crate::json::{Json, parse};

const ALL_TYPES: [SchemaType; 12] = [
    SchemaType::Boolean,
    SchemaType::Int8,
    SchemaType::Int16,
    SchemaType::Int32,
    SchemaType::Int64,
    SchemaType::Float32,
    SchemaType::Float64,
    SchemaType::Bytes,
    SchemaType::String,
    SchemaType::Array,
    SchemaType::Map,
    SchemaType::Struct,
];

fn data(message: impl Into<String>) -> ConvertError {
    ConvertError::Data(message.into())
}

/// A schema from JSON text; `None` for null.
pub(super) fn schema_of_text(text: &[u8], rules: Rules) -> Result<Option<Schema>, ConvertError> {
    schema_of(&parse(text).map_err(|error| data(error.to_string()))?, rules)
}

/// A schema from JSON; `None` for null.
pub(super) fn schema_of(json: &Json<'_>, rules: Rules) -> Result<Option<Schema>, ConvertError> {
    if *json == Json::Null {
        return Ok(None);
    }
    let Some(Json::Text(name)) = json.member("type") else { return Err(data("schema has no 'type' that is text")) };
    let schema_type = ALL_TYPES.into_iter().find(|known| type_name(*known) == name);
    let schema_type = schema_type.ok_or_else(|| data(format!("schema has the unknown type '{name}'")))?;
    let mut builder = builder_of(schema_type, json, rules)?;
    match json.member("optional") {
        Some(Json::Bool(true)) => builder = builder.optional(),
        None | Some(Json::Null | Json::Bool(false)) => {}
        Some(other) => return Err(data(format!("'optional' of a schema is {}", other.kind()))),
    }
    if let Some(name) = text_member(json, "name")? {
        builder = builder.name(name);
    }
    match json.member("version") {
        None | Some(Json::Null) => {}
        Some(version) => builder = builder.version(whole_number(version)?),
    }
    if let Some(doc) = text_member(json, "doc")? {
        builder = builder.doc(doc);
    }
    if let Some(Json::Object(parameters)) = json.member("parameters") {
        for (key, value) in parameters {
            let Json::Text(value) = value else {
                return Err(data(format!("schema parameter '{key}' is {}", value.kind())));
            };
            builder = builder.parameter(&**key, &**value);
        }
    }
    let schema = built(builder)?;
    let Some(default) = json.member("default") else { return Ok(Some(schema)) };
    // A default is a value of the schema without it.
    match value_of(Some(&schema).filter(|_| *default != Json::Null), default, rules)? {
        Some(value) => Ok(Some(schema.with_default(value))),
        None => Ok(Some(schema)),
    }
}

fn built(builder: SchemaBuilder) -> Result<Schema, ConvertError> {
    builder.build().map_err(|error| data(error.to_string()))
}

fn text_member<'j>(json: &'j Json<'_>, name: &str) -> Result<Option<&'j str>, ConvertError> {
    match json.member(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(other) => Err(data(format!("'{name}' of a schema is {}, not text", other.kind()))),
    }
}

fn builder_of(schema_type: SchemaType, json: &Json<'_>, rules: Rules) -> Result<SchemaBuilder, ConvertError> {
    let inner = |name: &str| -> Result<Schema, ConvertError> {
        let member = json.member(name).ok_or_else(|| data(format!("schema of type {schema_type} has no '{name}'")))?;
        schema_of(member, rules)?.ok_or_else(|| data(format!("'{name}' of a schema is null")))
    };
    match schema_type {
        SchemaType::Array => Ok(Schema::array(inner("items")?)),
        SchemaType::Map => Ok(Schema::map(inner("keys")?, inner("values")?)),
        SchemaType::Struct => {
            let Some(Json::Array(fields)) = json.member("fields") else {
                return Err(data("struct schema has no list 'fields'"));
            };
            fields.iter().try_fold(Schema::structure(), |builder, field| {
                let name = text_member(field, "field")?
                    .ok_or_else(|| data("a field of a struct schema has no 'field' with its name"))?;
                let schema = schema_of(field, rules)?.ok_or_else(|| data("a field of a struct schema is null"))?;
                Ok(builder.field(name, schema))
            })
        }
        primitive => Ok(Schema::builder(primitive)),
    }
}

/// A value from JSON, by its schema or as it looks.
pub(super) fn value_of(schema: Option<&Schema>, json: &Json<'_>, rules: Rules) -> Result<Option<Value>, ConvertError> {
    let Some(schema) = schema else { return value_as_it_looks(json) };
    if *json == Json::Null {
        return match schema.default_value() {
            Some(default) if rules.replace_null_with_default => Ok(Some(default.clone())),
            _ if schema.is_optional() => Ok(None),
            _ => Err(data(format!("null where the schema says {} that is not optional", schema.schema_type()))),
        };
    }
    let value = match schema.name() {
        Some(logical::DECIMAL) => decimal_of(schema, json)?,
        Some(logical::DATE) => Value::Date(whole_number(json)?),
        Some(logical::TIME) => Value::Time(whole_number(json)?),
        Some(logical::TIMESTAMP) => Value::Timestamp(whole_number(json)?),
        _ => typed_value(schema, json, rules)?,
    };
    Ok(Some(value))
}

fn typed_value(schema: &Schema, json: &Json<'_>, rules: Rules) -> Result<Value, ConvertError> {
    Ok(match (schema.schema_type(), json) {
        (SchemaType::Boolean, Json::Bool(value)) => Value::Boolean(*value),
        (SchemaType::Int8, json) => Value::Int8(whole_number(json)?),
        (SchemaType::Int16, json) => Value::Int16(whole_number(json)?),
        (SchemaType::Int32, json) => Value::Int32(whole_number(json)?),
        (SchemaType::Int64, json) => Value::Int64(whole_number(json)?),
        (SchemaType::Float32, json) => Value::Float32(float(json)?),
        (SchemaType::Float64, json) => Value::Float64(float(json)?),
        (SchemaType::String, Json::Text(text)) => Value::Text(Text::from(&**text)),
        (SchemaType::Bytes, Json::Text(text)) => Value::Bytes(Bytes::from(base64_of(text)?)),
        (SchemaType::Array, Json::Array(items)) => {
            let element = schema.value_schema();
            Value::Array(items.iter().map(|item| value_of(element, item, rules)).collect::<Result<_, _>>()?)
        }
        (SchemaType::Map, json) => map_of(schema, json, rules)?,
        (SchemaType::Struct, Json::Object(_)) => {
            let mut value = Struct::new(schema.clone()).map_err(|error| data(error.to_string()))?;
            for field in schema.fields() {
                let member = json.member(&field.name).unwrap_or(&Json::Null);
                let read = value_of(Some(&field.schema), member, rules)
                    .map_err(|error| data(format!("field '{}': {error}", field.name)))?;
                value.put(&field.name, read).map_err(|error| data(error.to_string()))?;
            }
            Value::Struct(Box::new(value))
        }
        (schema_type, json) => return Err(data(format!("{} where the schema says {schema_type}", json.kind()))),
    })
}

fn map_of(schema: &Schema, json: &Json<'_>, rules: Rules) -> Result<Value, ConvertError> {
    let (keys, values) = (schema.key_schema(), schema.value_schema());
    let text_keys = keys.is_some_and(|keys| keys.schema_type() == SchemaType::String);
    let entries: Result<Vec<_>, ConvertError> = match json {
        Json::Object(members) if text_keys => members
            .iter()
            .map(|(key, value)| Ok((Some(Value::from(&**key)), value_of(values, value, rules)?)))
            .collect(),
        Json::Array(items) if !text_keys => items
            .iter()
            .map(|item| match item {
                Json::Array(pair) if pair.len() == 2 => {
                    Ok((value_of(keys, &pair[0], rules)?, value_of(values, &pair[1], rules)?))
                }
                other => Err(data(format!("an entry of a map is {}, not a pair", other.kind()))),
            })
            .collect(),
        other => Err(data(format!("{} where the schema says map", other.kind()))),
    };
    entries.map(Value::Map)
}

fn value_as_it_looks(json: &Json<'_>) -> Result<Option<Value>, ConvertError> {
    Ok(Some(match json {
        Json::Null => return Ok(None),
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(text) if text.contains(['.', 'e', 'E']) => Value::Float64(float(json)?),
        Json::Number(_) => Value::Int64(whole_number(json)?),
        Json::Text(text) => Value::from(&**text),
        Json::Array(items) => Value::Array(items.iter().map(value_as_it_looks).collect::<Result<_, _>>()?),
        Json::Object(members) => Value::Map(
            members
                .iter()
                .map(|(key, value)| Ok((Some(Value::from(&**key)), value_as_it_looks(value)?)))
                .collect::<Result<_, ConvertError>>()?,
        ),
    }))
}

fn whole_number<T: std::str::FromStr>(json: &Json<'_>) -> Result<T, ConvertError> {
    match json {
        Json::Number(text) => {
            text.parse().map_err(|_| data(format!("{text} is no whole number of the width that the schema says")))
        }
        other => Err(data(format!("{} where a whole number belongs", other.kind()))),
    }
}

/// NaN and the infinities are text, as the converter writes them.
fn float<T: std::str::FromStr>(json: &Json<'_>) -> Result<T, ConvertError> {
    let text = match json {
        Json::Number(text) => *text,
        Json::Text(text) if matches!(&**text, "NaN" | "Infinity" | "-Infinity") => text,
        other => return Err(data(format!("{} where a number belongs", other.kind()))),
    };
    text.parse().map_err(|_| data(format!("{text} is no number")))
}

fn base64_of(text: &str) -> Result<Vec<u8>, ConvertError> {
    STANDARD.decode(text).map_err(|error| data(format!("bytes are not base64: {error}")))
}

fn decimal_of(schema: &Schema, json: &Json<'_>) -> Result<Value, ConvertError> {
    let decimal = match json {
        Json::Number(text) => read_decimal(text).ok_or_else(|| data("a decimal is too long"))?,
        Json::Text(text) => {
            let scale = schema.parameter(logical::SCALE).and_then(|scale| scale.parse().ok());
            let scale = scale.ok_or_else(|| data("decimal schema has no parameter 'scale' that is a number"))?;
            Decimal::from_unscaled_bytes(&base64_of(text)?, scale)
        }
        other => return Err(data(format!("{} where the schema says decimal", other.kind()))),
    };
    Ok(Value::Decimal(Box::new(decimal)))
}
