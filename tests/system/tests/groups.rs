//! Membership of a classic group at a real coordinator: forming, leaving, dropping out, a broker that crashes, an owner that is stuck.
//!
//! One broker for all stories of a target; each story has a group of its own.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncewire_client::admin::{Admin, ConfigChange, NewTopic};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::group::{GroupConfig, GroupEvent, GroupMember, Lost, Protocol};
use oncewire_system_tests::client::Client;
use oncewire_system_tests::services::{KafkaOptions, Protection, RealKafka};
use oncewire_system_tests::target::{Broker, Target, alone};

const SESSION: Duration = Duration::from_secs(6); // the least that a broker allows by default
const REBALANCE: Duration = Duration::from_secs(8);
const HEARTBEAT: Duration = Duration::from_secs(1);

/// For anything that should take no more than a rebalance.
const PATIENCE: Duration = Duration::from_secs(20);

/// A new group waits this long for more members (`group.initial.rebalance.delay.ms`, 3 s by default).
const PROPERTIES: &[&str] = &["group.initial.rebalance.delay.ms=300"];

fn config(group: &str) -> GroupConfig {
    GroupConfig {
        group_id: group.to_owned(),
        protocol_type: "connect".to_owned(),
        session_timeout: SESSION,
        rebalance_timeout: REBALANCE,
        heartbeat_interval: HEARTBEAT,
    }
}

/// A member with what it offers, and what it was told so far.
struct Member {
    name: &'static str,
    protocols: &'static [&'static str],
    group: GroupMember,
    /// Generation, protocol and assignment.
    assigned: Option<(i32, String, String)>,
    leads: bool,
    lost: Vec<Lost>,
}

impl Member {
    fn new(cluster: &Cluster, group: &str, name: &'static str, protocols: &'static [&'static str]) -> Self {
        let group = GroupMember::new(cluster.clone(), config(group));
        Member { name, protocols, group, assigned: None, leads: false, lost: Vec::new() }
    }

    /// Takes one event and answers it. The leader tells each member how many there are.
    async fn turn(&mut self) {
        match self.group.next().await {
            GroupEvent::Offer { cause } => {
                println!("{} offers: {cause}", self.name);
                let offer = |name: &&str| Protocol {
                    name: (*name).to_owned(),
                    metadata: Bytes::copy_from_slice(self.name.as_bytes()),
                };
                self.group.offer(self.protocols.iter().map(offer).collect());
            }
            GroupEvent::Lead { generation, members, .. } => {
                let names: Vec<String> =
                    members.iter().map(|(_, metadata)| String::from_utf8_lossy(metadata).into_owned()).collect();
                println!("{} leads generation {generation} of {names:?}", self.name);
                let assignment = Bytes::from(members.len().to_string());
                self.group.assign(members.into_iter().map(|(id, _)| (id, assignment.clone())).collect());
            }
            GroupEvent::Assigned { generation, protocol, member_id, leader_id, assignment } => {
                println!("{} is in generation {generation}, {protocol}, of {assignment:?}", self.name);
                assert_eq!((member_id.as_str(), generation), (self.group.member_id(), self.group.generation()));
                self.leads = leader_id == member_id;
                self.assigned = Some((generation, protocol, String::from_utf8_lossy(&assignment).into_owned()));
            }
            GroupEvent::Lost { cause } => {
                println!("{} lost its assignment: {cause}", self.name);
                self.assigned = None;
                self.lost.push(cause);
            }
            GroupEvent::Failed(error) => println!("{}: {error}", self.name),
        }
    }

    fn size(&self) -> Option<&str> {
        self.assigned.as_ref().map(|(_, _, size)| size.as_str())
    }
}

/// Lets all members take their turns until the condition holds.
async fn until(members: &mut [&mut Member], what: &str, holds: impl Fn(&[&mut Member]) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds(members) {
        assert!(Instant::now() < deadline, "{what}");
        // Whoever has nothing to say loses its turn: `next` is cancel safe.
        let mut turns: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
        for member in members.iter_mut() {
            turns.push(Box::pin(member.turn()));
        }
        let any = std::future::poll_fn(|context| {
            let mut ended = false;
            for turn in &mut turns {
                ended |= turn.as_mut().poll(context).is_ready();
                if ended {
                    return std::task::Poll::Ready(());
                }
            }
            std::task::Poll::Pending
        });
        // Out of time is found out above.
        drop(tokio::time::timeout(HEARTBEAT, any).await);
    }
}

fn all_agree_on(size: &str) -> impl Fn(&[&mut Member]) -> bool + '_ {
    move |members| {
        let generation = members[0].assigned.as_ref().map(|(generation, _, _)| *generation);
        members.iter().all(|member| {
            member.size() == Some(size) && member.assigned.as_ref().map(|(generation, _, _)| *generation) == generation
        })
    }
}

