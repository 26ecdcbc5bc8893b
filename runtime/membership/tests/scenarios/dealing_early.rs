//! Beyond scenario A11: who is missed is back long before the delay is over, and gets what was lost at once.

use super::*;

const DELAY_MAX: Duration = Duration::from_millis(DELAY_MAX_MS);

fn cluster(members: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(DELAY_MAX_MS, members, &[("a", 4), ("b", 5)]);
    cluster.assignor = Assignor::dealing_early(DELAY_MAX);
    cluster.settle();
    cluster
}

fn check_unmoved(cluster: &Cluster, before: &BTreeMap<String, Load>, who: &[&str]) {
    for member in who {
        assert_eq!(cluster.held[*member], before[*member], "{member}");
    }
}

#[test]
fn a_worker_that_is_back_gets_what_it_left_at_once() {
    let mut cluster = cluster(&["m1", "m2", "m3"]);
    let before = cluster.held.clone();
    let lost = cluster.leave("m3");
    let alone = cluster.round();
    assert_eq!((alone.delay, assigned(&alone)), (DELAY_MAX, 0), "it is waited for");
    cluster.pass(Duration::from_secs(1));
    cluster.join("m3 again");
    let back = cluster.round();
    assert_eq!((back.delay, revoked(&back)), (NO_DELAY, 0));
    assert_eq!(back.assignments["m3 again"].assigned, lost);
    check_unmoved(&cluster, &before, &["m1", "m2"]);
    assert_eq!(revoked(&cluster.round()), 0);
    cluster.check_complete();
    // The next departure is waited for again.
    cluster.leave("m3 again");
    assert_eq!(cluster.round().delay, DELAY_MAX);
}

#[test]
fn a_worker_that_is_back_in_the_round_that_misses_it_loses_no_time() {
    let mut cluster = cluster(&["m1", "m2", "m3"]);
    let lost = cluster.leave("m2");
    cluster.join("m2 again");
    let outcome = cluster.round();
    assert_eq!((outcome.delay, revoked(&outcome)), (NO_DELAY, 0));
    assert_eq!(outcome.assignments["m2 again"].assigned, lost);
    cluster.check_complete();
}

#[test]
fn all_who_are_missed_are_waited_for() {
    let mut cluster = cluster(&["m1", "m2", "m3"]);
    let before = cluster.held.clone();
    cluster.leave("m2");
    assert_eq!(cluster.round().delay, DELAY_MAX);
    cluster.leave("m3");
    cluster.join("m2 again");
    let one = cluster.round();
    assert_eq!((one.delay, assigned(&one)), (DELAY_MAX, 0), "one of two is back");
    cluster.join("m3 again");
    let both = cluster.round();
    assert_eq!((both.delay, revoked(&both)), (NO_DELAY, 0));
    assert!(cluster.tasks_of("m2 again").abs_diff(cluster.tasks_of("m3 again")) <= 1);
    check_unmoved(&cluster, &before, &["m1"]);
    cluster.settle();
    cluster.check_complete();
}

#[test]
fn who_comes_and_goes_again_is_neither_back_nor_missed() {
    let mut cluster = cluster(&["m1", "m2", "m3"]);
    cluster.leave("m2");
    cluster.leave("m3");
    cluster.round();
    cluster.join("guest");
    assert_eq!(assigned(&cluster.round()), 0);
    cluster.leave("guest");
    cluster.join("m2 again");
    assert_eq!(assigned(&cluster.round()), 0, "one of two is back");
    cluster.join("m3 again");
    assert_eq!(cluster.round().delay, NO_DELAY);
    cluster.settle();
    cluster.check_complete();
}

#[test]
fn a_member_that_had_nothing_before_is_nobodys_return() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 1)]);
    cluster.assignor = Assignor::dealing_early(DELAY_MAX);
    cluster.settle();
    // Its one task makes one of the three busy, its instance another; the third has nothing.
    let gone = cluster.held.iter().find(|(_, load)| !load.tasks.is_empty()).map(|(member, _)| member.clone()).unwrap();
    cluster.leave(&gone);
    let alone = cluster.round();
    assert_eq!((alone.delay, assigned(&alone)), (DELAY_MAX, 0));
    cluster.join("back");
    cluster.round();
    assert_eq!(cluster.tasks_of("back"), 1);
    cluster.check_complete();
}

#[test]
fn who_stays_away_is_waited_for_no_longer_than_the_delay() {
    let mut cluster = cluster(&["m1", "m2", "m3"]);
    cluster.leave("m3");
    let delay = cluster.round().delay;
    cluster.pass(delay);
    assert_eq!(cluster.round().delay, NO_DELAY);
    cluster.settle();
    cluster.check_complete();
}

#[test]
fn a_new_leader_knows_how_many_it_waits_for() {
    let mut cluster = cluster(&["m1", "m2", "m3"]);
    let lost = cluster.leave("m1").union(&cluster.leave("m2"));
    cluster.assignor.take_over(lost, 2, cluster.last_completed);
    assert_eq!(cluster.round().delay, DELAY_MAX);
    cluster.join("m1 again");
    assert_eq!(assigned(&cluster.round()), 0, "one of two is back");
    cluster.join("m2 again");
    assert_eq!(cluster.round().delay, NO_DELAY);
    cluster.settle();
    cluster.check_complete();
}
