//! What was answered, in words that are the same on every broker.

use kafka_protocol::ResponseError;

/// Lines of text; producer ids become letters in the order in which they appear.
#[derive(Default)]
pub(crate) struct Transcript {
    lines: Vec<String>,
    producers: Vec<i64>,
}

impl Transcript {
    pub(crate) fn story(&mut self, title: &str) {
        self.lines.push(format!("# {title}"));
        self.producers.clear();
    }

    pub(crate) fn note(&mut self, step: &str, answer: impl AsRef<str>) {
        self.lines.push(format!("{step}: {}", answer.as_ref()));
    }

    /// Notes an error code only.
    pub(crate) fn code(&mut self, step: &str, code: i16) {
        self.note(step, code_name(code));
    }

    /// Notes an error code, or the producer that came with success.
    pub(crate) fn producer(&mut self, step: &str, code: i16, id: i64, epoch: i16) {
        let answer = match code {
            0 => format!("{} epoch {epoch}", self.letter(id)),
            code => code_name(code),
        };
        self.note(step, answer);
    }

    pub(crate) fn letter(&mut self, id: i64) -> String {
        if id < 0 {
            return "nobody".to_owned();
        }
        let index = self.producers.iter().position(|known| *known == id).unwrap_or_else(|| {
            self.producers.push(id);
            self.producers.len() - 1
        });
        format!("producer {}", char::from(b'A' + u8::try_from(index).expect("few producers")))
    }

    pub(crate) fn text(self) -> String {
        self.lines.join("\n") + "\n"
    }
}

pub(crate) fn code_name(code: i16) -> String {
    match ResponseError::try_from_code(code) {
        None => "NONE".to_owned(),
        Some(error) => format!("{code} {error:?}"),
    }
}
