//! `topic.creation.*`: how topics that a source connector needs are made (KIP-158).
//!
//! Groups are asked in the order of `topic.creation.groups`; a group takes a topic that one of its `include` patterns matches
//! whole and none of its `exclude` patterns does. The group `default` comes last and takes every topic.

use super::properties::Properties;
use regex::Regex;
use std::collections::BTreeMap;

const PREFIX: &str = "topic.creation.";

/// How to make a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// `None`: the broker's default (written as -1).
    pub partitions: Option<i32>,
    /// `None`: the broker's default (written as -1).
    pub replication_factor: Option<i16>,
    /// Topic settings such as `cleanup.policy`.
    pub configs: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
struct Group {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
    rule: Rule,
}

/// All groups of one connector; empty when it sets none.
#[derive(Debug, Clone, Default)]
pub struct TopicCreation {
    groups: Vec<Group>,
}

impl TopicCreation {
    /// Reads the connector's `topic.creation.*` properties.
    ///
    /// # Errors
    /// One line for each property that can't be used.
    pub fn parse(config: &Properties) -> Result<Self, Vec<String>> {
        if !config.keys().any(|key| key.starts_with(PREFIX)) {
            return Ok(Self::default());
        }
        let mut problems = Vec::new();
        let fallback = rule(config, "default", None, &mut problems);
        let listed = config.get("topic.creation.groups").map(String::as_str).unwrap_or_default();
        let mut names: Vec<&str> = Vec::new();
        for name in listed.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "default") {
            if names.contains(&name) {
                problems.push(format!("topic.creation.groups names {name:?} twice"));
            }
            names.push(name);
        }
        let mut groups = Vec::new();
        for name in names {
            groups.push(Group {
                include: patterns(config, name, "include", &mut problems),
                exclude: patterns(config, name, "exclude", &mut problems),
                rule: rule(config, name, Some(&fallback), &mut problems),
            });
        }
        groups.push(Group { include: Regex::new("").into_iter().collect(), exclude: Vec::new(), rule: fallback });
        if problems.is_empty() { Ok(Self { groups }) } else { Err(problems) }
    }

    /// How to make this topic; `None` when the connector sets no `topic.creation.*`.
    pub fn rule_for(&self, topic: &str) -> Option<&Rule> {
        let takes = |group: &&Group| {
            group.include.iter().any(|pattern| pattern.is_match(topic))
                && !group.exclude.iter().any(|pattern| pattern.is_match(topic))
        };
        self.groups.iter().find(takes).map(|group| &group.rule)
    }
}

fn patterns(config: &Properties, group: &str, which: &str, problems: &mut Vec<String>) -> Vec<Regex> {
    let key = format!("{PREFIX}{group}.{which}");
    let listed = config.get(&key).map(String::as_str).unwrap_or_default();
    let mut out = Vec::new();
    for text in listed.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        match Regex::new(&format!("^(?:{text})$")) {
            Ok(pattern) => out.push(pattern),
            Err(error) => problems.push(format!("{key}: {text:?} is not a regular expression: {error}")),
        }
    }
    out
}

fn rule(config: &Properties, group: &str, fallback: Option<&Rule>, problems: &mut Vec<String>) -> Rule {
    let mut count = |what: &str, of_fallback: Option<Option<i64>>| -> Option<i64> {
        let key = format!("{PREFIX}{group}.{what}");
        match config.get(&key).map(|text| text.trim()) {
            None => match of_fallback {
                Some(value) => value,
                None => {
                    problems.push(format!(
                        "{key} must be set (1 or more, or -1 for the broker's default) once any topic.creation.* is"
                    ));
                    None
                }
            },
            Some(text) => match text.parse::<i64>() {
                Ok(-1) => None,
                Ok(value) if (1..=i64::from(i16::MAX)).contains(&value) => Some(value),
                _ => {
                    problems.push(format!(
                        "{key} is {text:?}; it must be a whole number of 1 or more, or -1 for the broker's default"
                    ));
                    None
                }
            },
        }
    };
    let partitions = count("partitions", fallback.map(|rule| rule.partitions.map(i64::from)));
    let replicas = count("replication.factor", fallback.map(|rule| rule.replication_factor.map(i64::from)));
    let prefix = format!("{PREFIX}{group}.");
    let own = ["partitions", "replication.factor", "include", "exclude"];
    let configs = config
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)))
        .filter(|(key, _)| !own.contains(key))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    Rule {
        partitions: partitions.and_then(|value| i32::try_from(value).ok()),
        replication_factor: replicas.and_then(|value| i16::try_from(value).ok()),
        configs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn no_properties_no_rule() {
        assert!(TopicCreation::parse(&config(&[("topic", "t")])).unwrap().rule_for("t").is_none());
    }

    #[test]
    fn the_first_matching_group_wins_exclude_beats_include_and_default_takes_the_rest() {
        let creation = TopicCreation::parse(&config(&[
            ("topic.creation.default.partitions", "-1"),
            ("topic.creation.default.replication.factor", "1"),
            ("topic.creation.groups", "big, logs"),
            ("topic.creation.big.include", "log-big,x.*"),
            ("topic.creation.big.exclude", "xx"),
            ("topic.creation.big.partitions", "12"),
            ("topic.creation.logs.include", "log.*"),
            ("topic.creation.logs.cleanup.policy", "compact"),
        ]))
        .unwrap();
        assert_eq!(creation.rule_for("log-big").unwrap().partitions, Some(12));
        assert_eq!(creation.rule_for("xx").unwrap().partitions, None);
        let logs = creation.rule_for("log-small").unwrap();
        assert_eq!((logs.partitions, logs.replication_factor), (None, Some(1)));
        assert_eq!(logs.configs["cleanup.policy"], "compact");
        assert!(creation.rule_for("else").unwrap().configs.is_empty(), "a pattern matches whole names only");
    }

    #[test]
    fn each_bad_property_is_named() {
        let problems = TopicCreation::parse(&config(&[
            ("topic.creation.default.partitions", "0"),
            ("topic.creation.groups", "a"),
            ("topic.creation.a.include", "("),
        ]))
        .unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("topic.creation.default.partitions is \"0\""));
        assert!(problems[1].starts_with("topic.creation.default.replication.factor must be set"));
        assert!(problems[2].starts_with("topic.creation.a.include"));
    }
}
