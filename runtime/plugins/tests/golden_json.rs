//! What Kafka's own JsonConverter wrote, against ours: each case of `tests/golden/json-converter` is built here in our model.

#![allow(clippy::unwrap_used, reason = "a test: the helpers may panic as the tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use oncewire_api::converter::{Converter, ConverterUse, Presence};
use oncewire_api::{Decimal, Properties, Schema, Struct, Value};
use oncewire_plugins::{JsonConverter, json};

fn golden(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/json-converter").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn converter(settings: &[(&str, &str)]) -> JsonConverter {
    let properties: Properties = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let mut converter = JsonConverter::default();
    converter.configure(&properties, ConverterUse::Value).unwrap();
    converter
}

/// What the vectors say of ours: the bytes as text, `NULL` or `ERROR`.
fn outcome(converter: &JsonConverter, schema: Option<&Schema>, value: Option<&Value>) -> String {
    let mut out = Vec::new();
    match converter.from_connect("t", schema, value, &mut out) {
        Ok(Presence::Bytes) => String::from_utf8(out).unwrap(),
        Ok(Presence::Null) => "NULL".into(),
        Err(_) => "ERROR".into(),
    }
}

struct Cases {
    expected: BTreeMap<String, String>,
    envelope: JsonConverter,
    plain: JsonConverter,
}

impl Cases {
    fn new() -> Self {
        let expected = golden("values.tsv")
            .split_terminator('\n')
            .map(|line| line.split_once('\t').map(|(name, text)| (name.to_string(), text.to_string())).unwrap())
            .collect();
        Self { expected, envelope: converter(&[]), plain: converter(&[("schemas.enable", "false")]) }
    }

    fn one(&mut self, name: &str, converter: &JsonConverter, schema: Option<&Schema>, value: Option<Value>) {
        let expected = self.expected.remove(name).unwrap_or_else(|| panic!("no golden case '{name}'"));
        assert_eq!(outcome(converter, schema, value.as_ref()), expected, "{name}");
        if let (Some(schema), Some(value)) = (schema, value)
            && name.starts_with("envelope")
            && expected != "ERROR"
        {
            let read = converter.to_connect("t", Some(&Bytes::from(expected))).unwrap();
            assert_eq!(read.schema.as_ref(), Some(schema), "{name}, read back");
            let not_a_number = matches!(value, Value::Float64(number) if number.is_nan());
            let has_defaults = name == "envelope struct" || name == "envelope default of a list";
            if !not_a_number && !has_defaults {
                assert_eq!(read.value, Some(value), "{name}, read back");
            }
        }
    }

    fn both(&mut self, name: &str, schema: Option<Schema>, value: Option<Value>) {
        let (envelope, plain) = (std::mem::take(&mut self.envelope), std::mem::take(&mut self.plain));
        self.one(&format!("envelope {name}"), &envelope, schema.as_ref(), value.clone());
        self.one(&format!("plain {name}"), &plain, schema.as_ref(), value);
        (self.envelope, self.plain) = (envelope, plain);
    }
}

fn int(number: i32) -> Option<Value> {
    Some(Value::Int32(number))
}

fn text(text: &str) -> Option<Value> {
    Some(Value::from(text))
}

fn bytes(bytes: &[u8]) -> Option<Value> {
    Some(Value::Bytes(Bytes::copy_from_slice(bytes)))
}

fn structure(schema: &Schema, fields: &[(&str, Value)]) -> Option<Value> {
    let mut value = Struct::new(schema.clone()).unwrap();
    for (name, field) in fields {
        value.put(name, Some(field.clone())).unwrap();
    }
    Some(Value::Struct(Box::new(value)))
}

fn decimal(unscaled: i128, scale: i32) -> Option<Value> {
    Some(Value::Decimal(Box::new(Decimal::new(unscaled, scale))))
}

