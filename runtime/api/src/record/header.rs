//! The headers of a record: an ordered list in which a key may appear more than once.

use std::sync::Arc;

use super::{Schema, Value};

/// One header.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The name; need not be unique.
    pub key: Arc<str>,
    /// The schema of the value; `None` for a value without one.
    pub schema: Option<Schema>,
    /// The value; `None` is null.
    pub value: Option<Value>,
}

/// The headers of one record. Empty (the usual case) costs no allocation; a clone shares the list until one of them is changed, so
/// that two records never see each other's changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headers(Option<Arc<Vec<Header>>>);

impl Headers {
    /// Appends a header.
    pub fn push(&mut self, header: Header) {
        Arc::make_mut(self.0.get_or_insert_default()).push(header);
    }

    /// Removes every header with this key; returns how many there were.
    pub fn remove(&mut self, key: &str) -> usize {
        let Some(list) = &mut self.0 else { return 0 };
        let before = list.len();
        if list.iter().any(|header| &*header.key == key) {
            Arc::make_mut(list).retain(|header| &*header.key != key);
        }
        let removed = before - list.len();
        if list.is_empty() {
            self.0 = None;
        }
        removed
    }

    /// The headers in order.
    pub fn as_slice(&self) -> &[Header] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The headers in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Header> {
        self.as_slice().iter()
    }

    /// The last header with this key, which is the one that counts where a single one is expected.
    pub fn last(&self, key: &str) -> Option<&Header> {
        self.iter().rev().find(|header| &*header.key == key)
    }

    /// How many headers there are.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = &'a Header;
    type IntoIter = std::slice::Iter<'a, Header>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(key: &str, number: i32) -> Header {
        Header { key: key.into(), schema: None, value: Some(Value::Int32(number)) }
    }

    #[test]
    fn a_key_may_repeat_and_the_last_one_counts() {
        let mut headers = Headers::default();
        headers.push(header("a", 1));
        headers.push(header("b", 2));
        headers.push(header("a", 3));
        assert_eq!(headers.last("a"), Some(&header("a", 3)));
        assert_eq!(headers.remove("a"), 2);
        assert_eq!(headers.as_slice(), [header("b", 2)]);
        assert_eq!(headers.remove("b"), 1);
        assert!(headers.is_empty());
    }

    #[test]
    fn a_change_of_a_clone_leaves_the_original_alone() {
        let mut original = Headers::default();
        original.push(header("a", 1));
        let mut copy = original.clone();
        copy.push(header("b", 2));
        assert_eq!((original.len(), copy.len()), (1, 2));
    }
}
