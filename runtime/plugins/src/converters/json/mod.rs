//! JsonConverter: JSON with the schema in each record (`{"schema":…,"payload":…}`) or without.
//!
//! Null without a schema is Kafka's null, a tombstone; null of an optional schema is JSON's null (KAFKA-3832, KAFKA-4183). The bytes are
//! those of Kafka's own converter, which golden vectors hold.

mod envelope;
mod read;
mod write;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use oncewire_api::config_def::Width;
use oncewire_api::converter::{ConvertError, Converter, ConverterUse, Presence, SchemaAndValue};
use oncewire_api::{ConfigDef, ConfigKey, ConfigProblem, ConfigType, Importance, Properties, Schema, Validator, Value};

use crate::json::{Json, parse};

const SCHEMAS_ENABLE: &str = "schemas.enable";
const SCHEMAS_CACHE_SIZE: &str = "schemas.cache.size";
const SCHEMA_CONTENT: &str = "schema.content";
const DECIMAL_FORMAT: &str = "decimal.format";
const REPLACE_NULL_WITH_DEFAULT: &str = "replace.null.with.default";

/// How deep values and schemas may nest: what our reader takes, less the envelope.
const DEPTH_MAX: usize = crate::json::DEPTH_MAX - 8;

/// How decimals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DecimalFormat {
    /// The unscaled number as base64; the scale is in the schema.
    #[default]
    Base64,
    /// A JSON number.
    Numeric,
}

/// What the parts of the converter need to know.
#[derive(Clone, Copy, Debug)]
struct Rules {
    decimal_format: DecimalFormat,
    replace_null_with_default: bool,
}

/// JSON, with the schema in each record or without.
#[derive(Debug)]
pub struct JsonConverter {
    schemas_enabled: bool,
    rules: Rules,
    /// The schema of everything that is read, in place of the envelope's.
    content_schema: Option<Schema>,
    cache: Mutex<EnvelopeCache>,
}

impl Default for JsonConverter {
    fn default() -> Self {
        Self {
            schemas_enabled: true,
            rules: Rules { decimal_format: DecimalFormat::Base64, replace_null_with_default: true },
            content_schema: None,
            cache: Mutex::new(EnvelopeCache::new(1000)),
        }
    }
}

impl Converter for JsonConverter {
    fn config_def(&self) -> ConfigDef {
        use ConfigType::{Boolean, Int, String};
        use Importance::{High, Low};
        let schemas =
            |key: ConfigKey, order, name| key.group("Schemas").order(order).width(Width::Medium).display_name(name);
        let serialization = |key: ConfigKey, order, name| {
            key.group("Serialization").order(order).width(Width::Medium).display_name(name)
        };
        let key = ConfigKey::with_default;
        ConfigDef::new()
            .define(schemas(
                key(SCHEMAS_ENABLE, Boolean, "true", High, "Whether each key and value carries its schema."),
                0,
                "Enable Schemas",
            ))
            .define(schemas(
                key(SCHEMAS_CACHE_SIZE, Int, "1000", High, "How many schemas are remembered in their JSON form."),
                1,
                "Schema Cache Size",
            ))
            .define(schemas(
                ConfigKey::optional(
                    SCHEMA_CONTENT,
                    String,
                    High,
                    "The schema, in JSON, of all data that is read without one. A source does not read, so it has no effect there.",
                ),
                2,
                "Schema Content",
            ))
            .define(serialization(
                key(
                    DECIMAL_FORMAT,
                    String,
                    "BASE64",
                    Low,
                    "How decimals are written: BASE64 as bytes, NUMERIC as a JSON number.",
                )
                .validator(Validator::one_of_ignoring_case(&["NUMERIC", "BASE64"])),
                0,
                "Decimal Format",
            ))
            .define(serialization(
                key(
                    REPLACE_NULL_WITH_DEFAULT,
                    Boolean,
                    "true",
                    Low,
                    "Whether the default of a schema is written where the value is null.",
                ),
                1,
                "Replace null with default",
            ))
    }