fn nulls_and_primitives(cases: &mut Cases) {
    let default =
        || Schema::builder(oncewire_api::SchemaType::Int32).optional().default_value(Value::Int32(7)).build().unwrap();
    cases.both("null without schema", None, None);
    cases.both("null of optional string", Some(Schema::optional_string()), None);
    cases.both("null of required string", Some(Schema::string()), None);
    cases.both("null of default", Some(default()), None);
    let keep = [("replace.null.with.default", "false"), ("schemas.enable", "false")];
    cases.one("envelope keep null of default", &converter(&keep[..1]), Some(&default()), None);
    cases.one("plain keep null of default", &converter(&keep), Some(&default()), None);
    cases.both("text without schema", None, text("x"));
    cases.both("text", Some(Schema::string()), text("x"));
    cases.both("empty text", Some(Schema::string()), text(""));
    cases.both("boolean", Some(Schema::boolean()), Some(Value::Boolean(true)));
    cases.both("int8", Some(Schema::int8()), Some(Value::Int8(-128)));
    cases.both("int16", Some(Schema::int16()), Some(Value::Int16(32767)));
    cases.both("int32", Some(Schema::int32()), int(i32::MIN));
    cases.both("int64", Some(Schema::int64()), Some(Value::Int64(i64::MIN)));
    cases.both("float", Some(Schema::float32()), Some(Value::Float32(1.5)));
    cases.both("double", Some(Schema::optional_float64()), Some(Value::Float64(1e10)));
    cases.both("NaN", Some(Schema::float64()), Some(Value::Float64(f64::NAN)));
    cases.both("infinity", Some(Schema::float64()), Some(Value::Float64(f64::INFINITY)));
    cases.both("minus infinity float", Some(Schema::float32()), Some(Value::Float32(f32::NEG_INFINITY)));
    cases.both("bytes", Some(Schema::bytes()), bytes(&[1, 2, 3, 0xff]));
    cases.both("byte buffer", Some(Schema::bytes()), bytes(&[1, 2]));
    cases.both("no bytes", Some(Schema::bytes()), bytes(&[]));
    cases.both("bytes without schema", None, bytes(&[0xfb, 0xff, 0xfe]));
    cases.both("wrong type", Some(Schema::int32()), text("x"));
}

fn containers(cases: &mut Cases) {
    let long = |number| Some(Value::Int64(number));
    let longs = Schema::array(Schema::optional_int64()).build().unwrap();
    cases.both("array", Some(longs), Some(Value::Array(vec![long(1), None, long(3)])));
    let mixed = vec![long(1), None, text("a"), Some(Value::Boolean(true)), Some(Value::Float64(1.5))];
    cases.both("array without schema", None, Some(Value::Array(mixed)));
    cases.both("empty array", Some(Schema::array(Schema::string()).build().unwrap()), Some(Value::Array(vec![])));
    let map = Schema::map(Schema::string(), Schema::int32()).build().unwrap();
    cases.both("map", Some(map), Some(Value::Map(vec![(text("a"), int(1)), (text("b"), int(2))])));
    let by_int = || Some(Schema::map(Schema::int32(), Schema::string()).build().unwrap());
    cases.both("map of ints", by_int(), Some(Value::Map(vec![(int(1), text("a")), (int(2), text("b"))])));
    cases.both("empty map of ints", by_int(), Some(Value::Map(vec![])));
    cases.both("map without schema", None, Some(Value::Map(vec![(text("a"), int(1)), (text("b"), None)])));
    let mixed = vec![(text("a"), int(1)), (int(2), None), (None, int(3))];
    cases.both("mixed map without schema", None, Some(Value::Map(mixed)));
    cases.both("empty map without schema", None, Some(Value::Map(vec![])));
}

fn described_schemas(cases: &mut Cases) {
    let described = Schema::builder(oncewire_api::SchemaType::Int16)
        .optional()
        .name("n\"é")
        .version(-3)
        .doc("d\n")
        .parameter("z", "1")
        .parameter("a", "2")
        .default_value(Value::Int16(5))
        .build()
        .unwrap();
    cases.both("described", Some(described), Some(Value::Int16(4)));
    let list = Schema::array(Schema::int8()).name("list").optional().build().unwrap();
    cases.both("named array", Some(list), Some(Value::Array(vec![Some(Value::Int8(1))])));
}