async fn three_members_form_a_group_and_two_of_them_go(cluster: &Cluster) {
    let all: &[&str] = &["sessioned", "compatible", "default"];
    let mut a = Member::new(cluster, "going", "a", all);
    let mut b = Member::new(cluster, "going", "b", all);
    let mut c = Member::new(cluster, "going", "c", &["compatible", "default"]);
    until(&mut [&mut a, &mut b, &mut c], "three members agree", all_agree_on("3")).await;
    let protocol = |member: &Member| member.assigned.as_ref().map(|(_, protocol, _)| protocol.clone());
    assert_eq!(protocol(&a).as_deref(), Some("compatible"), "all speak it, and most prefer it among those");
    assert_eq!([&a, &b, &c].iter().filter(|member| member.leads).count(), 1);

    let described = Admin::new(cluster.clone()).describe_group("going").await.expect("the group can be described");
    assert_eq!((described.state.as_str(), described.members.len()), ("Stable", 3));
    assert_eq!((described.protocol_type.as_str(), described.protocol.as_str()), ("connect", "compatible"));
    assert!(described.members.iter().all(|member| member.assignment == "3"));
    let listed = Admin::new(cluster.clone()).list_groups().await.expect("groups can be listed");
    assert!(listed.iter().any(|group| group.group_id == "going" && group.protocol_type == "connect"), "{listed:?}");

    // An orderly leave: the others know it with their next heartbeats.
    let began = Instant::now();
    c.group.leave("the story goes on", PATIENCE).await;
    assert_eq!((c.group.member_id(), c.group.generation()), ("", -1));
    until(&mut [&mut a, &mut b], "the others go on", all_agree_on("2")).await;
    assert!(began.elapsed() < SESSION, "nobody waited for a session to end: {:?}", began.elapsed());

    // A member that drops out without a word is missed when its session ends.
    let began = Instant::now();
    drop(b);
    until(&mut [&mut a], "the last one goes on", all_agree_on("1")).await;
    assert!(began.elapsed() > SESSION - HEARTBEAT - HEARTBEAT, "{:?}", began.elapsed());
    assert!(a.leads && a.lost.is_empty() && c.lost.is_empty());

    // Who left joins afresh.
    until(&mut [&mut a, &mut c], "the one that left is back", all_agree_on("2")).await;
    c.group.leave("the story ends", PATIENCE).await;
    a.group.leave("the story ends", PATIENCE).await;
    let described = Admin::new(cluster.clone()).describe_group("going").await.expect("the group can be described");
    assert_eq!((described.state.as_str(), described.members.len()), ("Empty", 0));
}

async fn rejoins_are_not_lost_and_keep_the_id(cluster: &Cluster) {
    let mut a = Member::new(cluster, "again", "a", &["default"]);
    until(&mut [&mut a], "it is alone in its group", all_agree_on("1")).await;
    let id = a.group.member_id().to_owned();
    let first = a.group.generation();
    a.group.rejoin("for the story");
    // In the middle of the join that was asked for, another one.
    while !matches!(a.group.next().await, GroupEvent::Lead { .. }) {
        a.group.offer(vec![Protocol { name: "default".to_owned(), metadata: Bytes::from_static(b"a") }]);
    }
    a.group.rejoin("and again");
    until(&mut [&mut a], "both joins are done", |members| {
        members[0].assigned.as_ref().is_some_and(|(generation, _, _)| *generation >= first + 2)
    })
    .await;
    assert_eq!((a.group.member_id(), a.lost.len()), (id.as_str(), 0));
    a.group.leave("the story ends", PATIENCE).await;
}

async fn an_owner_that_is_stuck_leaves_its_work_to_others(cluster: &Cluster) {
    let mut a = Member::new(cluster, "stuck", "a", &["default"]);
    let mut b = Member::new(cluster, "stuck", "b", &["default"]);
    until(&mut [&mut a, &mut b], "two members agree", all_agree_on("2")).await;
    let began = Instant::now();
    // Nobody polls b, so it leaves. Its heartbeats would keep it in the group for ever.
    until(&mut [&mut a], "the other one has it all", all_agree_on("1")).await;
    assert!(began.elapsed() >= REBALANCE - HEARTBEAT, "{:?}", began.elapsed());
    until(&mut [&mut a, &mut b], "it comes back", all_agree_on("2")).await;
    assert_eq!((b.lost.as_slice(), a.lost.len()), ([Lost::PollTimeout].as_slice(), 0));
    a.group.leave("the story ends", PATIENCE).await;
    b.group.leave("the story ends", PATIENCE).await;
}

async fn a_group_without_a_common_protocol_is_told(cluster: &Cluster) {
    let mut a = Member::new(cluster, "babel", "a", &["default"]);
    until(&mut [&mut a], "it is alone in its group", all_agree_on("1")).await;
    let mut other = GroupMember::new(cluster.clone(), config("babel"));
    let refused = loop {
        match other.next().await {
            GroupEvent::Failed(error) => break error,
            _ => other.offer(vec![Protocol { name: "unheard".to_owned(), metadata: Bytes::new() }]),
        }
    };
    println!("refused: {refused}");
    assert_eq!(refused.code(), Some(23), "{refused}");
    a.group.leave("the story ends", PATIENCE).await;
}

