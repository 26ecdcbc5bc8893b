//! The stories behind the machine's rules.

use super::*;

#[test]
fn a_rejoin_asked_for_during_a_join_follows_it() {
    for way in [joining as fn() -> Member, syncing, leading] {
        let mut member = way();
        member.rejoin();
        if matches!(member.machine.state, State::Joining { .. }) {
            member.answer("join", Ok(joined(1, "other")));
        }
        member.assign();
        member.answer("sync", Ok(Answer::Synced(Bytes::new())));
        assert!(matches!(member.poll(), Some(GroupEvent::Assigned { .. })));
        assert!(matches!(member.poll(), Some(GroupEvent::Offer { cause }) if cause == "wanted"));
    }
}

#[test]
fn a_rejoin_asked_for_before_the_offer_is_part_of_it() {
    let mut member = reoffering();
    member.rejoin();
    member.offer();
    member.answer("join", Ok(joined(2, "other")));
    member.answer("sync", Ok(Answer::Synced(Bytes::new())));
    assert!(matches!(member.poll(), Some(GroupEvent::Assigned { generation: 2, .. })));
    assert!(member.poll().is_none());
}

#[test]
fn the_id_that_is_required_joins_at_once_with_the_same_offer_and_keeps_a_rejoin() {
    let mut member = joining();
    member.rejoin();
    member.answer("join", Ok(Answer::Named("me".into())));
    match member.sent.last() {
        Some((_, Request::Join { member_id, protocols: offered, .. })) => {
            assert_eq!((member_id.as_str(), offered), ("me", &protocols()));
        }
        other => panic!("{other:?}"),
    }
    assert!(member.machine.rejoin.is_some());
}

#[test]
fn an_answer_that_was_not_asked_for_is_ignored() {
    let mut member = looking();
    member.answer("find", Ok(Answer::Found(NodeId(1))));
    member.offer(); // the question was not told yet
    assert!(!member.has_sent("join"));
    let mut member = joining();
    member.answer("join", Ok(joined(1, "me")));
    member.assign();
    assert!(!member.has_sent("sync"));
}

#[test]
fn questions_are_told_until_they_are_answered() {
    let mut member = offering();
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    let mut member = leading();
    assert!(matches!(member.poll(), Some(GroupEvent::Lead { .. })));
}

#[test]
fn an_assignment_that_was_not_taken_is_told_before_the_next_offer() {
    let mut member = syncing();
    member.answer("sync", Ok(Answer::Synced(Bytes::new())));
    member.pass(HEARTBEAT);
    member.answer("heartbeat", code(27));
    assert!(matches!(member.poll(), Some(GroupEvent::Assigned { .. })));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
}

#[test]
fn an_assignment_that_is_void_before_it_was_taken_is_not_told() {
    let mut member = syncing();
    member.answer("sync", Ok(Answer::Synced(Bytes::new())));
    member.pass(HEARTBEAT);
    member.answer("heartbeat", code(25));
    assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: Lost::UnknownMember })));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
}

#[test]
fn an_unknown_member_loses_its_id_and_an_old_generation_does_not() {
    for (number, cause, id) in [(25, Lost::UnknownMember, ""), (22, Lost::IllegalGeneration, "me")] {
        let mut member = stable();
        member.pass(HEARTBEAT);
        member.answer("heartbeat", code(number));
        assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: told }) if told == cause));
        assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
        member.offer();
        match member.sent.last() {
            Some((_, Request::Join { member_id, .. })) => assert_eq!(member_id, id),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_heartbeat_of_an_older_generation_says_nothing_about_the_new_one() {
    let mut member = stable();
    member.pass(HEARTBEAT);
    member.rejoin();
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.offer();
    member.answer("join", Ok(joined(2, "other")));
    member.answer("heartbeat", code(22));
    assert_eq!((member.machine.generation, member.machine.holds), (2, true));
}

#[test]
fn the_session_counts_from_when_the_answered_heartbeat_was_sent() {
    let mut member = stable();
    member.pass(HEARTBEAT);
    let sent = member.now;
    member.now += Duration::from_secs(2);
    member.answer("heartbeat", Ok(Answer::Alive));
    member.pass(sent + SESSION - member.now - Duration::from_millis(1));
    assert!(member.machine.lost.is_none());
    member.pass(Duration::from_millis(1));
    assert_eq!(member.machine.lost, Some(Lost::SessionExpired));
    assert!(
        matches!(member.sent.last(), Some((_, Request::FindCoordinator))),
        "a silent coordinator is looked up again"
    );
}

#[test]
fn a_coordinator_that_stays_away_ends_the_assignment_once_and_is_reported_then() {
    let mut member = astray();
    member.pass(HEARTBEAT);
    assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: Lost::CoordinatorUnreachable })));
    member.answer("find", disconnected());
    for _ in 0..3 {
        member.pass(HEARTBEAT);
        let Some(GroupEvent::Failed(error)) = member.poll() else { panic!("told after each interval") };
        assert!(error.to_string().contains("coordinator of group 'g'"), "{error}");
        assert!(member.poll().is_none());
        member.pass(PAUSE);
        member.answer("find", disconnected());
    }
    member.pass(PAUSE);
    member.answer("find", Ok(Answer::Found(NodeId(1))));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    assert_eq!(member.machine.member_id, "me");
}

