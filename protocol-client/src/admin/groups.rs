//! Looking at classic groups at their coordinators. DescribeGroups 0-6, ListGroups 0-5.
//!
//! Left out: groups of the newer protocols (KIP-848 consumers, share groups, streams), which have requests of their own.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::{DescribeGroupsRequest, GroupId, ListGroupsRequest};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::Admin;
use crate::cluster::{Call, CoordinatorKind, NodeId, Target};
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

/// A group as its coordinator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDescription {
    /// `Stable`, `PreparingRebalance`, `CompletingRebalance`, `Empty` or `Dead`. A group that does not exist is `Dead`.
    pub state: String,
    /// What kind of group, such as `connect`; empty when it has no members.
    pub protocol_type: String,
    /// The protocol that the members chose; empty while there is none.
    pub protocol: String,
    /// The members.
    pub members: Vec<GroupMemberDescription>,
}

/// A member as the coordinator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMemberDescription {
    /// The id that the coordinator gave it.
    pub member_id: String,
    /// Its `client.id`.
    pub client_id: String,
    /// From where it is connected.
    pub client_host: String,
    /// What it offered in the chosen protocol.
    pub metadata: Bytes,
    /// What it was assigned.
    pub assignment: Bytes,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// `group.id`.
    pub group_id: String,
    /// What kind of group, such as `connect`.
    pub protocol_type: String,
    /// As in [`GroupDescription::state`]; empty from brokers that don't tell (before Kafka 2.6).
    pub state: String,
}

impl Admin {
    /// A group at its coordinator.
    ///
    /// # Errors
    /// The coordinator's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn describe_group(&self, group_id: &str) -> Result<GroupDescription, Error> {
        let mut retry = self.cluster.retry(format!("describing group '{group_id}'"), self.cluster.patience());
        loop {
            match self.try_describe_group(group_id).await {
                Err(error) if error.retriable() => {
                    if error.coordinator_is_stale() {
                        self.cluster.forget_coordinator(CoordinatorKind::Group, group_id);
                    }
                    retry.pause(error).await?;
                }
                other => return other.map_err(|error| self.cluster.with_user(error)),
            }
        }
    }

    async fn try_describe_group(&self, group_id: &str) -> Result<GroupDescription, Error> {
        let node = self.cluster.coordinator(CoordinatorKind::Group, group_id).await?;
        let groups = vec![GroupId(StrBytes::from_string(group_id.to_owned()))];
        let build = |_| DescribeGroupsRequest::default().with_groups(groups);
        let reply = self.cluster.call(Call::to(Target::Node(node)), build).await?;
        let subject = format!("group '{group_id}'");
        let described = reply.body.groups.into_iter().find(|group| group.group_id.as_str() == group_id);
        match described {
            None => Err(Error::broker("DescribeGroups", codes::COORDINATOR_NOT_AVAILABLE, subject)),
            Some(group) => match group.error_code {
                codes::NONE => Ok(description(group)),
                // Since version 6 (KIP-1043) a group that is not there has a code; before it was Dead.
                codes::GROUP_ID_NOT_FOUND => Ok(GroupDescription { state: "Dead".to_owned(), ..description(group) }),
                code => {
                    let message = group.error_message.map(|message| message.to_string());
                    Err(Error::Broker(BrokerError { api: "DescribeGroups", code, subject, message, user: None }))
                }
            },
        }
    }

    /// The groups of all coordinators, in no order.
    ///
    /// # Errors
    /// When one broker cannot be asked within `default.api.timeout.ms`: a listing with holes would look complete.
    pub async fn list_groups(&self) -> Result<Vec<ListedGroup>, Error> {
        let deadline = Instant::now() + self.cluster.patience();
        let mut listed = BTreeMap::new();
        for broker in self.cluster.brokers() {
            let patience = deadline.saturating_duration_since(Instant::now());
            let mut retry = self.cluster.retry(format!("listing the groups of {}", broker.id), patience);
            let found = loop {
                match self.try_list_groups(broker.id).await {
                    Err(error) if error.retriable() => retry.pause(error).await?,
                    other => break other.map_err(|error| self.cluster.with_user(error))?,
                }
            };
            // While a coordinator moves, two brokers may both name a group.
            listed.extend(found.into_iter().map(|one| (one.group_id.clone(), one)));
        }
        Ok(listed.into_values().collect())
    }

    async fn try_list_groups(&self, node: NodeId) -> Result<Vec<ListedGroup>, Error> {
        let reply = self.cluster.call(Call::to(Target::Node(node)), |_| ListGroupsRequest::default()).await?;
        if reply.body.error_code != codes::NONE {
            return Err(Error::broker("ListGroups", reply.body.error_code, node.to_string()));
        }
        let listed = reply.body.groups.iter().map(|group| ListedGroup {
            group_id: group.group_id.to_string(),
            protocol_type: group.protocol_type.to_string(),
            state: group.group_state.to_string(),
        });
        Ok(listed.collect())
    }
}

fn description(group: DescribedGroup) -> GroupDescription {
    let members = group.members.into_iter().map(|member| GroupMemberDescription {
        member_id: member.member_id.to_string(),
        client_id: member.client_id.to_string(),
        client_host: member.client_host.to_string(),
        metadata: member.member_metadata,
        assignment: member.member_assignment,
    });
    GroupDescription {
        state: group.group_state.to_string(),
        protocol_type: group.protocol_type.to_string(),
        protocol: group.protocol_data.to_string(),
        members: members.collect(),
    }
}
