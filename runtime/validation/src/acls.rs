//! Which rights on the Kafka cluster a worker and its connectors need (KIP-618, "Security"), as `kafka-acls` commands.
//!
//! Pure: the properties decide, no broker is asked. Left out: rights on the source system, and on Kafka clusters that a connector reads.
//! Topics that only the connector knows are named by a placeholder.

mod identity;

use std::collections::{BTreeMap, BTreeSet};

use oncewire_api::Properties;

use crate::framework::DEAD_LETTER_TOPIC;
use identity::Identity;

/// The worker's `group.id` in standalone mode when it sets none.
const STANDALONE_GROUP: &str = "oncewire-standalone";

/// What kind of thing a right is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclResource {
    /// A topic.
    Topic,
    /// A group (also the workers' own).
    Group,
    /// The cluster itself.
    Cluster,
    /// A transactional id.
    TransactionalId,
}

impl AclResource {
    fn option(self) -> &'static str {
        match self {
            Self::Topic => "--topic",
            Self::Group => "--group",
            Self::Cluster => "--cluster",
            Self::TransactionalId => "--transactional-id",
        }
    }
}

/// How the name of a resource is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclPattern {
    /// This one.
    Literal,
    /// All whose name begins so.
    Prefixed,
}

/// One right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclNeed {
    /// What it is on.
    pub resource: AclResource,
    /// The name of that; empty for the cluster.
    pub name: String,
    /// Whether the properties tell the name; else it stands for what only the connector knows.
    pub name_is_known: bool,
    /// How the name is meant.
    pub pattern: AclPattern,
    /// Kafka's names of the operations.
    pub operations: Vec<&'static str>,
    /// The principal, as `User:name`, where the properties give it away; nothing else of the credentials is looked at.
    pub principal: Option<String>,
    /// Whose credentials they are: the worker's, or those that a connector's overrides give.
    pub principal_hint: String,
    /// What it is for.
    pub why: String,
}

/// How `kafka-acls` is to be called.
#[derive(Clone, Copy, Debug)]
pub struct AclCommand<'a> {
    /// `--bootstrap-server`.
    pub bootstrap: &'a str,
    /// Whom to grant everything to, as `User:name`, in place of what the properties give away.
    pub principal: Option<&'a str>,
    /// `--command-config`: the properties file of an administrator.
    pub command_config: Option<&'a str>,
}

impl AclNeed {
    /// The command that grants it, for a POSIX shell; `None` when nobody says whom to grant it to.
    pub fn command(&self, how: &AclCommand<'_>) -> Option<String> {
        let principal = how.principal.or(self.principal.as_deref())?;
        let mut command = format!("kafka-acls --bootstrap-server {}", quoted(how.bootstrap));
        if let Some(file) = how.command_config {
            command.push_str(&format!(" --command-config {}", quoted(file)));
        }
        command.push_str(&format!(" --add --allow-principal {}", quoted(principal)));
        for operation in &self.operations {
            command.push_str(&format!(" --operation {operation}"));
        }
        command.push_str(&format!(" {}", self.resource.option()));
        if self.resource != AclResource::Cluster {
            command.push_str(&format!(" {}", quoted(&self.name)));
        }
        if self.pattern == AclPattern::Prefixed {
            command.push_str(" --resource-pattern-type prefixed");
        }
        Some(command)
    }
}

fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:,/".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// All commands, each under a comment that says what for and whose credentials they are. A command that somebody has to complete
/// first is a comment, too.
///
/// # Errors
/// Whose credentials do not give away whom to grant to, in words.
pub fn render(needs: &[AclNeed], how: &AclCommand<'_>) -> Result<String, String> {
    // A name must not end a comment.
    let comment = |text: &str| text.replace(['\n', '\r'], " ");
    let mut said = BTreeSet::new();
    let mut out = String::new();
    for need in needs {
        let command = need.command(how).ok_or_else(|| need.principal_hint.clone())?;
        // For one principal, two clients may need the same.
        if !said.insert(command.clone()) {
            continue;
        }
        let whose = match how.principal {
            Some(_) => String::new(),
            None => format!(" ({})", comment(&need.principal_hint)),
        };
        out.push_str(&format!("# {}{whose}\n", comment(&need.why)));
        if need.name_is_known {
            out.push_str(&format!("{command}\n"));
        } else {
            out.push_str(&format!("# to be completed: {}\n", comment(&command)));
        }
    }
    Ok(out)
}

