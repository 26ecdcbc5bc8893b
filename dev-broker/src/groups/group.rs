//! One classic group.
//!
//! ```text
//!             first member                 all joined, or time is up              leader synced
//!   Empty ─────────────────► Preparing ──────────────────────────► Completing ─────────────────► Stable
//!     ▲                        ▲   │ nobody joined                    │                            │
//!     └────────────────────────┼───┘                                  │                            │
//!                              └──────────────────────────────────────┴────────────────────────────┘
//!                                member joins, leaves, changes its offer, or its session ends
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::{Claim, Decision, Desk, JoinAsked, Joined, Step, Synced, Ticket};
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Empty,
    /// Members have until then to join.
    Preparing {
        until: Timestamp,
    },
    /// Members have until then to ask for their assignment.
    Completing {
        until: Timestamp,
    },
    Stable,
}

#[derive(Debug)]
struct Member {
    protocols: Vec<(String, Bytes)>,
    session: Duration,
    rebalance: Duration,
    alive_until: Timestamp,
    /// Its JoinGroup that waits.
    join: Option<Ticket>,
    /// Its SyncGroup that waits.
    sync: Option<Ticket>,
    /// Whether it asked for its assignment in this generation.
    synced: bool,
    assignment: Bytes,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    phase: Phase,
    generation: i32,
    protocol_type: String,
    protocol: String,
    leader: String,
    members: BTreeMap<String, Member>,
    /// Ids that were given out, and until when their owners are waited for.
    named: BTreeMap<String, Timestamp>,
}

impl Group {
    pub(super) fn len(&self) -> usize {
        self.members.len() + self.named.len()
    }

    pub(super) fn protocol_type(&self) -> &str {
        &self.protocol_type
    }

    /// Kafka's name of the state.
    pub(super) fn state(&self) -> &'static str {
        match self.phase {
            Phase::Empty => "Empty",
            Phase::Preparing { .. } => "PreparingRebalance",
            Phase::Completing { .. } => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }

    /// What each member said of itself in the protocol that was chosen, when it joined last.
    pub(super) fn metadata(&self) -> impl Iterator<Item = Bytes> {
        let of_chosen = |member: &Member| member.protocols.iter().find(|(name, _)| *name == self.protocol).cloned();
        self.members.values().filter_map(of_chosen).map(|(_, metadata)| metadata)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn join(
        &mut self,
        now: Timestamp,
        initial_delay: Duration,
        asked: JoinAsked,
        is_new: bool,
        desk: &mut Desk,
    ) -> Step {
        let refuse = |code, member_id| Step::Now(Decision::Join(Err((code, member_id))));
        if let Err(code) = self.fits(&asked) {
            let told = if is_new { String::new() } else { asked.member_id };
            return refuse(code, told);
        }
        if is_new && asked.requires_id {
            self.named.insert(asked.member_id.clone(), now + asked.session);
            return refuse(ResponseError::MemberIdRequired, asked.member_id);
        }
        let is_known = self.members.contains_key(&asked.member_id);
        if !is_new && !is_known && self.named.remove(&asked.member_id).is_none() {
            return refuse(ResponseError::UnknownMemberId, asked.member_id);
        }
        let changes_nothing = self.members.get(&asked.member_id).is_some_and(|member| {
            member.protocols == asked.protocols && !matches!(self.phase, Phase::Preparing { .. })
        });
        let is_leader = asked.member_id == self.leader;
        if changes_nothing && (!is_leader || matches!(self.phase, Phase::Completing { .. })) {
            // Its answer was lost, or it asks without need: it is in the generation already.
            return Step::Now(Decision::Join(Ok(self.told(&asked.member_id))));
        }
        if self.members.is_empty() {
            self.protocol_type.clone_from(&asked.protocol_type);
        }
        let ticket = desk.ticket();
        let member_id = asked.member_id.clone();
        self.take_in(now, asked, ticket, desk);
        match self.phase {
            Phase::Preparing { .. } => {}
            Phase::Empty => self.phase = Phase::Preparing { until: now + initial_delay },
            Phase::Completing { .. } | Phase::Stable => self.prepare(now, desk),
        }
        // With no delay the first member is the group.
        self.try_complete(now, desk);
        match desk.decided.iter().position(|(decided, _)| *decided == ticket) {
            Some(at) => Step::Now(desk.decided.swap_remove(at).1),
            None if self.members.contains_key(&member_id) => Step::Wait(ticket),
            None => refuse(ResponseError::UnknownMemberId, member_id),
        }
    }

    fn fits(&self, asked: &JoinAsked) -> Result<(), ResponseError> {
        let is_first = self.members.keys().all(|id| *id == asked.member_id);
        let same_type = is_first || asked.protocol_type == self.protocol_type;
        let is_common = |name: &String| {
            let others = self.members.iter().filter(|(id, _)| **id != asked.member_id);
            others.into_iter().all(|(_, member)| member.protocols.iter().any(|(spoken, _)| spoken == name))
        };
        let is_usable = !asked.protocol_type.is_empty() && asked.protocols.iter().any(|(name, _)| is_common(name));
        if same_type && is_usable { Ok(()) } else { Err(ResponseError::InconsistentGroupProtocol) }
    }

    fn take_in(&mut self, now: Timestamp, asked: JoinAsked, ticket: Ticket, desk: &mut Desk) {
        let before = self.members.remove(&asked.member_id);
        if let Some(older) = before.as_ref().and_then(|member| member.join) {
            // The member asks again: nobody waits for its first question any more.
            desk.decide(older, Decision::Join(Err((ResponseError::UnknownMemberId, asked.member_id.clone()))));
        }
        let member = Member {
            protocols: asked.protocols,
            session: asked.session,
            rebalance: asked.rebalance,
            alive_until: now + asked.session,
            join: Some(ticket),
            sync: before.as_ref().and_then(|member| member.sync),
            synced: false,
            assignment: before.map(|member| member.assignment).unwrap_or_default(),
        };
        self.members.insert(asked.member_id, member);
    }

    pub(super) fn sync(
        &mut self,
        now: Timestamp,
        claim: Claim<'_>,
        protocol: (Option<&str>, Option<&str>),
        assignments: Vec<(String, Bytes)>,
        desk: &mut Desk,
    ) -> Step {
        let refuse = |code| Step::Now(Decision::Sync(Err(code)));
        if let Err(code) = self.check(claim) {
            return refuse(code);
        }
        let differs = |told: Option<&str>, ours: &str| told.is_some_and(|told| told != ours);
        if differs(protocol.0, &self.protocol_type) || differs(protocol.1, &self.protocol) {
            return refuse(ResponseError::InconsistentGroupProtocol);
        }
        match self.phase {
            Phase::Empty => refuse(ResponseError::UnknownMemberId),
            Phase::Preparing { .. } => refuse(ResponseError::RebalanceInProgress),
            Phase::Stable => Step::Now(Decision::Sync(Ok(self.assignment_of(now, claim.member_id)))),
            Phase::Completing { .. } if claim.member_id == self.leader => {
                self.assign(now, assignments, desk);
                Step::Now(Decision::Sync(Ok(self.assignment_of(now, claim.member_id))))
            }
            Phase::Completing { .. } => {
                let ticket = desk.ticket();
                if let Some(member) = self.members.get_mut(claim.member_id) {
                    (member.sync, member.synced) = (Some(ticket), true);
                }
                Step::Wait(ticket)
            }
        }
    }

    fn assign(&mut self, now: Timestamp, assignments: Vec<(String, Bytes)>, desk: &mut Desk) {
        self.phase = Phase::Stable;
        let mut assignments: BTreeMap<String, Bytes> = assignments.into_iter().collect();
        for (id, member) in &mut self.members {
            member.assignment = assignments.remove(id).unwrap_or_default();
        }
        let waiting: Vec<(String, Ticket)> =
            self.members.iter_mut().filter_map(|(id, member)| Some((id.clone(), member.sync.take()?))).collect();
        for (id, ticket) in waiting {
            let synced = self.assignment_of(now, &id);
            desk.decide(ticket, Decision::Sync(Ok(synced)));
        }
    }

    fn assignment_of(&mut self, now: Timestamp, member_id: &str) -> Synced {
        let member = self.members.get_mut(member_id).map(|member| {
            member.alive_until = now + member.session;
            member.synced = true;
            member.assignment.clone()
        });
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: member.unwrap_or_default(),
        }
    }

