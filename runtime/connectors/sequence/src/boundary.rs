//! Where transactions end with `transaction.boundary=connector`, as a rule of the numbers alone. Pure.
//!
//! ```text
//! commit.every=3, abort.every=2:   0 1 2 ┤commit├ 3 4 5 ┤abort├ 6 7 8 ┤commit├ 9 10 11 ┤abort├ …
//! ```
//!
//! The rule does not depend on batches or restarts, so a reader can say for each number whether it must be visible.

use oncewire_api::Boundary;

/// Which records end a transaction, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundaryPlan {
    /// A transaction has this many records; 0: it has those of a batch, and is always committed.
    pub commit_every: u64,
    /// Each transaction of this number is aborted instead; 0: none.
    pub abort_every: u64,
    /// How many records there are; `None`: no end. The last, shorter transaction is committed.
    pub records_max: Option<u64>,
}

impl BoundaryPlan {
    /// What to do after record `n`.
    pub fn after(&self, n: u64) -> Option<Boundary> {
        if self.commit_every == 0 {
            return None;
        }
        let count = n.saturating_add(1);
        if count.is_multiple_of(self.commit_every) {
            return Some(if self.is_aborted(n) { Boundary::Abort } else { Boundary::Commit });
        }
        (self.records_max == Some(count)).then_some(Boundary::Commit)
    }

    /// Whether record `n` is in a transaction that is aborted, so that it must not be visible to a reader of committed records.
    pub fn is_aborted(&self, n: u64) -> bool {
        if self.commit_every == 0 || self.abort_every == 0 {
            return false;
        }
        let transaction = n / self.commit_every + 1;
        let complete = self.records_max.is_none_or(|max| transaction.saturating_mul(self.commit_every) <= max);
        complete && transaction.is_multiple_of(self.abort_every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_have_their_length_and_some_are_aborted() {
        let plan = BoundaryPlan { commit_every: 3, abort_every: 2, records_max: None };
        let boundaries: Vec<_> = (0..12).filter_map(|n| plan.after(n).map(|boundary| (n, boundary))).collect();
        assert_eq!(
            boundaries,
            [(2, Boundary::Commit), (5, Boundary::Abort), (8, Boundary::Commit), (11, Boundary::Abort)]
        );
        assert_eq!((0..12).filter(|n| plan.is_aborted(*n)).collect::<Vec<_>>(), [3, 4, 5, 9, 10, 11]);
    }

    #[test]
    fn the_last_shorter_transaction_is_committed() {
        let plan = BoundaryPlan { commit_every: 3, abort_every: 2, records_max: Some(5) };
        assert_eq!(plan.after(4), Some(Boundary::Commit));
        assert!(!plan.is_aborted(3));
        let exact = BoundaryPlan { records_max: Some(6), ..plan };
        assert_eq!(exact.after(5), Some(Boundary::Abort));
    }

    #[test]
    fn without_a_length_the_batch_is_the_transaction() {
        let plan = BoundaryPlan { commit_every: 0, abort_every: 0, records_max: Some(5) };
        assert!((0..5).all(|n| plan.after(n).is_none() && !plan.is_aborted(n)));
    }
}
