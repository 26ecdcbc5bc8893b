//! Holds the visible records against the sequence connector's pattern: the numbers of each task gapless, once, in order.
//!
//! A task's numbers may be spread over partitions, and partitions are read in no fixed order, so the numbers seen are kept as a set: everything
//! below a mark, and bits above it. Read in order that is one number a task; the bits cost 8 KiB for each stretch of 65,536 numbers that is touched
//! out of order, up to a named limit.

use std::collections::{BTreeMap, HashMap};

use oncewire_connector_sequence::pattern;

use crate::finding::{Content, Place, Progress, Tally, preview};
use crate::wrapped;

/// Numbers in one stretch of bits.
const STRETCH: u64 = 65_536;

/// The most stretches that all tasks together hold (512 MB).
const STRETCHES_MAX: usize = 65_536;

/// The most tasks that are told apart. Beyond it, values are damaged rather than tasks many.
const TASKS_MAX: usize = 100_000;

/// The checker for topics that were filled by the sequence connector.
#[derive(Debug, Default)]
pub struct SequenceChecker {
    tasks: BTreeMap<u32, Task>,
    /// The next number that keeps the order, by task and partition.
    next: HashMap<(u32, i32), u64>,
    stretches: usize,
    content: Content,
    /// Foreign values that are of the pattern in JSON.
    wrapped: u64,
}

#[derive(Debug, Default)]
struct Task {
    /// Each number below was seen.
    complete_below: u64,
    beyond: BTreeMap<u64, Box<[u64]>>,
    last: u64,
    seen: u64,
    /// The first time that a number was skipped in one partition: from, to, where.
    jump: Option<(u64, u64, Place)>,
}

/// One number as it was read from a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The task that wrote it.
    pub task: u32,
    /// Its number, from 0.
    pub number: u64,
}

/// Reads a value of the sequence connector; `None` when it is not one, or is damaged.
pub(crate) fn numbered(value: &[u8]) -> Option<Numbered> {
    pattern::parse(value).ok().map(|item| Numbered { task: item.task, number: item.n })
}

impl SequenceChecker {
    /// A checker that has seen nothing.
    pub fn new() -> Self {
        let content = Content { against: "the sequence pattern".to_owned(), ..Content::default() };
        SequenceChecker { content, ..SequenceChecker::default() }
    }

    /// Takes the next visible record and what its value says; `None` when the value is not of the pattern.
    pub fn observe(&mut self, place: Place, value: Option<&[u8]>, numbered: Option<Numbered>) {
        let Some(Numbered { task: task_number, number }) = numbered else {
            let in_json = value.and_then(wrapped::text);
            self.wrapped += u64::from(in_json.is_some_and(|text| self::numbered(text.as_bytes()).is_some()));
            self.content.foreign.add(|| format!("at {place}: {} is not of the pattern", preview(value)));
            return;
        };
        let is_new_task = !self.tasks.contains_key(&task_number);
        if number == u64::MAX || (is_new_task && self.tasks.len() >= TASKS_MAX) {
            self.content.foreign.add(|| format!("at {place}: task {task_number}, number {number} cannot be"));
            return;
        }
        let task = self.tasks.entry(task_number).or_default();
        match task.insert(number, &mut self.stretches) {
            Insert::New => {}
            Insert::Again => {
                self.content.duplicates.add(|| format!("at {place}: task {task_number}, number {number} again"));
                return;
            }
            Insert::TooFar => {
                let told = || {
                    format!("at {place}: task {task_number}, number {number} is too far from the others to be checked")
                };
                self.content.foreign.add(told);
                return;
            }
        }
        let next = self.next.entry((task_number, place.partition)).or_insert(0);
        if number < *next {
            let before = *next - 1;
            self.content
                .misordered
                .add(|| format!("at {place}: task {task_number}, number {number} stands after {before}"));
            return;
        }
        if number > *next && task.jump.is_none() {
            task.jump = Some((*next, number, place));
        }
        *next = number + 1;
    }

    /// Looks for numbers that no record carried, and gives the result.
    pub fn finish(mut self) -> Content {
        let mut expected = 0;
        for (&number, task) in &self.tasks {
            expected += task.last + 1;
            let partitions = self.next.keys().filter(|(task, _)| *task == number).count();
            task.tell_gaps(number, partitions, &mut self.content.gaps);
            self.content.progress.push(Progress::Task { task: number, last: task.last });
        }
        self.content.expected = Some(expected);
        self.content.hint = wrapped::hint(self.wrapped);
        self.content
    }
}

enum Insert {
    New,
    Again,
    TooFar,
}

impl Task {
    fn insert(&mut self, number: u64, stretches: &mut usize) -> Insert {
        if number < self.complete_below {
            return Insert::Again;
        }
        if number == self.complete_below && self.beyond.is_empty() {
            self.complete_below += 1;
        } else {
            let (stretch, word, bit) = bit_of(number);
            let words = match self.beyond.entry(stretch) {
                std::collections::btree_map::Entry::Occupied(words) => words.into_mut(),
                std::collections::btree_map::Entry::Vacant(_) if *stretches >= STRETCHES_MAX => return Insert::TooFar,
                std::collections::btree_map::Entry::Vacant(vacant) => {
                    *stretches += 1;
                    vacant.insert(vec![0; (STRETCH / 64) as usize].into_boxed_slice())
                }
            };
            if words[word] & bit != 0 {
                return Insert::Again;
            }
            words[word] |= bit;
        }
        self.last = self.last.max(number);
        self.absorb(stretches);
        self.seen += 1;
        Insert::New
    }

