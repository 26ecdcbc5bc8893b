//! Records out of a seed: noise, and sound ones with something wrong in them.

use super::Record;

/// SplitMix64; the same seed makes the same records.
pub struct Generator(u64);

impl Generator {
    /// By `ONCEWIRE_SEED`, or the clock; printed.
    pub fn from_environment() -> Self {
        let given = std::env::var("ONCEWIRE_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = given.unwrap_or_else(clock);
        println!("ONCEWIRE_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// One record; `sound` are such as the topic has.
    pub fn record(&mut self, sound: &[Record]) -> Record {
        let key = sound[self.below(sound.len())].0.clone();
        let value = sound[self.below(sound.len())].1.clone().unwrap_or_default();
        let (key, value) = match self.below(6) {
            0 => (self.bytes(64), Some(self.bytes(200))),
            1 => (key, Some(self.bytes(200))),
            2 => (key, Some(value)),
            3 => (key, Some(self.spoilt(value))),
            4 => (self.spoilt(key), Some(value)),
            _ => (self.spoilt(key), None),
        };
        // What is spoilt must not become the good connector's by chance.
        if key.windows(4).any(|part| part == b"good") { (b"x".to_vec(), value) } else { (key, value) }
    }

    fn spoilt(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            let noise = [b'"', b'{', b'}', b'-', b':', b'9', 0, 0xff, self.next() as u8];
            let noise = noise[self.below(noise.len())];
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, noise),
                2 if at < bytes.len() => bytes[at] = noise,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    }
}