/// All rights that a worker with these connectors needs. Both kinds of properties as they are used: references resolved.
pub fn required_acls(worker: &Properties, connectors: &BTreeMap<String, Properties>) -> Vec<AclNeed> {
    let cluster = ClusterNeeds::new(worker);
    let mut needs = cluster.of_worker();
    for (name, connector) in connectors {
        needs.extend(cluster.of_connector(name, connector));
    }
    let mut seen = BTreeSet::new();
    needs.retain(|need| {
        seen.insert((need.resource, need.name.clone(), need.operations.clone(), need.principal_hint.clone()))
    });
    needs
}

impl Identity {
    fn need(&self, resource: AclResource, name: &str, operations: &[&'static str], why: impl Into<String>) -> AclNeed {
        AclNeed {
            resource,
            name: name.into(),
            name_is_known: true,
            pattern: AclPattern::Literal,
            operations: operations.to_vec(),
            principal: self.principal.clone(),
            principal_hint: self.hint.clone(),
            why: why.into(),
        }
    }
}

/// What the worker's properties say about the rights.
struct ClusterNeeds<'a> {
    worker: &'a Properties,
    group: &'a str,
    is_distributed: bool,
    /// `preparing` or `enabled`: the leader writes in transactions.
    leader_is_transactional: bool,
    tasks_are_transactional: bool,
    identity: Identity,
}

impl<'a> ClusterNeeds<'a> {
    fn new(worker: &'a Properties) -> Self {
        let text = |key: &str| worker.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
        let is_distributed = text("config.storage.topic").is_some();
        let support = text("exactly.once.source.support").map(str::to_ascii_lowercase);
        let default_of_standalone = !is_distributed && text("offset.storage.file.filename").is_none();
        Self {
            worker,
            group: text("group.id").unwrap_or(STANDALONE_GROUP),
            is_distributed,
            leader_is_transactional: is_distributed && matches!(support.as_deref(), Some("preparing" | "enabled")),
            tasks_are_transactional: support.as_deref().map_or(default_of_standalone, |support| support == "enabled"),
            identity: match is_distributed {
                true => Identity::new(&[("", worker, "the worker's credentials")]),
                // Its own client is an admin's.
                false => Identity::new(&[
                    ("", worker, "the worker's credentials"),
                    ("admin.", worker, "the worker's credentials in admin.*"),
                ]),
            },
        }
    }

    /// Where source offsets go, unless a connector has a topic of its own.
    fn offsets_topic_name(&self) -> Option<String> {
        let given = self.worker.get("offset.storage.topic").map(|name| name.trim()).filter(|name| !name.is_empty());
        let of_standalone =
            || (!self.is_distributed && self.tasks_are_transactional).then(|| format!("{}-offsets", self.group));
        given.map(str::to_owned).or_else(of_standalone)
    }

    fn of_worker(&self) -> Vec<AclNeed> {
        let mut needs = Vec::new();
        let identity = &self.identity;
        if self.is_distributed {
            needs.push(identity.need(AclResource::Group, self.group, &["Read"], "the workers' group"));
        }
        let given = |key: &str| self.worker.get(key).cloned();
        for (topic, what) in [
            (given("config.storage.topic"), "configurations"),
            (given("status.storage.topic"), "states"),
            (self.offsets_topic_name(), "source offsets"),
        ] {
            let Some(topic) = topic else { continue };
            let why = format!(
                "the topic of {what}; Create only until it exists, DescribeConfigs only to check how it is cleaned up"
            );
            let operations = ["Read", "Write", "Describe", "Create", "DescribeConfigs"];
            needs.push(identity.need(AclResource::Topic, &topic, &operations, why));
        }
        if self.leader_is_transactional {
            let id = format!("connect-cluster-{}", self.group);
            let why = "the leader writes configurations in transactions (exactly.once.source.support)";
            needs.push(identity.need(AclResource::TransactionalId, &id, &["Write", "Describe"], why));
            needs.push(idempotent_write(identity));
        }
        needs
    }

