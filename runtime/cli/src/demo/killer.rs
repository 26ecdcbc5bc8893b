//! When to kill: points in the stream, chosen from one seed. Pure.

/// A small generator (xorshift64*): the demo only needs spread and repeatability.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The same seed, the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        if bound == 0 { 0 } else { number % bound }
    }
}

/// The numbers of visible lines at which a worker dies, ascending: one at random in each of `kills` equal stretches, so that
/// every kill finds a worker in the middle of its work.
pub(crate) fn kill_points(lines: u64, kills: u64, dice: &mut Dice) -> Vec<u64> {
    let stretch = lines / (kills + 1);
    (0..kills).map(|at| at * stretch + 1 + dice.below(stretch.max(1))).filter(|point| *point < lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_ascend_stay_inside_and_repeat_with_their_seed() {
        for seed in 0..50 {
            let points = kill_points(10_000, 20, &mut Dice::new(seed));
            assert_eq!(points.len(), 20);
            assert!(points.windows(2).all(|pair| pair[0] < pair[1]) && points[19] < 10_000 && points[0] > 0);
            assert_eq!(points, kill_points(10_000, 20, &mut Dice::new(seed)));
        }
        assert!(kill_points(100, 0, &mut Dice::new(1)).is_empty());
    }
}
