//! Which partition a record goes to when the caller named none: murmur2 of the key, or a sticky choice for records without.
//!
//! The hash, its seed and the modulo over all partitions are the Java client's, so that keys keep their partitions when a
//! producer is swapped. Records without a key stay with one partition until about a batch of bytes went there (the idea of
//! KIP-794, without its weights by queue depth). A null key is not an empty key: the empty one is hashed.

use std::collections::HashMap;
use std::sync::Arc;

/// The state of the choice. One per stream of records; not shared.
#[derive(Debug)]
pub struct Partitioner {
    /// Bytes after which a record without a key moves on.
    sticky_bytes: usize,
    sticky: HashMap<Arc<str>, Sticky>,
    random: u64,
}

#[derive(Debug)]
struct Sticky {
    partition: u32,
    bytes: usize,
}

impl Partitioner {
    /// `sticky_bytes` is how much goes to one partition before the next is chosen; `seed` makes the choice repeatable.
    pub fn new(sticky_bytes: usize, seed: u64) -> Self {
        // A zero state would stay zero in the shift register below.
        Self { sticky_bytes: sticky_bytes.max(1), sticky: HashMap::new(), random: seed | 1 }
    }

    /// The partition for one record of `size_bytes`. `partition_count` of 0 counts as 1.
    pub fn partition(&mut self, topic: &Arc<str>, partition_count: u32, key: Option<&[u8]>, size_bytes: usize) -> u32 {
        let count = partition_count.max(1);
        if let Some(key) = key {
            return partition_for_key(key, count);
        }
        if count == 1 {
            return 0;
        }
        if let Some(sticky) = self.sticky.get_mut(topic)
            && sticky.bytes < self.sticky_bytes
            && sticky.partition < count
        {
            sticky.bytes = sticky.bytes.saturating_add(size_bytes);
            return sticky.partition;
        }
        let before = self.sticky.get(topic).map(|sticky| sticky.partition);
        let partition = self.next_partition(count, before);
        self.sticky.insert(topic.clone(), Sticky { partition, bytes: size_bytes });
        partition
    }

    /// Any partition but the one before.
    fn next_partition(&mut self, count: u32, before: Option<u32>) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        match before {
            Some(before) if before < count => {
                let step = 1 + (self.random % u64::from(count - 1)) as u32;
                (before + step) % count
            }
            _ => (self.random % u64::from(count)) as u32,
        }
    }
}

/// The partition of a key: murmur2 made positive, modulo the number of all partitions.
pub fn partition_for_key(key: &[u8], partition_count: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partition_count.max(1)
}

/// Murmur2, 32 bits, with Kafka's seed.
pub fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const MULTIPLIER: u32 = 0x5bd1_e995;
    const SHIFT: u32 = 24;
    // Java hashes arrays, whose lengths are below 2^31; a cut length keeps the arithmetic the same.
    let mut hash = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(MULTIPLIER);
        k ^= k >> SHIFT;
        hash = hash.wrapping_mul(MULTIPLIER) ^ k.wrapping_mul(MULTIPLIER);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D43 partitioner-parity
    #[test]
    fn murmur2_agrees_with_the_java_client() {
        // The vectors of Kafka's own UtilsTest.testMurmur2.
        for (text, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, expected, "{text}");
        }
    }

    /// D43: the offset keys of a file source and of MirrorMaker, and a thousand more, among 25 partitions: each where Kafka 4.3.1's
    /// `Utils.toPositive(Utils.murmur2(key)) % 25` puts it (a letter each).
    #[test]
    fn offset_keys_go_where_java_puts_them() {
        for key in
            [r#"["local-file",{"filename":"/tmp/in.txt"}]"#, r#"["mm",{"cluster":"src","partition":0,"topic":"t"}]"#]
        {
            assert_eq!(partition_for_key(key.as_bytes(), 25), 20, "{key}");
        }
        let java = "\
            ywmqkifwbrhriadduwjesbeiqmjhlhasayvjerkaclkepsttnydwyidqjhnfwfxqxaceutqrorytjwqqkjinmadpdihgqvkweutp\
            xtnkwugbbodaaaboqqadgdacerdrhnkvupfylnnwvmaogedgfvmavhuytyogvtlhujkomkumwpclkwjyyyqehppkyqjkmvmajqwu\
            psngeyjwvyuedviqvmdjcrdgbegjspweyvnhkqttgppdlvgfpacbmtserogokqqimfkmkfmwsdfynifudjcqesyffdodutaplymu\
            uynonbuxhstcwceitrdpjedltfywnblknmitxumeyetacrfujnyoinnvldjijsrlcpptvksaswmtuyffgwuuqauojotsffodcrjg\
            jvrvvvrfrtywhnvmavndoijrqojnnpcltqovbwyfuonrvifiejfxuoiblcqwnqfrcxvoysgyrtnjtlslgmuhwdlgkyyjvjkysmtb\
            xaunadkkapytcpjmsuilxpcjlxptkqewjcxawqmpmhtcnuwhpmoicsgdsupjtelhdxxlraxyckgcaqhwahiikslyxetbljmjiijg\
            feeoilinbrvjcephqosapaimrmoojpaidcpxvcummpeqggkelbburgwhkdhwdsabpmjcddndecnyobknnlifxpltmurclfojbtag\
            ycphvtuirqqslstskykkmeldgsggoieixynpbpkxnqkunyhinvdcwbpwpvxpwmtfpiibuweldbjcxqutfanprbivoavalpbumqxp\
            ctgytjhtvksofuypktouhxuhtygissnxhvxqiviqvnmhnmuiwtxxarcrsoomibwhsvqksjdonafhdkqxhhobeeshwqenonukoons\
            kykgumsjtjkthrjigmdooxaxbdfijytmbuduxoyetffrpifsmpyvvgeywqorypxecijbjimfiwgqnqunkiwiwxrqxwhdcwobcovu";
        assert_eq!(java.len(), 1000);
        for (number, letter) in java.bytes().enumerate() {
            let key = format!(r#"["local-file",{{"filename":"/tmp/{number}.txt"}}]"#);
            assert_eq!(partition_for_key(key.as_bytes(), 25), u32::from(letter - b'a'), "{key}");
        }
    }

    #[test]
    fn empty_key_is_hashed_and_null_key_is_sticky() {
        let topic: Arc<str> = "t".into();
        let mut partitioner = Partitioner::new(100, 7);
        let empty = partitioner.partition(&topic, 10, Some(b""), 10);
        assert_eq!(empty, partition_for_key(b"", 10));
        let first = partitioner.partition(&topic, 10, None, 60);
        assert_eq!(partitioner.partition(&topic, 10, None, 60), first, "stays until the bytes are used up");
        assert_ne!(partitioner.partition(&topic, 10, None, 60), first, "then moves on");
    }

    #[test]
    fn sticky_choice_survives_a_smaller_partition_count() {
        let topic: Arc<str> = "t".into();
        let mut partitioner = Partitioner::new(1_000_000, 3);
        for count in [50, 2, 1, 0, 7] {
            assert!(partitioner.partition(&topic, count, None, 1) < count.max(1));
        }
    }
}