    fn of_connector(&self, name: &str, connector: &Properties) -> Vec<AclNeed> {
        let whose = |client: &str| format!("the credentials of {client}.override.* of connector {name}");
        let identity = |client: &str| {
            let (of_worker, own) = (format!("{client}."), format!("{client}.override."));
            let worker_hint = format!("the worker's credentials in {client}.*");
            Identity::new(&[
                ("", self.worker, "the worker's credentials"),
                (&of_worker, self.worker, &worker_hint),
                (&own, connector, &whose(client)),
            ])
        };
        let (producer, consumer, admin) = (identity("producer"), identity("consumer"), identity("admin"));
        let mut needs = Vec::new();
        if self.tasks_are_transactional {
            needs.extend(self.transactional_ids(name, &producer, "the tasks of connector"));
            if self.is_distributed {
                needs.extend(self.transactional_ids(name, &admin, "the leader fences former tasks of connector"));
            }
            needs.push(idempotent_write(&producer));
        }
        needs.extend(self.offsets_topic(name, connector, [&producer, &consumer, &admin]));
        needs.extend(self.data_topics(name, connector, &producer, &admin));
        needs.extend(self.dead_letter_topic(name, connector, &producer, &admin));
        needs
    }

    fn transactional_ids(&self, connector: &str, identity: &Identity, why: &str) -> Option<AclNeed> {
        let ids = format!("{}-{connector}-", self.group);
        let need =
            identity.need(AclResource::TransactionalId, &ids, &["Write", "Describe"], format!("{why} {connector}"));
        Some(AclNeed { pattern: AclPattern::Prefixed, ..need })
    }

    /// With exactly-once the task itself writes its offsets, else the worker does.
    fn offsets_topic(&self, name: &str, connector: &Properties, clients: [&Identity; 3]) -> Vec<AclNeed> {
        let own = connector.get("offsets.storage.topic").cloned();
        let has_own = own.is_some();
        let global = || self.offsets_topic_name().filter(|_| self.tasks_are_transactional);
        let Some(topic) = own.or_else(global) else { return Vec::new() };
        let [producer, consumer, admin] = clients;
        let need = |identity: &Identity, operations: &[&'static str], what: &str| {
            identity.need(AclResource::Topic, &topic, operations, format!("connector {name} {what} its source offsets"))
        };
        let mut needs = vec![
            need(producer, &["Write", "Describe"], "writes"),
            need(consumer, &["Read", "Describe"], "reads"),
            need(admin, &["Describe"], "asks for the end of"),
        ];
        if has_own {
            needs.push(need(admin, &["Create"], "makes, unless it exists, the topic of"));
        }
        needs
    }

    fn data_topics(&self, name: &str, connector: &Properties, producer: &Identity, admin: &Identity) -> Vec<AclNeed> {
        let given =
            connector.get("topic").or_else(|| connector.get("topics")).map(|text| text.trim()).unwrap_or_default();
        let mut topics: Vec<String> =
            given.split(',').map(str::trim).filter(|topic| !topic.is_empty()).map(Into::into).collect();
        let is_known = !topics.is_empty();
        if !is_known {
            topics.push(format!("<a topic that {name} writes to>"));
        }
        let makes_topics = connector.keys().any(|key| key.starts_with("topic.creation."));
        let mut needs = Vec::new();
        for topic in topics {
            let why = format!("connector {name} writes its records");
            let need = |identity: &Identity, operations: &[&'static str], why: String| AclNeed {
                name_is_known: is_known,
                ..identity.need(AclResource::Topic, &topic, operations, why)
            };
            needs.push(need(producer, &["Write", "Describe"], why));
            // Without topic.creation.* a missing topic is made all the same, with the brokers' defaults, by the producer's user.
            let (maker, why) = if makes_topics {
                (admin, format!("connector {name} makes its topics (topic.creation.*)"))
            } else {
                (producer, format!("connector {name} makes its topic; only until it exists"))
            };
            needs.push(need(maker, &["Create", "Describe"], why));
        }
        needs
    }