    /// Moves the mark over the numbers that were seen out of order and now follow it without a gap.
    fn absorb(&mut self, stretches: &mut usize) {
        loop {
            let (stretch, word, bit) = bit_of(self.complete_below);
            let Some(words) = self.beyond.get(&stretch) else {
                break;
            };
            if words[word] & bit == 0 {
                break;
            }
            self.complete_below += 1;
            if self.complete_below.is_multiple_of(STRETCH) {
                self.beyond.remove(&stretch);
                *stretches -= 1;
            }
        }
        // A stretch that the mark has passed to its last seen number holds nothing more.
        if self.complete_below > self.last {
            *stretches -= self.beyond.len();
            self.beyond.clear();
        }
    }

    fn tell_gaps(&self, number: u32, partitions: usize, gaps: &mut Tally) {
        let missing = (self.last + 1).saturating_sub(self.seen);
        let first = self.complete_below;
        gaps.add_many(missing, || match self.jump {
            Some((from, to, place)) if partitions == 1 && (from..to).contains(&first) => {
                format!("task {number}, number {first} is missing: at {place}, {to} comes where {from} was next")
            }
            _ => format!("task {number}, number {first} is missing"),
        });
    }
}

fn bit_of(number: u64) -> (u64, usize, u64) {
    let within = number % STRETCH;
    (number / STRETCH, (within / 64) as usize, 1 << (within % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(records: &[(i32, u32, u64)]) -> Content {
        let mut checker = SequenceChecker::new();
        for (offset, &(partition, task, number)) in records.iter().enumerate() {
            checker.observe(Place { partition, offset: offset as i64 }, None, Some(Numbered { task, number }));
        }
        checker.finish()
    }

    fn counts(content: &Content) -> [u64; 4] {
        content.faults().map(|(_, tally)| tally.count)
    }

    #[test]
    fn each_task_once_and_in_order_is_content() {
        let content = check(&[(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)]);
        assert!(content.is_content());
        assert_eq!(content.expected, Some(5));
        assert_eq!(content.progress, [Progress::Task { task: 0, last: 1 }, Progress::Task { task: 1, last: 2 }]);
    }

    #[test]
    fn numbers_spread_over_partitions_are_no_gaps() {
        let content = check(&[(0, 0, 1), (0, 0, 3), (0, 0, 5), (1, 0, 0), (1, 0, 2), (1, 0, 4)]);
        assert!(content.is_content(), "{content:?}");
    }

    #[test]
    fn gap_is_told_with_number_and_offset() {
        let content = check(&[(0, 0, 0), (0, 0, 3), (0, 0, 4)]);
        assert_eq!(counts(&content), [2, 0, 0, 0]);
        let first = "task 0, number 1 is missing: at partition 0, offset 1, 3 comes where 1 was next";
        assert_eq!(content.gaps.first.as_deref(), Some(first));
    }

    #[test]
    fn repeats_and_swaps_are_told_apart() {
        assert_eq!(counts(&check(&[(0, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 1), (0, 0, 2)])), [0, 2, 0, 0]);
        assert_eq!(counts(&check(&[(0, 0, 1), (0, 0, 0), (0, 0, 2)])), [0, 0, 1, 0]);
        assert_eq!(counts(&check(&[(0, 0, 0), (0, 0, 3), (0, 0, 3)])), [2, 1, 0, 0]);
    }

    #[test]
    fn value_that_is_not_of_the_pattern_is_foreign() {
        let mut checker = SequenceChecker::new();
        checker.observe(Place { partition: 0, offset: 0 }, Some(b"x"), None);
        checker.observe(Place { partition: 0, offset: 1 }, None, Some(Numbered { task: 0, number: u64::MAX }));
        assert_eq!(counts(&checker.finish()), [0, 0, 0, 2]);
    }

    #[test]
    fn numbers_in_json_are_foreign_and_their_converter_is_named() {
        let mut value = Vec::new();
        pattern::write(pattern::Item { task: 0, n: 0 }, 84, &mut value);
        let in_json = serde_json::to_vec(&String::from_utf8(value.clone()).unwrap()).unwrap();
        let mut checker = SequenceChecker::new();
        checker.observe(Place { partition: 0, offset: 0 }, Some(&in_json), numbered(&in_json));
        checker.observe(Place { partition: 0, offset: 1 }, Some(&value), numbered(&value));
        let content = checker.finish();
        assert_eq!(counts(&content), [0, 0, 0, 1]);
        assert!(content.hint.unwrap().starts_with("1 of the foreign values"));
    }

    #[test]
    fn number_seen_ahead_of_its_time_is_remembered() {
        assert_eq!(counts(&check(&[(0, 0, 0), (0, 0, 1), (0, 0, 5), (0, 0, 5)])), [3, 1, 0, 0]);
    }

    #[test]
    fn order_kept_needs_no_bits_and_disorder_gives_them_back() {
        let mut task = Task::default();
        let mut stretches = 0;
        for number in (0..STRETCH * 2).rev() {
            assert!(matches!(task.insert(number, &mut stretches), Insert::New));
        }
        assert_eq!((task.complete_below, stretches, task.beyond.len()), (STRETCH * 2, 0, 0));
        assert!(matches!(task.insert(5, &mut stretches), Insert::Again));
    }
}
