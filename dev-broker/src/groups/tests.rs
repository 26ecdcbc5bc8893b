//! The coordinator's stories: forming, leaving, dying, and who is told what.

use super::*;

const SESSION: Duration = Duration::from_secs(10);
const REBALANCE: Duration = Duration::from_secs(60);

struct Story {
    groups: Groups,
    now: Timestamp,
}

fn asked(member_id: &str, protocols: &[&str]) -> JoinAsked {
    JoinAsked {
        member_id: member_id.to_owned(),
        client_id: "c".to_owned(),
        protocol_type: "connect".to_owned(),
        protocols: protocols.iter().map(|name| ((*name).to_owned(), Bytes::from_static(b"m"))).collect(),
        session: SESSION,
        rebalance: REBALANCE,
        requires_id: true,
    }
}

impl Story {
    fn new() -> Self {
        Self { groups: Groups::default(), now: Timestamp::from_millis(10_000) }
    }

    fn join(&mut self, asked: JoinAsked) -> Step {
        self.groups.join(self.now, Duration::ZERO, "g", asked)
    }

    /// A fresh id, as JoinGroup gives it.
    fn name(&mut self) -> String {
        match self.join(asked("", &["p"])) {
            Step::Now(Decision::Join(Err((ResponseError::MemberIdRequired, id)))) => id,
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.groups.tick(self.now);
    }

    fn heartbeat(&mut self, member_id: &str, generation: i32) -> Result<(), ResponseError> {
        self.groups.heartbeat(self.now, "g", Claim { member_id, generation })
    }

    fn sync(&mut self, member_id: &str, generation: i32, assignments: &[(&str, &'static [u8])]) -> Step {
        let assignments = assignments.iter().map(|(id, bytes)| ((*id).to_owned(), Bytes::from_static(bytes))).collect();
        self.groups.sync(self.now, "g", Claim { member_id, generation }, (Some("connect"), Some("p")), assignments)
    }

    /// One member alone, then a second one; both have joined generation 2.
    fn pair() -> (Self, String, String) {
        let mut story = Self::new();
        let one = story.name();
        let first = joined(story.join(asked(&one, &["p"])));
        assert_eq!((first.generation, first.leader.as_str(), first.members.len()), (1, one.as_str(), 1));
        story.sync(&one, 1, &[]);
        let two = story.name();
        assert!(matches!(story.join(asked(&two, &["p"])), Step::Wait(_)));
        assert_eq!(story.heartbeat(&one, 1), Err(ResponseError::RebalanceInProgress));
        let told = joined(story.join(asked(&one, &["p"])));
        assert_eq!((told.generation, told.members.len()), (2, 2));
        let decided = story.groups.take_decided();
        assert!(
            matches!(&decided[..], [(_, Decision::Join(Ok(second)))] if second.member_id == two && second.members.is_empty())
        );
        (story, one, two)
    }
}

fn joined(step: Step) -> Joined {
    match step {
        Step::Now(Decision::Join(Ok(joined))) => joined,
        other => panic!("{other:?}"),
    }
}

fn refused(step: Step) -> ResponseError {
    match step {
        Step::Now(Decision::Join(Err((code, _))) | Decision::Sync(Err(code))) => code,
        other => panic!("{other:?}"),
    }
}

fn assignment(decision: &Decision) -> &[u8] {
    match decision {
        Decision::Sync(Ok(synced)) => &synced.assignment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_follower_waits_for_what_the_leader_assigns() {
    let (mut story, one, two) = Story::pair();
    assert!(matches!(story.sync(&two, 2, &[]), Step::Wait(_)));
    let Step::Now(own) = story.sync(&one, 2, &[(&one, b"1"), (&two, b"2")]) else { panic!("at once") };
    assert_eq!(assignment(&own), b"1");
    let decided = story.groups.take_decided();
    assert_eq!(decided.iter().map(|(_, decision)| assignment(decision)).collect::<Vec<_>>(), [b"2"]);
    assert_eq!((story.heartbeat(&one, 2), story.heartbeat(&two, 2)), (Ok(()), Ok(())));
}

#[test]
fn a_claim_of_another_generation_or_member_is_refused() {
    let (mut story, one, _) = Story::pair();
    assert_eq!(story.heartbeat(&one, 1), Err(ResponseError::IllegalGeneration));
    assert_eq!(story.heartbeat("x", 2), Err(ResponseError::UnknownMemberId));
    assert_eq!(refused(story.sync(&one, 1, &[])), ResponseError::IllegalGeneration);
    assert_eq!(refused(story.join(asked("x", &["p"]))), ResponseError::UnknownMemberId);
    assert_eq!(refused(story.join(asked("", &["q"]))), ResponseError::InconsistentGroupProtocol);
}

#[test]
fn who_leaves_is_gone_at_once_and_the_others_rebalance() {
    let (mut story, one, two) = Story::pair();
    assert!(matches!(story.sync(&two, 2, &[]), Step::Wait(_)));
    assert_eq!(story.groups.leave(story.now, "g", &one), Ok(()));
    let decided = story.groups.take_decided();
    assert!(matches!(decided[..], [(_, Decision::Sync(Err(ResponseError::RebalanceInProgress)))]));
    let told = joined(story.join(asked(&two, &["p"])));
    assert_eq!((told.generation, told.leader.as_str()), (3, two.as_str()));
}

#[test]
fn who_is_silent_for_its_session_is_missed() {
    let (mut story, one, two) = Story::pair();
    story.sync(&one, 2, &[]);
    story.pass(SESSION / 2);
    assert_eq!(story.heartbeat(&one, 2), Ok(()));
    assert_eq!(story.groups.next_deadline(), Some(story.now + SESSION / 2));
    story.pass(SESSION / 2);
    assert_eq!(story.heartbeat(&one, 2), Err(ResponseError::RebalanceInProgress));
    assert_eq!(story.heartbeat(&two, 2), Err(ResponseError::UnknownMemberId));
    assert_eq!(joined(story.join(asked(&one, &["p"]))).members.len(), 1);
}

#[test]
fn who_does_not_join_again_in_time_is_left_behind() {
    let (mut story, one, two) = Story::pair();
    story.sync(&one, 2, &[]);
    assert!(matches!(story.join(asked(&two, &["p", "q"])), Step::Wait(_)), "its offer changed");
    for _ in 0..6 {
        story.pass(REBALANCE / 6 - Duration::from_millis(1));
        assert_eq!(story.heartbeat(&one, 2), Err(ResponseError::RebalanceInProgress), "it is alive, and late");
    }
    story.pass(Duration::from_millis(6));
    let decided = story.groups.take_decided();
    assert!(matches!(&decided[..], [(_, Decision::Join(Ok(told)))] if told.leader == two && told.members.len() == 1));
    assert_eq!(story.heartbeat(&one, 2), Err(ResponseError::UnknownMemberId));
}

#[test]
fn a_follower_that_asks_without_need_is_told_its_generation() {
    let (mut story, one, two) = Story::pair();
    story.sync(&one, 2, &[]);
    assert_eq!(joined(story.join(asked(&two, &["p"]))).generation, 2);
    // The leader may ask for a rebalance that way.
    assert!(matches!(story.join(asked(&one, &["p"])), Step::Wait(_)));
    assert_eq!(story.heartbeat(&two, 2), Err(ResponseError::RebalanceInProgress));
}

#[test]
fn a_group_that_everybody_left_keeps_no_id() {
    let (mut story, one, two) = Story::pair();
    for id in [&one, &two] {
        assert_eq!(story.groups.leave(story.now, "g", id), Ok(()));
    }
    assert_eq!(story.groups.leave(story.now, "g", &one), Err(ResponseError::UnknownMemberId));
    story.pass(REBALANCE);
    assert_eq!(story.groups.next_deadline(), None);
    let three = story.name();
    assert_eq!(joined(story.join(asked(&three, &["p"]))).leader, three);
}

#[test]
fn a_listing_shows_kind_and_state_of_each_group() {
    let (mut story, one, two) = Story::pair();
    let state = |story: &Story| {
        let listed: Vec<_> = story.groups.list().map(|one| (one.group_id, one.protocol_type, one.state)).collect();
        match listed[..] {
            [("g", "connect", state)] => state,
            _ => panic!("{listed:?}"),
        }
    };
    assert_eq!(state(&story), "CompletingRebalance");
    story.sync(&one, 2, &[(&one, b"a"), (&two, b"b")]);
    assert_eq!(state(&story), "Stable");
    story.groups.leave(story.now, "g", &two).unwrap();
    assert_eq!(state(&story), "PreparingRebalance");
    story.groups.leave(story.now, "g", &one).unwrap();
    assert_eq!(state(&story), "Empty");
}