    /// Where records go that are left out.
    fn dead_letter_topic(
        &self,
        name: &str,
        connector: &Properties,
        producer: &Identity,
        admin: &Identity,
    ) -> Vec<AclNeed> {
        let text = |key: &str| connector.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
        let is_tolerant = text("errors.tolerance").is_some_and(|tolerance| tolerance.eq_ignore_ascii_case("all"));
        let Some(topic) = text(DEAD_LETTER_TOPIC).filter(|_| is_tolerant) else { return Vec::new() };
        let (write, make) = (
            format!("connector {name} writes the records that it leaves out"),
            format!("connector {name} makes the topic of records that it leaves out; only until it exists"),
        );
        // A standalone worker has one client for both.
        let maker = if self.is_distributed { admin } else { producer };
        vec![
            producer.need(AclResource::Topic, topic, &["Write", "Describe"], write),
            maker.need(AclResource::Topic, topic, &["Create", "Describe"], make),
        ]
    }
}

fn idempotent_write(identity: &Identity) -> AclNeed {
    identity.need(AclResource::Cluster, "", &["IdempotentWrite"], "only for brokers before 2.8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(entries: &[(&str, &str)]) -> Properties {
        entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn worker(support: &str) -> Properties {
        properties(&[
            ("group.id", "g"),
            ("config.storage.topic", "g-configs"),
            ("status.storage.topic", "g-status"),
            ("offset.storage.topic", "g-offsets"),
            ("exactly.once.source.support", support),
            ("security.protocol", "SASL_SSL"),
            ("sasl.jaas.config", "a.b.PlainLoginModule required username=\"connect\" password=\"hunter2\";"),
        ])
    }

    const HOW: AclCommand<'static> = AclCommand { bootstrap: "b:9092", principal: None, command_config: None };

    fn commands(worker: &Properties, connector: Option<Properties>) -> Vec<String> {
        let connectors = connector.map(|connector| ("c".to_string(), connector)).into_iter().collect();
        required_acls(worker, &connectors).iter().map(|need| need.command(&HOW).unwrap()).collect()
    }

    #[test]
    fn a_worker_without_exactly_once_needs_its_group_and_its_topics() {
        let all = commands(&worker("disabled"), None);
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!(
            all[0],
            "kafka-acls --bootstrap-server b:9092 --add --allow-principal User:connect --operation Read --group g"
        );
        assert!(!all.iter().any(|command| command.contains("--transactional-id")));
    }

    #[test]
    fn preparing_needs_the_leaders_id_and_enabled_those_of_the_tasks_too() {
        let connector = || Some(properties(&[("topic", "t")]));
        let ids = |support| {
            let all = commands(&worker(support), connector());
            all.into_iter().filter(|command| command.contains("--transactional-id")).collect::<Vec<_>>()
        };
        let (preparing, enabled) = (ids("preparing"), ids("enabled"));
        assert_eq!(preparing.len(), 1);
        assert!(preparing[0].ends_with("--operation Write --operation Describe --transactional-id connect-cluster-g"));
        assert!(
            enabled.iter().any(|command| command.ends_with("--transactional-id g-c- --resource-pattern-type prefixed"))
        );
    }

    #[test]
    fn a_connector_with_credentials_of_its_own_is_named() {
        let own = "x required username=alice password=tiger;";
        let connector = properties(&[("topic", "t"), ("producer.override.sasl.jaas.config", own)]);
        let needs = required_acls(&worker("enabled"), &[("c".to_string(), connector)].into());
        let of_topic: Vec<_> = needs.iter().filter(|need| need.name == "t").collect();
        assert_eq!(of_topic[0].principal.as_deref(), Some("User:alice"));
        assert!(of_topic[0].principal_hint.contains("producer.override.*"));
        let ids: BTreeSet<_> =
            needs.iter().filter(|need| need.name == "g-c-").map(|need| need.principal.clone()).collect();
        assert_eq!(ids.len(), 2, "the leader fences as the worker, the tasks write as alice");
    }

    #[test]
    fn the_dead_letter_topic_is_named_where_records_are_left_out() {
        let connector = |tolerance: &str| {
            properties(&[
                ("topic", "t"),
                ("errors.tolerance", tolerance),
                ("errors.deadletterqueue.topic.name", "dead"),
                ("admin.override.sasl.jaas.config", "x required username=alice password=tiger;"),
            ])
        };
        let of_topic = |tolerance: &str| -> Vec<String> {
            let all = commands(&worker("enabled"), Some(connector(tolerance)));
            all.into_iter().filter(|command| command.ends_with("--topic dead")).collect()
        };
        assert!(of_topic("none").is_empty());
        let all = of_topic("all");
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].contains("User:connect --operation Write --operation Describe"), "{all:?}");
        assert!(all[1].contains("User:alice --operation Create --operation Describe"), "{all:?}");
    }

    #[test]
    fn no_password_is_shown() {
        let needs = required_acls(&worker("enabled"), &[("c".to_string(), properties(&[]))].into());
        let text = format!("{needs:?}{}", render(&needs, &HOW).unwrap());
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn names_are_quoted_for_the_shell() {
        assert_eq!(quoted("a-b.c_1"), "a-b.c_1");
        assert_eq!(quoted("it's; rm"), "'it'\\''s; rm'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn standalone_needs_no_group_and_no_leader() {
        let all = commands(&properties(&[("offset.storage.topic", "o")]), Some(properties(&[("topic", "t")])));
        assert!(!all.iter().any(|command| command.contains("--group") || command.contains("connect-cluster-")));
        assert!(all.iter().any(|command| command.contains("--transactional-id oncewire-standalone-c-")));
    }

    #[test]
    fn standalone_writes_its_offsets_into_the_topic_of_its_default_name() {
        let all = commands(&properties(&[("group.id", "my")]), Some(properties(&[("topic", "t")])));
        let of_offsets: Vec<_> = all.iter().filter(|command| command.ends_with("--topic my-offsets")).collect();
        assert!(of_offsets.iter().any(|command| command.contains("--operation Create")), "{all:#?}");
        assert!(of_offsets.iter().any(|command| command.contains("--operation Write")), "{all:#?}");
        assert!(all.iter().all(|command| command.contains("--allow-principal User:ANONYMOUS ")), "{all:#?}");
    }

    #[test]
    fn a_principal_that_is_given_gets_everything_once() {
        let own = "x required username=alice password=tiger;";
        let connector = properties(&[("topic", "t"), ("producer.override.sasl.jaas.config", own)]);
        let needs = required_acls(&worker("enabled"), &[("c".to_string(), connector)].into());
        let how = AclCommand { principal: Some("User:bob"), command_config: Some("admin.properties"), ..HOW };
        let text = render(&needs, &how).unwrap();
        let commands: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let once: BTreeSet<&&str> = commands.iter().collect();
        assert_eq!(once.len(), commands.len(), "{text}");
        let start =
            "kafka-acls --bootstrap-server b:9092 --command-config admin.properties --add --allow-principal User:bob ";
        assert!(commands.iter().all(|command| command.starts_with(start)), "{text}");
        assert!(!text.contains("alice") && !text.contains("credentials"), "{text}");
    }

    #[test]
    fn whom_a_certificate_stands_for_has_to_be_said() {
        let worker =
            properties(&[("group.id", "g"), ("security.protocol", "SSL"), ("ssl.keystore.location", "/k.p12")]);
        let needs = required_acls(&worker, &[("c".to_string(), properties(&[("topic", "t")]))].into());
        assert!(render(&needs, &HOW).unwrap_err().contains("certificate"));
        assert!(render(&needs, &AclCommand { principal: Some("User:CN=c"), ..HOW }).unwrap().contains("'User:CN=c'"));
    }

    #[test]
    fn what_has_to_be_completed_is_a_comment_and_no_name_ends_one() {
        let connectors = BTreeMap::from([("c\nrm -rf x".to_string(), properties(&[("topics.regex", "a.*")]))]);
        let text = render(&required_acls(&worker("enabled"), &connectors), &HOW).unwrap();
        assert!(text.contains("# to be completed: kafka-acls"), "{text}");
        let is_quoted_name = |line: &str| line.starts_with("rm -rf x-'") || line.starts_with("rm -rf x'");
        assert!(
            text.lines().all(|line| line.starts_with('#') || line.starts_with("kafka-acls ") || is_quoted_name(line)),
            "{text}"
        );
    }
}
