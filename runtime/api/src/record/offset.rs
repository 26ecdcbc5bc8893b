//! Source partitions and source offsets: small maps from text to a plain value.
//!
//! Both are stored in the offsets topic as JSON, where the *bytes* of the partition are the key that compaction works on. So the order of
//! the entries is kept as the connector gave it, and yet two partitions with the same entries are equal whatever their order: a connector
//! that builds its map differently after an upgrade finds its offset again (it is the worker's task to reuse the stored bytes).

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A value that is legal in a source partition or a source offset: those that survive a journey through JSON.
///
/// 1 and 1.0 differ, as they do in Java. `Bytes` are stored as base64 text, and come back as [`OffsetValue::Text`].
#[derive(Clone, Debug)]
pub enum OffsetValue {
    /// JSON null.
    Null,
    /// true or false.
    Bool(bool),
    /// Any whole number; Java's byte, short, int and long are all written alike.
    Int(i64),
    /// A floating-point number; compared by its bits, so that it can be part of a key.
    Float(f64),
    /// Text.
    Text(Arc<str>),
    /// Bytes, written as base64.
    Bytes(Arc<[u8]>),
}

impl OffsetValue {
    /// The number, if it is a whole one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// All NaNs are one value, 0.0 and -0.0 are two: what Java's `Double.equals` says.
    fn float_bits(number: f64) -> u64 {
        if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() }
    }
}

impl PartialEq for OffsetValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => Self::float_bits(*a) == Self::float_bits(*b),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for OffsetValue {}

impl Hash for OffsetValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(value) => value.hash(state),
            Self::Int(value) => value.hash(state),
            Self::Float(value) => Self::float_bits(*value).hash(state),
            Self::Text(value) => value.hash(state),
            Self::Bytes(value) => value.hash(state),
        }
    }
}

impl fmt::Display for OffsetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(value),
            Self::Bytes(value) => write!(f, "{} bytes", value.len()),
        }
    }
}

impl From<&str> for OffsetValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for OffsetValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for OffsetValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

type Entry = (Arc<str>, OffsetValue);

/// A key that is there already keeps its place and takes the new value, as in Java's `LinkedHashMap`.
fn collect_entries(entries: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let mut places = std::collections::HashMap::new();
    let mut list: Vec<Entry> = Vec::new();
    for (key, value) in entries {
        let place = *places.entry(Arc::clone(&key)).or_insert(list.len());
        match list.get_mut(place) {
            Some(entry) => entry.1 = value,
            None => list.push((key, value)),
        }
    }
    list
}

fn write_entries<'a>(
    f: &mut fmt::Formatter<'_>,
    entries: impl Iterator<Item = (&'a str, &'a OffsetValue)>,
) -> fmt::Result {
    f.write_str("{")?;
    for (index, (key, value)) in entries.enumerate() {
        write!(f, "{}{key}={value}", if index == 0 { "" } else { ", " })?;
    }
    f.write_str("}")
}

/// Which part of a source a record came from, such as `{filename=/tmp/in.txt}`. A clone is one counter; equality and hash ignore the
/// order of the entries, iteration keeps it.
#[derive(Clone)]
pub struct SourcePartition(Arc<PartitionEntries>);

struct PartitionEntries {
    entries: Vec<Entry>,
    /// Places in `entries`, sorted by key: the order in which two partitions are compared.
    sorted: Box<[u32]>,
    hash: u64,
}

impl SourcePartition {
    /// A partition with the entries in this order.
    pub fn new<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, OffsetValue)>) -> Self {
        let entries = collect_entries(entries.into_iter().map(|(key, value)| (key.into(), value)));
        let mut sorted: Vec<u32> = (0u32..).take(entries.len()).collect();
        sorted.sort_by(|a, b| entries[*a as usize].0.cmp(&entries[*b as usize].0));
        let mut hasher = DefaultHasher::new();
        for place in &sorted {
            entries[*place as usize].hash(&mut hasher);
        }
        Self(Arc::new(PartitionEntries { entries, sorted: sorted.into(), hash: hasher.finish() }))
    }

    /// A partition with one entry.
    pub fn single(key: impl Into<Arc<str>>, value: impl Into<OffsetValue>) -> Self {
        Self::new([(key.into(), value.into())])
    }

    /// The entries in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &OffsetValue)> {
        self.0.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&OffsetValue> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// Whether both are clones of one partition: cheaper than `==`, for a look at the previous record first.
    pub fn same_instance(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn iter_sorted(&self) -> impl Iterator<Item = &Entry> {
        self.0.sorted.iter().map(|place| &self.0.entries[*place as usize])
    }
}

