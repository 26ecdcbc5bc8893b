//! Schemas: what a value is, as Connect describes it.
//!
//! A schema is shared: a clone is one counter, and two clones of one schema compare by address before they compare by content, so that a
//! converter can remember the last schema it saw.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::Value;

/// The names of the logical types that Connect defines; a schema with one of these names and the right type carries that meaning.
pub mod logical {
    /// A decimal number of any size: type BYTES, parameter `scale`.
    pub const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";
    /// A day: type INT32, days since 1970-01-01.
    pub const DATE: &str = "org.apache.kafka.connect.data.Date";
    /// A time of day: type INT32, milliseconds since midnight.
    pub const TIME: &str = "org.apache.kafka.connect.data.Time";
    /// A moment: type INT64, milliseconds since 1970-01-01 UTC.
    pub const TIMESTAMP: &str = "org.apache.kafka.connect.data.Timestamp";
    /// The parameter of a DECIMAL schema that holds its scale.
    pub const SCALE: &str = "scale";
}

/// The type of a value, without names and logical types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaType {
    /// 8-bit signed.
    Int8,
    /// 16-bit signed.
    Int16,
    /// 32-bit signed.
    Int32,
    /// 64-bit signed.
    Int64,
    /// 32-bit floating point.
    Float32,
    /// 64-bit floating point.
    Float64,
    /// true or false.
    Boolean,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A list of one element type.
    Array,
    /// Entries of one key type and one value type.
    Map,
    /// Named fields.
    Struct,
}

impl SchemaType {
    /// Connect's name in lower case, such as `int32` or `string`; `float32` and `float64` are the names that the enum has in Java, not
    /// those of the JSON envelope.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Array => "array",
            Self::Map => "map",
            Self::Struct => "struct",
        }
    }
}

impl fmt::Display for SchemaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One field of a struct schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name, unique in its struct.
    pub name: Arc<str>,
    /// What the field holds.
    pub schema: Schema,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Primitive,
    Array { element: Schema },
    Map { key: Schema, value: Schema },
    Struct { fields: Vec<Field> },
}

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    schema_type: SchemaType,
    optional: bool,
    name: Option<Arc<str>>,
    version: Option<i32>,
    doc: Option<Arc<str>>,
    parameters: Vec<(Arc<str>, Arc<str>)>,
    default: Option<Value>,
    shape: Shape,
}

/// What a value is. Built with [`Schema::builder`] or one of the ready ones, such as [`Schema::string`].
#[derive(Clone, Debug)]
pub struct Schema(Arc<Inner>);