fn structs(cases: &mut Cases) {
    let string = oncewire_api::SchemaType::String;
    let long = oncewire_api::SchemaType::Int64;
    let inner = Schema::structure().name("inner").optional().field("b", Schema::optional_bytes()).build().unwrap();
    let outer = Schema::structure()
        .name("outer")
        .version(1)
        .doc("o")
        .field("id", Schema::int32())
        .field("s", Schema::builder(string).optional().doc("d").build().unwrap())
        .field("m", Schema::map(Schema::string(), Schema::int64()).build().unwrap())
        .field("in", inner.clone())
        .field("in2", inner.clone())
        .field("def", Schema::builder(long).default_value(Value::Int64(9)).build().unwrap())
        .build()
        .unwrap();
    let seven = || structure(&inner, &[("b", Value::Bytes(Bytes::from_static(&[7])))]);
    let map = |entries| Value::Map(entries);
    let two = vec![(text("a"), Some(Value::Int64(2)))];
    let fields = [("id", Value::Int32(1)), ("m", map(two)), ("in2", seven().unwrap())];
    cases.both("struct", Some(outer.clone()), structure(&outer, &fields));
    cases.both("struct with a required null", Some(outer.clone()), structure(&outer, &[("m", map(vec![]))]));
    let filled = structure(&outer, &[("id", Value::Int32(1)), ("m", map(vec![]))]);
    cases.both("struct of another schema", Some(inner.clone()), filled);
    let empty = Schema::structure().build().unwrap();
    cases.both("empty struct", Some(empty.clone()), structure(&empty, &[]));
    let list = Value::Array(vec![int(1), int(2)]);
    let default = Schema::array(Schema::int32()).default_value(list).build().unwrap();
    let defaults = Schema::structure().field("l", default).build().unwrap();
    cases.both("default of a list", Some(defaults.clone()), structure(&defaults, &[]));
    // Java refuses a struct without its schema; ours carries the schema with it and must refuse all the same.
    cases.both("struct without schema", None, seven());
}

fn logical_types(cases: &mut Cases) {
    for format in ["BASE64", "numeric"] {
        let envelope = converter(&[("decimal.format", format)]);
        let plain = converter(&[("decimal.format", format), ("schemas.enable", "false")]);
        let schema = |scale| Schema::decimal(scale).build().unwrap();
        let amounts = [
            ("1.23", 123),
            ("-1.23", -123),
            ("0.00", 0),
            ("12345678901234567890123.45", 1_234_567_890_123_456_789_012_345),
            ("-0.01", -1),
            ("1.28", 128),
            ("655.36", 65536),
        ];
        for (name, unscaled) in amounts {
            cases.one(&format!("{format} envelope decimal {name}"), &envelope, Some(&schema(2)), decimal(unscaled, 2));
            cases.one(&format!("{format} plain decimal {name}"), &plain, Some(&schema(2)), decimal(unscaled, 2));
        }
        for (unscaled, scale) in [(12, -3), (-12, 0), (1, 7), (1, 6), (-12345, 12)] {
            cases.one(
                &format!("{format} plain decimal scale {scale}"),
                &plain,
                Some(&schema(scale)),
                decimal(unscaled, scale),
            );
        }
        cases.one(&format!("{format} plain decimal wrong scale"), &plain, Some(&schema(2)), decimal(15, 1));
        let default = Schema::decimal(2).optional().default_value(decimal(100, 2).unwrap()).build().unwrap();
        cases.one(&format!("{format} envelope decimal default"), &envelope, Some(&default), None);
        cases.one(&format!("{format} plain decimal without schema"), &plain, None, decimal(15, 1));
    }
    let date = || Some(Schema::date().build().unwrap());
    let timestamp = || Schema::timestamp();
    cases.both("date", date(), Some(Value::Date(19000)));
    cases.both("date before 1970", date(), Some(Value::Date(-1)));
    cases.both("time", Some(Schema::time().build().unwrap()), Some(Value::Time(86_399_999)));
    cases.both("timestamp", Some(timestamp().build().unwrap()), Some(Value::Timestamp(1_700_000_000_123)));
    cases.both("optional timestamp null", Some(timestamp().optional().build().unwrap()), None);
    cases.both("optional decimal null", Some(Schema::decimal(2).optional().build().unwrap()), None);
    cases.both("timestamp without schema", None, Some(Value::Timestamp(86_400_000 * 19000)));
    cases.both("timestamp schema with a long", Some(timestamp().build().unwrap()), Some(Value::Int64(5)));
    let other = Schema::builder(oncewire_api::SchemaType::Int64).name("x.Timestamp").build().unwrap();
    cases.both("long of another name", Some(other), Some(Value::Int64(5)));
}

