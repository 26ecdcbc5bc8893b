//! The order in which Java's `HashMap` gives its keys back.
//!
//! Some lists of the validate endpoint come from one. The order means nothing, but it is the same in every run of a Java worker, so that
//! a tool may show it; ours is the same.

/// A `HashMap` starts with so many buckets.
const BUCKETS_MIN: usize = 16;

/// Puts entries into the order in which a `HashMap` that got them in this order returns them.
pub(crate) fn hash_order<T>(entries: Vec<T>, key: impl Fn(&T) -> &str) -> Vec<T> {
    let size = entries.len();
    hash_order_among(entries, size, key)
}

/// As [`hash_order`], of entries that are some of those in a map of this size.
pub(crate) fn hash_order_among<T>(mut entries: Vec<T>, size: usize, key: impl Fn(&T) -> &str) -> Vec<T> {
    let buckets = buckets(size);
    // Stable: within a bucket they keep the order in which they came.
    entries.sort_by_key(|entry| spread(java_hash(key(entry))) & (buckets - 1));
    entries
}

fn buckets(entries: usize) -> u32 {
    let mut buckets = BUCKETS_MIN;
    while entries > buckets / 4 * 3 {
        buckets *= 2;
    }
    u32::try_from(buckets).unwrap_or(1 << 31)
}

/// `String.hashCode`.
fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)))
}

fn spread(hash: u32) -> u32 {
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_a_java_hash_map() {
        let names = vec!["converter.type", "schemas.enable", "schemas.cache.size", "schema.content", "decimal.format"];
        assert_eq!(
            hash_order(names, |name| name),
            ["decimal.format", "converter.type", "schemas.cache.size", "schemas.enable", "schema.content"]
        );
    }

    #[test]
    fn more_entries_have_more_buckets() {
        assert_eq!((buckets(12), buckets(13), buckets(24), buckets(25)), (16, 32, 32, 64));
    }
}
