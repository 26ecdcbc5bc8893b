//! What a connector author implements: records, schemas, ConfigDef, source traits.