impl PartialEq for SourcePartition {
    fn eq(&self, other: &Self) -> bool {
        self.same_instance(other)
            || (self.0.hash == other.0.hash && self.len() == other.len() && self.iter_sorted().eq(other.iter_sorted()))
    }
}

impl Eq for SourcePartition {}

impl Hash for SourcePartition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for SourcePartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, self.iter())
    }
}

impl fmt::Display for SourcePartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, self.iter())
    }
}

/// Where to go on in a source partition, such as `{position=1234}`. One entry is stored in place: with a shared key and a number it costs
/// no allocation, neither to build nor to clone.
#[derive(Clone)]
pub struct SourceOffset(OffsetEntries);

#[derive(Clone)]
enum OffsetEntries {
    One(Entry),
    Many(Arc<[Entry]>),
}

impl SourceOffset {
    /// An offset with the entries in this order.
    pub fn new<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, OffsetValue)>) -> Self {
        let mut entries = collect_entries(entries.into_iter().map(|(key, value)| (key.into(), value)));
        match (entries.pop(), entries.is_empty()) {
            (Some(only), true) => Self(OffsetEntries::One(only)),
            (last, _) => {
                entries.extend(last);
                Self(OffsetEntries::Many(entries.into()))
            }
        }
    }

    /// An offset with one entry; keep the key as an `Arc<str>` and clone it to stay free of allocations.
    pub fn single(key: impl Into<Arc<str>>, value: impl Into<OffsetValue>) -> Self {
        Self(OffsetEntries::One((key.into(), value.into())))
    }

    fn as_slice(&self) -> &[Entry] {
        match &self.0 {
            OffsetEntries::One(entry) => std::slice::from_ref(entry),
            OffsetEntries::Many(entries) => entries,
        }
    }

    /// The entries in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &OffsetValue)> {
        self.as_slice().iter().map(|(key, value)| (&**key, value))
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&OffsetValue> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

impl PartialEq for SourceOffset {
    fn eq(&self, other: &Self) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let mut pairs = [self.as_slice().iter().collect::<Vec<_>>(), other.as_slice().iter().collect()];
        pairs.iter_mut().for_each(|list| list.sort_by_key(|(key, _)| key));
        pairs[0] == pairs[1]
    }
}

impl Eq for SourceOffset {}

impl fmt::Debug for SourceOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, self.iter())
    }
}

impl fmt::Display for SourceOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn partitions_are_equal_whatever_the_order_of_their_entries() {
        let one = SourcePartition::new([("bucket", "b".into()), ("key", "k".into())]);
        let other = SourcePartition::new([("key", "k".into()), ("bucket", OffsetValue::from("b"))]);
        assert_eq!(one, other);
        assert_eq!(HashSet::from([one.clone(), other.clone()]).len(), 1);
        assert_eq!(one.to_string(), "{bucket=b, key=k}");
        assert_eq!(other.to_string(), "{key=k, bucket=b}");
    }

    #[test]
    fn partitions_differ_by_value_by_key_and_by_kind_of_number() {
        let one = SourcePartition::single("n", OffsetValue::Int(1));
        assert_ne!(one, SourcePartition::single("n", OffsetValue::Float(1.0)));
        assert_ne!(one, SourcePartition::single("m", OffsetValue::Int(1)));
        assert_ne!(one, SourcePartition::single("n", OffsetValue::Int(2)));
        assert_ne!(one, SourcePartition::new([("n", OffsetValue::Int(1)), ("m", OffsetValue::Null)]));
    }

    #[test]
    fn a_repeated_key_keeps_its_place_and_takes_the_last_value() {
        let offset =
            SourceOffset::new([("a", OffsetValue::Int(1)), ("b", OffsetValue::Int(2)), ("a", OffsetValue::Int(3))]);
        assert_eq!(offset.to_string(), "{a=3, b=2}");
        let single = SourceOffset::new([("a", OffsetValue::Int(1)), ("a", OffsetValue::Int(3))]);
        assert_eq!(single, SourceOffset::single("a", 3));
    }

    #[test]
    fn offsets_are_equal_whatever_the_order_of_their_entries() {
        let one = SourceOffset::new([("a", OffsetValue::Int(1)), ("b", OffsetValue::Null)]);
        let other = SourceOffset::new([("b", OffsetValue::Null), ("a", OffsetValue::Int(1))]);
        assert_eq!(one, other);
        assert_ne!(one, SourceOffset::single("a", 1));
        assert!(SourceOffset::new::<&str>([]).is_empty());
    }

    #[test]
    fn an_offset_of_one_entry_is_small() {
        assert!(size_of::<Option<SourceOffset>>() <= 40, "{} bytes", size_of::<Option<SourceOffset>>());
    }
}