    pub(super) fn heartbeat(&mut self, now: Timestamp, claim: Claim<'_>) -> Result<(), ResponseError> {
        self.check(claim)?;
        if let Some(member) = self.members.get_mut(claim.member_id) {
            member.alive_until = now + member.session;
        }
        match self.phase {
            Phase::Preparing { .. } => Err(ResponseError::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    fn check(&self, claim: Claim<'_>) -> Result<(), ResponseError> {
        if !self.members.contains_key(claim.member_id) {
            return Err(ResponseError::UnknownMemberId);
        }
        if claim.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, now: Timestamp, member_id: &str, desk: &mut Desk) -> Result<(), ResponseError> {
        if self.named.remove(member_id).is_some() {
            self.try_complete(now, desk);
            return Ok(());
        }
        if !self.members.contains_key(member_id) {
            return Err(ResponseError::UnknownMemberId);
        }
        self.remove(now, member_id, desk);
        Ok(())
    }

    fn remove(&mut self, now: Timestamp, member_id: &str, desk: &mut Desk) {
        let Some(member) = self.members.remove(member_id) else { return };
        if let Some(ticket) = member.join {
            let refusal = (ResponseError::UnknownMemberId, member_id.to_owned());
            desk.decide(ticket, Decision::Join(Err(refusal)));
        }
        if let Some(ticket) = member.sync {
            desk.decide(ticket, Decision::Sync(Err(ResponseError::UnknownMemberId)));
        }
        if matches!(self.phase, Phase::Completing { .. } | Phase::Stable) {
            self.prepare(now, desk);
        }
        self.try_complete(now, desk);
    }

    fn prepare(&mut self, now: Timestamp, desk: &mut Desk) {
        for member in self.members.values_mut() {
            if let Some(ticket) = member.sync.take() {
                desk.decide(ticket, Decision::Sync(Err(ResponseError::RebalanceInProgress)));
            }
        }
        let longest = self.members.values().map(|member| member.rebalance).max().unwrap_or_default();
        self.phase = Phase::Preparing { until: now + longest };
    }

    /// Forms the next generation when everybody is there, or the time is up.
    fn try_complete(&mut self, now: Timestamp, desk: &mut Desk) {
        let Phase::Preparing { until } = self.phase else { return };
        let all_joined = self.named.is_empty() && self.members.values().all(|member| member.join.is_some());
        // The first generation waits its delay out; none at all means that it need not.
        let is_initial = self.generation == 0 && until > now;
        if until > now && (!all_joined || is_initial) {
            return;
        }
        self.members.retain(|_, member| member.join.is_some());
        self.generation += 1;
        if self.members.is_empty() {
            self.phase = Phase::Empty;
            self.protocol.clear();
            self.leader.clear();
            return;
        }
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().cloned().unwrap_or_default();
        }
        self.protocol = self.chosen();
        let longest = self.members.values().map(|member| member.rebalance).max().unwrap_or_default();
        self.phase = Phase::Completing { until: now + longest };
        let mut waiting = Vec::new();
        for (id, member) in &mut self.members {
            member.synced = false;
            member.alive_until = now + member.session;
            waiting.extend(member.join.take().map(|ticket| (id.clone(), ticket)));
        }
        for (id, ticket) in waiting {
            desk.decide(ticket, Decision::Join(Ok(self.told(&id))));
        }
    }

    /// Each member votes for the first of its protocols that all speak.
    fn chosen(&self) -> String {
        let is_common =
            |name: &str| self.members.values().all(|member| member.protocols.iter().any(|(spoken, _)| spoken == name));
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let vote = member.protocols.iter().map(|(name, _)| name.as_str()).find(|name| is_common(name));
            if let Some(name) = vote {
                *votes.entry(name).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name.to_owned()).unwrap_or_default()
    }

    fn told(&self, member_id: &str) -> Joined {
        let metadata = |member: &Member| {
            let spoken = member.protocols.iter().find(|(name, _)| *name == self.protocol);
            spoken.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
        };
        let members = match member_id == self.leader {
            true => self.members.iter().map(|(id, member)| (id.clone(), metadata(member))).collect(),
            false => Vec::new(),
        };
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            member_id: member_id.to_owned(),
            members,
        }
    }

    pub(super) fn tick(&mut self, now: Timestamp, desk: &mut Desk) {
        self.named.retain(|_, until| *until > now);
        // Who waits for the group is not asked for signs of life.
        let is_dead = |member: &Member| member.alive_until <= now && member.join.is_none() && member.sync.is_none();
        let is_late =
            |member: &Member| matches!(self.phase, Phase::Completing { until } if until <= now) && !member.synced;
        let gone: Vec<String> = self
            .members
            .iter()
            .filter(|(_, member)| is_dead(member) || is_late(member))
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.remove(now, &id, desk);
        }
        self.try_complete(now, desk);
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let phase = match self.phase {
            Phase::Preparing { until } => Some(until),
            Phase::Completing { until } if self.members.values().any(|member| !member.synced) => Some(until),
            _ => None,
        };
        let waits = |member: &&Member| member.join.is_none() && member.sync.is_none();
        let sessions = self.members.values().filter(waits).map(|member| member.alive_until).min();
        [phase, sessions, self.named.values().min().copied()].into_iter().flatten().min()
    }
}