fn texts(cases: &mut Cases) {
    let string = || Some(Schema::string());
    let controls: String = ('\0'..='\u{20}').chain("\u{7f}\u{80}\"\\/".chars()).collect();
    cases.both("controls", string(), text(&controls));
    cases.both("latin, bmp", string(), text("é ß € 漢 \u{2028}\u{2029}\u{fffd}\u{ffff}"));
    cases.both("beyond the bmp", string(), text("a😀b𝄞"));
    let long = "x".repeat(3000) + "😀" + &"é".repeat(3000) + "\n";
    cases.both("long beyond the bmp", string(), text(&long));
    cases.both("key beyond the bmp", None, Some(Value::Map(vec![(text("😀\n\""), int(1))])));
    let long_key = "k".repeat(3000) + "😀\u{1}";
    cases.both("long key beyond the bmp", None, Some(Value::Map(vec![(text(&long_key), int(1))])));
}

#[test]
fn every_value_is_written_as_kafkas_json_converter_writes_it() {
    let mut cases = Cases::new();
    nulls_and_primitives(&mut cases);
    containers(&mut cases);
    described_schemas(&mut cases);
    structs(&mut cases);
    logical_types(&mut cases);
    texts(&mut cases);
    let left: Vec<&String> = cases.expected.keys().collect();
    assert!(left.is_empty(), "golden cases that nothing has tried: {left:?}");
}

/// Calls with the bits and the text of each row.
fn rows(file: &str, mut each: impl FnMut(&str, u64, &str)) -> usize {
    let text = golden(file);
    for line in text.lines() {
        let mut cells = line.split('\t');
        let (kind, bits, text) = (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap());
        each(kind, u64::from_str_radix(bits, 16).unwrap(), text);
    }
    text.lines().count()
}

fn written(kind: &str, bits: u64) -> String {
    let mut out = Vec::new();
    match kind {
        "f64" => json::write_f64(f64::from_bits(bits), &mut out),
        "f32" => json::write_f32(f32::from_bits(bits.try_into().unwrap()), &mut out),
        other => panic!("unknown kind {other}"),
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn floating_point_is_written_as_java_19_and_later_write_it() {
    let count = rows("numbers.tsv", |kind, bits, text| assert_eq!(written(kind, bits), text, "{kind} {bits:x}"));
    assert!(count > 2000);
}

#[test]
fn what_earlier_versions_of_java_write_differently_is_the_same_number() {
    rows("numbers-before-java-19.tsv", |kind, bits, text| {
        assert_ne!(written(kind, bits), text);
        match kind {
            "f64" => assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits),
            _ => assert_eq!(u64::from(text.parse::<f32>().unwrap().to_bits()), bits),
        }
    });
}

#[test]
fn what_is_no_envelope_is_refused_when_schemas_are_enabled() {
    for text in
        ["{}", "[]", "1", r#"{"schema":null}"#, r#"{"schema":null,"payload":1,"x":2}"#, r#"{"schema":1,"payload":1}"#]
    {
        assert!(converter(&[]).to_connect("t", Some(&Bytes::from(text))).is_err(), "{text}");
    }
    let null = converter(&[]).to_connect("t", None).unwrap();
    assert_eq!((null.schema, null.value), (None, None));
}

#[test]
fn numbers_too_wide_for_their_schema_are_refused() {
    let text = r#"{"schema":{"type":"int8","optional":false},"payload":128}"#;
    assert!(converter(&[]).to_connect("t", Some(&Bytes::from(text))).is_err());
}

#[test]
fn schemas_nested_with_defaults_are_read_in_linear_time() {
    let mut schema = r#"{"type":"int8","optional":true,"default":1}"#.to_string();
    for _ in 0..60 {
        schema = format!(r#"{{"type":"array","items":{schema},"optional":true,"default":[]}}"#);
    }
    let envelope = format!(r#"{{"schema":{schema},"payload":null}}"#);
    assert!(converter(&[]).to_connect("t", Some(&Bytes::from(envelope))).is_ok());
}

#[test]
fn text_that_is_not_utf_8_gets_the_replacement_character() {
    let value = Value::Text(oncewire_api::Text::from_bytes(Bytes::from_static(b"a\xffb")));
    assert_eq!(outcome(&converter(&[("schemas.enable", "false")]), None, Some(&value)), "\"a\u{fffd}b\"");
}