/// The coordinator dies and comes back with the group as it was: everybody stops its work, and finds back.
async fn a_broker_crash_ends_the_assignment_and_not_the_group(cluster: &Cluster, broker: &Broker) {
    let mut a = Member::new(cluster, "crash", "a", &["default"]);
    let mut b = Member::new(cluster, "crash", "b", &["default"]);
    until(&mut [&mut a, &mut b], "two members agree", all_agree_on("2")).await;
    let before = a.group.generation();
    broker.kill9();
    until(&mut [&mut a, &mut b], "both stop their work", |members| members.iter().all(|one| !one.lost.is_empty()))
        .await;
    for member in [&a, &b] {
        assert_eq!(member.lost, [Lost::CoordinatorUnreachable], "{}", member.name);
    }
    broker.restart();
    until(&mut [&mut a, &mut b], "both are back", all_agree_on("2")).await;
    assert!(a.group.generation() > before);
    a.group.leave("the story ends", PATIENCE).await;
    b.group.leave("the story ends", PATIENCE).await;
}

fn stories(target: Target) {
    let broker = target.start_with(PROPERTIES);
    let client = Client::connect(broker.bootstrap());
    assert!(client.cluster().cluster_id().is_some_and(|id| !id.is_empty()));
    let began = Instant::now();
    client.block_on(async {
        let config = ClientConfig::new(broker.bootstrap()).expect("a test's address is one");
        let cluster = Cluster::connect(config).await.expect("the broker answers");
        three_members_form_a_group_and_two_of_them_go(&cluster).await;
        println!("{:.1?}", began.elapsed());
        rejoins_are_not_lost_and_keep_the_id(&cluster).await;
        println!("{:.1?}", began.elapsed());
        an_owner_that_is_stuck_leaves_its_work_to_others(&cluster).await;
        println!("{:.1?}", began.elapsed());
        a_group_without_a_common_protocol_is_told(&cluster).await;
        println!("{:.1?}", began.elapsed());
        a_broker_crash_ends_the_assignment_and_not_the_group(&cluster, &broker).await;
        println!("{:.1?}", began.elapsed());
        cluster.close().await;
    });
}

/// A user that no ACL names is told what it misses; nobody guesses from a code.
fn missing_permissions_are_named(client: &Client) {
    let admin = client.admin();
    let told = |error: Error, words: &[&str]| {
        let text = error.to_string();
        println!("{text}");
        assert!(error.missing_permission().is_some(), "{text}");
        assert!(text.contains("user 'bob'") && words.iter().all(|word| text.contains(word)), "{text}");
    };
    client.block_on(async {
        let topic = NewTopic {
            name: "denied".to_owned(),
            partitions: Some(1),
            replication_factor: Some(1),
            configs: std::collections::BTreeMap::new(),
        };
        told(admin.create_topic(&topic).await.expect_err("denied"), &["topic denied", "Create", "Topic"]);
        told(admin.topic_configs("denied", &[]).await.expect_err("denied"), &["topic denied", "DescribeConfigs"]);
        let change = [("retention.ms", ConfigChange::Set("1000".to_owned()))];
        told(
            admin.alter_topic_configs("denied", &change).await.expect_err("denied"),
            &["topic denied", "AlterConfigs"],
        );
        told(client.cluster().topic("denied").await.expect_err("denied"), &["topic denied", "Describe"]);
        told(admin.describe_group("denied").await.expect_err("denied"), &["group 'denied'", "Describe", "Group"]);
        let fenced = admin.fence_producers(&["denied".to_owned()], PATIENCE, PATIENCE).await;
        for (_, outcome) in fenced {
            told(outcome.expect_err("denied"), &["transactional id 'denied'", "Describe", "TransactionalId"]);
        }
        let mut member = Member::new(client.cluster(), "denied", "bob", &["default"]);
        let GroupEvent::Failed(error) = member.group.next().await else { panic!("the look-up is refused") };
        told(error, &["group 'denied'", "Describe", "Group"]);
    });
}

#[test]
#[ignore = "needs Apache Kafka"]
fn missing_permissions_are_named_on_kafka_4_3_1() {
    let _alone = alone();
    let options = KafkaOptions { version: "4.3.1", transaction_version: None, properties: &[] };
    let protection =
        Protection { listeners: &["SASL_PLAINTEXT"], users: &["bob=bob-secret"], super_users: Some(&["alice"]) };
    let broker = RealKafka::start_protected(options, protection);
    let jaas =
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"bob\" password=\"bob-secret\";";
    let properties = [
        ("bootstrap.servers", broker.listener("SASL_PLAINTEXT")),
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.jaas.config", jaas),
    ];
    let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let (config, unknown) = ClientConfig::from_properties(&properties).expect("the settings are right");
    assert!(unknown.is_empty(), "{unknown:?}");
    let client = Client::connect_with(config).expect("bob may log in");
    missing_permissions_are_named(&client);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn groups_on_kafka_4_3_1() {
    stories(Target::Kafka431);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn groups_on_kafka_3_9_2() {
    stories(Target::Kafka392);
}