    fn configure(&mut self, properties: &Properties, _converter_use: ConverterUse) -> Result<(), Vec<ConfigProblem>> {
        let config = self.config_def().parse(properties)?;
        let one = |problem| vec![problem];
        self.schemas_enabled = config.boolean(SCHEMAS_ENABLE).map_err(one)?;
        let numeric = config.text(DECIMAL_FORMAT).map_err(one)?.eq_ignore_ascii_case("NUMERIC");
        self.rules.decimal_format = if numeric { DecimalFormat::Numeric } else { DecimalFormat::Base64 };
        self.rules.replace_null_with_default = config.boolean(REPLACE_NULL_WITH_DEFAULT).map_err(one)?;
        // Java takes any number; one below 0 remembers nothing.
        let remembered = usize::try_from(config.int(SCHEMAS_CACHE_SIZE).map_err(one)?).unwrap_or(0);
        self.cache = Mutex::new(EnvelopeCache::new(remembered));
        self.content_schema = match config.optional_text(SCHEMA_CONTENT).map_err(one)? {
            None | Some("") => None,
            Some(text) => read::schema_of_text(text.as_bytes(), self.rules).map_err(|error| {
                vec![ConfigProblem::Conflict {
                    key: SCHEMA_CONTENT.into(),
                    message: format!("it is no schema: {error}"),
                }]
            })?,
        };
        Ok(())
    }

    fn from_connect(
        &self,
        _topic: &str,
        schema: Option<&Schema>,
        value: Option<&Value>,
        out: &mut Vec<u8>,
    ) -> Result<Presence, ConvertError> {
        if schema.is_none() && value.is_none() {
            return Ok(Presence::Null);
        }
        if !self.schemas_enabled {
            write::write_value(schema, value, self.rules, 0, out)?;
            return Ok(Presence::Bytes);
        }
        match schema {
            None => out.extend_from_slice(br#"{"schema":null,"payload":"#),
            Some(schema) => out.extend_from_slice(&self.envelope(schema)?),
        }
        write::write_value(schema, value, self.rules, 0, out)?;
        out.push(b'}');
        Ok(Presence::Bytes)
    }

    fn to_connect(&self, _topic: &str, data: Option<&Bytes>) -> Result<SchemaAndValue, ConvertError> {
        let Some(bytes) = data else { return Ok(SchemaAndValue::default()) };
        let json = parse(bytes).map_err(|error| ConvertError::Data(error.to_string()))?;
        let (schema, payload) = match (self.schemas_enabled, &self.content_schema, &json) {
            (false, _, json) => (None, json),
            (true, Some(schema), json) => (Some(schema.clone()), json),
            (true, None, Json::Object(members)) if members.len() == 2 => {
                let (Some(schema), Some(payload)) = (json.member("schema"), json.member("payload")) else {
                    return Err(no_envelope());
                };
                (read::schema_of(schema, self.rules)?, payload)
            }
            (true, None, _) => return Err(no_envelope()),
        };
        let value = read::value_of(schema.as_ref(), payload, self.rules)?;
        Ok(SchemaAndValue { schema, value })
    }
}

fn no_envelope() -> ConvertError {
    let message = "JsonConverter with schemas.enable=true reads an object of exactly 'schema' and 'payload'; for plain JSON set schemas.enable=false";
    ConvertError::Data(message.into())
}

impl JsonConverter {
    /// `{"schema":…,"payload":` of a schema, from the cache if it is there.
    fn envelope(&self, schema: &Schema) -> Result<Arc<[u8]>, ConvertError> {
        // The cache holds only complete entries, so it is right even after a panic elsewhere.
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(schema) {
            return Ok(known);
        }
        let mut out = br#"{"schema":"#.to_vec();
        envelope::write_schema(schema, None, self.rules, 0, &mut out)?;
        out.extend_from_slice(br#","payload":"#);
        let head: Arc<[u8]> = out.into();
        cache.insert(schema.clone(), Arc::clone(&head));
        Ok(head)
    }
}

/// The JSON form of schemas, by address: an entry holds its schema, so that no other can take the address. When it is full the oldest goes.
#[derive(Debug)]
struct EnvelopeCache {
    size_max: usize,
    entries: HashMap<usize, (Schema, Arc<[u8]>)>,
    oldest_first: VecDeque<usize>,
    /// The entry of the last look-up, which is the next one too in nearly all batches.
    last: Option<(usize, Arc<[u8]>)>,
}

impl EnvelopeCache {
    fn new(size_max: usize) -> Self {
        Self { size_max, entries: HashMap::new(), oldest_first: VecDeque::new(), last: None }
    }