#[test]
fn a_coordinator_that_comes_back_in_time_hears_the_heartbeat_at_once() {
    let mut member = astray();
    member.sent.retain(|(_, request)| name(request) == "find");
    member.answer("find", Ok(Answer::Found(NodeId(2))));
    assert!(matches!(member.sent.last(), Some((_, Request::Heartbeat { node: NodeId(2), generation: 1, .. }))));
    member.answer("heartbeat", Ok(Answer::Alive));
    assert!(member.poll().is_none());
}

#[test]
fn a_refused_look_up_waits_until_it_was_told() {
    let mut member = looking();
    member.answer("find", code(30));
    member.sent.clear();
    member.pass(PAUSE);
    assert!(member.sent.is_empty());
    assert!(matches!(member.poll(), Some(GroupEvent::Failed(error)) if error.code() == Some(30)));
    assert!(member.poll().is_none());
    assert!(member.has_sent("find"));
}

#[test]
fn a_look_up_that_is_refused_for_long_is_told_as_that_and_not_as_nobody_there() {
    let mut member = looking();
    let end = member.now + HEARTBEAT * 3;
    while member.now < end {
        member.answer("find", code(30));
        while let Some(event) = member.poll() {
            assert!(matches!(event, GroupEvent::Failed(ref error) if error.code() == Some(30)), "{event:?}");
        }
        member.pass(PAUSE);
    }
}

#[test]
fn a_refused_join_is_told_each_time_and_tried_again_after_a_pause() {
    let mut member = joining();
    for _ in 0..3 {
        member.answer("join", code(23));
        assert!(matches!(member.poll(), Some(GroupEvent::Failed(error)) if error.code() == Some(23)));
        assert!(member.poll().is_none(), "it pauses");
        member.pass(PAUSE);
        assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
        member.offer();
    }
}

#[test]
fn a_refused_heartbeat_is_told_and_the_session_ends_it() {
    let mut member = stable();
    let mut told = 0;
    while member.machine.lost.is_none() {
        member.pass(Duration::from_secs(1));
        if member.machine.beat.under_way.is_some() {
            member.answer("heartbeat", code(30));
            assert!(matches!(member.poll(), Some(GroupEvent::Failed(_))));
            told += 1;
        }
    }
    assert_eq!((told, member.machine.lost), (3, Some(Lost::SessionExpired)));
}

#[test]
fn a_member_that_nobody_polls_leaves_and_joins_afresh() {
    let mut member = stable();
    for _ in 0..19 {
        member.pass(HEARTBEAT);
        member.answer("heartbeat", Ok(Answer::Alive));
    }
    member.pass(HEARTBEAT);
    assert!(matches!(member.sent.last(), Some((_, Request::Leave { member_id, .. })) if member_id == "me"));
    assert_eq!(member.machine.state, State::Idle);
    assert_eq!(member.machine.deadline(), None, "nothing goes on while nobody asks");
    assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: Lost::PollTimeout })));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.offer();
    assert!(matches!(member.sent.last(), Some((_, Request::Join { member_id, .. })) if member_id.is_empty()));
}

#[test]
fn a_join_that_failed_keeps_the_assignment_for_one_session() {
    let mut member = rejoining();
    member.answer("join", code(14));
    assert!(member.machine.holds);
    member.now += SESSION - Duration::from_millis(1);
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.pass(Duration::from_millis(1));
    assert_eq!(member.machine.lost, Some(Lost::SessionExpired));
}

#[test]
fn leaving_ends_with_the_answer_or_with_the_patience() {
    for end in
        [|member: &mut Member| member.answer("leave", Ok(Answer::Left)), |member: &mut Member| member.pass(SESSION)]
    {
        let mut member = leaving();
        assert!(member.poll().is_none());
        end(&mut member);
        assert_eq!((&member.machine.state, member.machine.member_id.as_str()), (&State::Idle, ""));
    }
}

#[test]
fn leaving_follows_the_coordinator() {
    let mut member = leaving();
    member.answer("leave", code(16));
    member.pass(PAUSE);
    member.answer("find", Ok(Answer::Found(NodeId(2))));
    assert!(matches!(member.sent.last(), Some((_, Request::Leave { node: NodeId(2), .. }))));
}

#[test]
fn a_long_reason_is_cut() {
    let mut member = stable();
    member.machine.handle_rejoin(member.now, &"ü".repeat(1_000));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.offer();
    match member.sent.last() {
        Some((_, Request::Join { reason, .. })) => assert_eq!(reason.chars().count(), REASON_CHARS_MAX),
        other => panic!("{other:?}"),
    }
}
