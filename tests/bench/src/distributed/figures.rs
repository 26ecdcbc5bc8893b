//! What was measured of both sides, as medians beside each other, their ratio, and what the project wants.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Section;
use crate::report::{Aim, number_or_dash, table};
use crate::run::Side;
use crate::statistics::median;

/// Something that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// With its unit.
    pub name: &'static str,
    /// For our side's median.
    #[serde(skip)]
    pub aim: Option<Aim>,
}

impl Figure {
    /// A figure that nobody has an aim for.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, aim: None }
    }

    /// A figure that should be no more than this.
    #[must_use]
    pub const fn at_most(name: &'static str, most: f64) -> Self {
        Self { name, aim: Some(Aim::AtMost(most)) }
    }
}

/// One value.
#[derive(Debug, Clone, Serialize)]
struct Sample {
    section: Section,
    figure: &'static str,
    side: Side,
    round: u32,
    value: f64,
}

/// All values.
#[derive(Debug, Default)]
pub struct Measured {
    samples: Vec<Sample>,
    /// In their order of appearance.
    figures: Vec<(Section, Figure)>,
    /// What each section was made with.
    titles: Vec<(Section, String)>,
    /// What could not be measured, and why.
    failures: Vec<String>,
}

/// Where values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which section.
    pub section: Section,
    /// Whose.
    pub side: Side,
    /// From 1.
    pub round: u32,
}

impl Measured {
    /// Says what a section is made with, once.
    pub fn title(&mut self, section: Section, title: String) {
        if self.titles.iter().all(|(known, _)| *known != section) {
            self.titles.push((section, title));
        }
    }

    /// Keeps a value.
    pub fn add(&mut self, place: Place, figure: Figure, value: f64) {
        let Place { section, side, round } = place;
        if !self.figures.contains(&(section, figure)) {
            self.figures.push((section, figure));
        }
        self.samples.push(Sample { section, figure: figure.name, side, round, value });
    }

    /// Keeps what could not be measured.
    pub fn fail(&mut self, place: Place, error: &anyhow::Error) {
        let Place { section, side, round } = place;
        self.failures.push(format!("{}, {}, round {round}: {error:#}", section.name(), side.name()));
    }

    /// What could not be measured.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// The values of one place, for people who wait.
    #[must_use]
    pub fn of(&self, place: Place) -> String {
        let of = self
            .samples
            .iter()
            .filter(|sample| (sample.section, sample.side, sample.round) == (place.section, place.side, place.round));
        of.map(|sample| format!("{} {}", sample.figure, crate::report::number(sample.value)))
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn median(&self, section: Section, figure: Figure, side: Side) -> Option<f64> {
        let of = |sample: &&Sample| (sample.section, sample.figure, sample.side) == (section, figure.name, side);
        median(self.samples.iter().filter(of).map(|sample| sample.value).collect())
    }

    /// A table for each section.
    #[must_use]
    pub fn tables(&self) -> String {
        let table_of = |(section, title): &(Section, String)| {
            let mut table = table(&["", "oncewire", "Kafka Connect", "ratio", "what the project wants"]);
            for (_, figure) in self.figures.iter().filter(|(of, _)| of == section) {
                let ours = self.median(*section, *figure, Side::Oncewire);
                let java = self.median(*section, *figure, Side::Java);
                let ratio = ours.zip(java).filter(|(_, java)| *java > 0.0).map(|(ours, java)| ours / java);
                let verdict = ours.zip(figure.aim).map(|(ours, aim)| format!("ours: {}", aim.verdict(ours)));
                table.add_row([
                    figure.name.to_owned(),
                    number_or_dash(ours),
                    number_or_dash(java),
                    number_or_dash(ratio),
                    verdict.unwrap_or_default(),
                ]);
            }
            format!("{title}\n{table}")
        };
        let mut parts: Vec<String> = self.titles.iter().map(table_of).collect();
        parts.extend(self.failures.iter().map(|failure| format!("not measured: {failure}")));
        parts.join("\n\n")
    }

    /// Everything.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut medians = Map::new();
        for (section, figure) in &self.figures {
            let of = |side| self.median(*section, *figure, side);
            let (ours, java) = (of(Side::Oncewire), of(Side::Java));
            let ratio = ours.zip(java).filter(|(_, java)| *java > 0.0).map(|(ours, java)| ours / java);
            let place = medians.entry(section.name()).or_insert_with(|| json!({}));
            place[figure.name] = json!({ "oncewire": ours, "java": java, "ratio": ratio });
        }
        json!({ "samples": self.samples, "medians": medians, "failures": self.failures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stand_beside_each_other_with_their_ratio_and_the_aim() {
        let mut measured = Measured::default();
        measured.title(Section::Start, "starts".to_owned());
        let figure = Figure::at_most("start to GET /, s", 0.1);
        for (round, side, value) in
            [(1, Side::Oncewire, 0.05), (2, Side::Oncewire, 0.06), (3, Side::Oncewire, 9.0), (1, Side::Java, 6.0)]
        {
            measured.add(Place { section: Section::Start, side, round }, figure, value);
        }
        let failed = Place { section: Section::Kill, side: Side::Java, round: 2 };
        measured.fail(failed, &anyhow::anyhow!("it did not come back"));
        let text = measured.tables();
        assert!(text.contains("0.06") && text.contains(" 0.01 |") && text.contains("aim ≤ 0.1: met"), "{text}");
        assert!(text.ends_with("not measured: kill, Kafka Connect, round 2: it did not come back"), "{text}");
        assert_eq!(measured.to_json()["medians"]["start"]["start to GET /, s"]["java"], 6.0);
    }
}