    fn get(&mut self, schema: &Schema) -> Option<Arc<[u8]>> {
        let address = schema.address();
        if let Some((last, head)) = &self.last
            && *last == address
        {
            return Some(Arc::clone(head));
        }
        let head = self.entries.get(&address).map(|(_, head)| Arc::clone(head))?;
        self.last = Some((address, Arc::clone(&head)));
        Some(head)
    }

    fn insert(&mut self, schema: Schema, head: Arc<[u8]>) {
        if self.size_max == 0 {
            return;
        }
        if self.entries.len() >= self.size_max
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.entries.remove(&oldest);
            self.last = None; // the address of what is gone may be used again
        }
        self.oldest_first.push_back(schema.address());
        self.entries.insert(schema.address(), (schema, head));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_stays_within_its_size() {
        let mut converter = JsonConverter::default();
        converter.configure(&Properties::from([(SCHEMAS_CACHE_SIZE.into(), "2".into())]), ConverterUse::Value).unwrap();
        for _ in 0..5 {
            let schema = Schema::structure().build().unwrap();
            converter.envelope(&schema).unwrap();
        }
        assert_eq!(converter.cache.lock().unwrap().entries.len(), 2);
    }

    #[test]
    fn each_record_carries_its_own_schema_when_schemas_alternate_and_are_evicted() {
        let mut converter = JsonConverter::default();
        converter.configure(&Properties::from([(SCHEMAS_CACHE_SIZE.into(), "1".into())]), ConverterUse::Value).unwrap();
        for round in 0..20 {
            let schema = Schema::structure().name(format!("s{round}")).build().unwrap();
            for _ in 0..2 {
                let head = converter.envelope(&schema).unwrap();
                assert!(String::from_utf8_lossy(&head).contains(&format!("\"name\":\"s{round}\"")));
            }
        }
    }

    #[test]
    fn a_wrong_decimal_format_is_named_with_what_is_allowed() {
        let mut converter = JsonConverter::default();
        let problems = converter
            .configure(&Properties::from([(DECIMAL_FORMAT.into(), "HEX".into())]), ConverterUse::Key)
            .unwrap_err();
        assert_eq!(problems[0].to_string(), "property 'decimal.format' is 'HEX'; allowed: NUMERIC, BASE64");
    }

    #[test]
    fn a_schema_for_all_that_is_read_stands_in_for_the_envelope() {
        let mut converter = JsonConverter::default();
        let content = r#"{"type":"int32","optional":false}"#;
        converter.configure(&Properties::from([(SCHEMA_CONTENT.into(), content.into())]), ConverterUse::Value).unwrap();
        let read = converter.to_connect("t", Some(&Bytes::from_static(b"7"))).unwrap();
        assert_eq!(read, SchemaAndValue { schema: Some(Schema::int32()), value: Some(Value::Int32(7)) });
        let bad = converter.configure(&Properties::from([(SCHEMA_CONTENT.into(), "{".into())]), ConverterUse::Value);
        assert!(bad.is_err());
    }
}
