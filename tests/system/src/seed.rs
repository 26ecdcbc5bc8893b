//! Random moments from one seed, which is printed and can be given again with ONCEWIRE_SEED.

use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator (SplitMix64): the tests need moments that differ, not good randomness.
#[derive(Debug)]
pub struct Seed {
    state: u64,
}

impl Seed {
    /// The seed of the environment variable ONCEWIRE_SEED, else one from the clock; printed with the test's name.
    ///
    /// # Panics
    /// ONCEWIRE_SEED is set and is not a number.
    pub fn of_run(test: &str) -> Self {
        let state = match std::env::var("ONCEWIRE_SEED") {
            Ok(text) => text.parse().expect("ONCEWIRE_SEED is a number"),
            Err(_) => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64) % 1_000_000
            }
        };
        println!("{test}: seed {state} (ONCEWIRE_SEED={state} repeats the choice of moments)");
        Seed { state }
    }

    /// The generator as it was printed.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// A number of `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

impl From<u64> for Seed {
    fn from(state: u64) -> Self {
        Seed { state }
    }
}