macro_rules! ready_schemas {
    ($($(#[$doc:meta])* $name:ident, $optional_name:ident => $schema_type:ident;)*) => {
        impl Schema {
            $(
                $(#[$doc])*
                pub fn $name() -> Self {
                    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::primitive(SchemaType::$schema_type, Need::Required));
                    SCHEMA.clone()
                }

                $(#[$doc])*
                ///
                /// Null is allowed.
                pub fn $optional_name() -> Self {
                    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::primitive(SchemaType::$schema_type, Need::Optional));
                    SCHEMA.clone()
                }
            )*
        }
    };
}

ready_schemas! {
    /// 8-bit signed.
    int8, optional_int8 => Int8;
    /// 16-bit signed.
    int16, optional_int16 => Int16;
    /// 32-bit signed.
    int32, optional_int32 => Int32;
    /// 64-bit signed.
    int64, optional_int64 => Int64;
    /// 32-bit floating point.
    float32, optional_float32 => Float32;
    /// 64-bit floating point.
    float64, optional_float64 => Float64;
    /// true or false.
    boolean, optional_boolean => Boolean;
    /// Text.
    string, optional_string => String;
    /// Bytes.
    bytes, optional_bytes => Bytes;
}

/// Whether null is allowed.
enum Need {
    Required,
    Optional,
}

impl Schema {
    fn primitive(schema_type: SchemaType, need: Need) -> Self {
        Self(Arc::new(Inner {
            schema_type,
            optional: matches!(need, Need::Optional),
            name: None,
            version: None,
            doc: None,
            parameters: Vec::new(),
            default: None,
            shape: Shape::Primitive,
        }))
    }

    /// Starts a primitive or a struct schema; for lists and maps see [`Schema::array`] and [`Schema::map`].
    pub fn builder(schema_type: SchemaType) -> SchemaBuilder {
        SchemaBuilder::new(schema_type, Shape::Primitive)
    }

    /// Starts a struct schema.
    pub fn structure() -> SchemaBuilder {
        SchemaBuilder::new(SchemaType::Struct, Shape::Struct { fields: Vec::new() })
    }

    /// Starts a list schema.
    pub fn array(element: Schema) -> SchemaBuilder {
        SchemaBuilder::new(SchemaType::Array, Shape::Array { element })
    }

    /// Starts a map schema.
    pub fn map(key: Schema, value: Schema) -> SchemaBuilder {
        SchemaBuilder::new(SchemaType::Map, Shape::Map { key, value })
    }

    /// Starts a decimal schema; the scale is the number of digits after the point, negative for multiples of a power of ten.
    pub fn decimal(scale: i32) -> SchemaBuilder {
        Self::builder(SchemaType::Bytes).name(logical::DECIMAL).version(1).parameter(logical::SCALE, scale.to_string())
    }

    /// Starts a day schema.
    pub fn date() -> SchemaBuilder {
        Self::builder(SchemaType::Int32).name(logical::DATE).version(1)
    }

    /// Starts a time-of-day schema.
    pub fn time() -> SchemaBuilder {
        Self::builder(SchemaType::Int32).name(logical::TIME).version(1)
    }

    /// Starts a moment schema.
    pub fn timestamp() -> SchemaBuilder {
        Self::builder(SchemaType::Int64).name(logical::TIMESTAMP).version(1)
    }

    /// The type.
    pub fn schema_type(&self) -> SchemaType {
        self.0.schema_type
    }

    /// Whether null is allowed.
    pub fn is_optional(&self) -> bool {
        self.0.optional
    }

    /// The name: of a struct, or of a logical type.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The version that the author gave.
    pub fn version(&self) -> Option<i32> {
        self.0.version
    }

    /// What the author says about it.
    pub fn doc(&self) -> Option<&str> {
        self.0.doc.as_deref()
    }

    /// Further properties, in the order in which they were given.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.parameters.iter().map(|(key, value)| (&**key, &**value))
    }

    /// One further property.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        self.parameters().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The value that stands in for null.
    pub fn default_value(&self) -> Option<&Value> {
        self.0.default.as_ref()
    }

    /// The same schema with this value to stand in for null.
    pub fn with_default(&self, value: Value) -> Self {
        Self(Arc::new(Inner { default: Some(value), ..Inner::clone(&self.0) }))
    }

    /// The fields of a struct; empty for any other type.
    pub fn fields(&self) -> &[Field] {
        match &self.0.shape {
            Shape::Struct { fields } => fields,
            _ => &[],
        }
    }

    /// The place and the schema of a field.
    pub fn field(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields().iter().enumerate().find(|(_, field)| &*field.name == name)
    }

    /// The key schema of a map.
    pub fn key_schema(&self) -> Option<&Schema> {
        match &self.0.shape {
            Shape::Map { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The value schema of a map, or the element schema of a list.
    pub fn value_schema(&self) -> Option<&Schema> {
        match &self.0.shape {
            Shape::Map { value, .. } => Some(value),
            Shape::Array { element } => Some(element),
            _ => None,
        }
    }

    /// Whether both are clones of one schema: cheaper than `==`.
    pub fn same_instance(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The address of the shared content: a key for a cache that also holds a clone, so that the address is not used again.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.same_instance(other) || self.0 == other.0
    }
}

/// A mistake in a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// A struct has two fields of one name.
    DuplicateField {
        /// The name.
        name: String,
    },
    /// A field was given to something that is no struct.
    FieldOfNonStruct {
        /// What it was given to.
        schema_type: SchemaType,
    },
    /// `Schema::builder` was used for a list or a map, whose content it does not know.
    ContentMissing {
        /// What was to be built.
        schema_type: SchemaType,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateField { name } => write!(f, "struct schema has two fields named '{name}'"),
            Self::FieldOfNonStruct { schema_type } => write!(f, "a schema of type {schema_type} has no fields"),
            Self::ContentMissing { schema_type } => {
                write!(f, "a schema of type {schema_type} needs the schema of what it holds")
            }
        }
    }
}

impl std::error::Error for SchemaError {}

/// Builds a [`Schema`]; mistakes come to light in [`SchemaBuilder::build`].
#[derive(Debug)]
pub struct SchemaBuilder {
    inner: Inner,
    error: Option<SchemaError>,
}

impl SchemaBuilder {
    fn new(schema_type: SchemaType, shape: Shape) -> Self {
        let (shape, error) = match (schema_type, shape) {
            (SchemaType::Struct, Shape::Primitive) => (Shape::Struct { fields: Vec::new() }, None),
            (SchemaType::Array | SchemaType::Map, Shape::Primitive) => {
                (Shape::Primitive, Some(SchemaError::ContentMissing { schema_type }))
            }
            (_, shape) => (shape, None),
        };
        let inner = Inner {
            schema_type,
            optional: false,
            name: None,
            version: None,
            doc: None,
            parameters: Vec::new(),
            default: None,
            shape,
        };
        Self { inner, error }
    }

    /// Null is allowed.
    pub fn optional(mut self) -> Self {
        self.inner.optional = true;
        self
    }

    /// The name.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.inner.name = Some(name.into());
        self
    }

    /// The version.
    pub fn version(mut self, version: i32) -> Self {
        self.inner.version = Some(version);
        self
    }

    /// What it means.
    pub fn doc(mut self, doc: impl Into<Arc<str>>) -> Self {
        self.inner.doc = Some(doc.into());
        self
    }

    /// A further property; the same key again replaces it.
    pub fn parameter(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        let (key, value) = (key.into(), value.into());
        match self.inner.parameters.iter_mut().find(|(name, _)| *name == key) {
            Some(entry) => entry.1 = value,
            None => self.inner.parameters.push((key, value)),
        }
        self
    }

    /// The value that stands in for null.
    pub fn default_value(mut self, value: Value) -> Self {
        self.inner.default = Some(value);
        self
    }

    /// A field of a struct, after those given before.
    pub fn field(mut self, name: impl Into<Arc<str>>, schema: Schema) -> Self {
        let name = name.into();
        match &mut self.inner.shape {
            Shape::Struct { fields } if fields.iter().any(|field| field.name == name) => {
                self.error.get_or_insert(SchemaError::DuplicateField { name: name.to_string() });
            }
            Shape::Struct { fields } => fields.push(Field { name, schema }),
            _ => {
                self.error.get_or_insert(SchemaError::FieldOfNonStruct { schema_type: self.inner.schema_type });
            }
        }
        self
    }

    /// The schema.
    ///
    /// # Errors
    /// [`SchemaError`]: the first mistake that was made while building.
    pub fn build(self) -> Result<Schema, SchemaError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(Schema(Arc::new(self.inner))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_compare_by_content_and_know_their_instance() {
        let one = Schema::structure().name("n").field("id", Schema::int32()).build().unwrap();
        let other = Schema::structure().name("n").field("id", Schema::int32()).build().unwrap();
        assert_eq!(one, other);
        assert!(!one.same_instance(&other));
        assert!(Schema::string().same_instance(&Schema::string()));
        assert_ne!(Schema::string(), Schema::optional_string());
    }

    #[test]
    fn mistakes_come_to_light_when_the_schema_is_built() {
        let twice = Schema::structure().field("a", Schema::int8()).field("a", Schema::int8()).build();
        assert_eq!(twice, Err(SchemaError::DuplicateField { name: "a".into() }));
        let no_struct = Schema::builder(SchemaType::Int8).field("a", Schema::int8()).build();
        assert_eq!(no_struct, Err(SchemaError::FieldOfNonStruct { schema_type: SchemaType::Int8 }));
        let no_content = Schema::builder(SchemaType::Array).build();
        assert_eq!(no_content, Err(SchemaError::ContentMissing { schema_type: SchemaType::Array }));
    }

    #[test]
    fn a_decimal_carries_its_scale() {
        let decimal = Schema::decimal(2).optional().build().unwrap();
        assert_eq!((decimal.name(), decimal.parameter("scale")), (Some(logical::DECIMAL), Some("2")));
    }
}
