//! One event is one line: characters that would end a line, move the cursor or turn the text around are written out.
//!
//! Names come from outside: a connector's name may hold a line feed, and what follows it must not pass for a line of this
//! program. It is mended here, at the outlet, since names are put into messages in a hundred places. On a terminal the colours
//! that tracing-subscriber writes itself stay. It writes those in a message out, but not those in a `%` field: a name there can
//! colour its line, and not more.

use std::borrow::Cow;
use std::io::{self, Write};

/// Further lines of a text that a person reads, such as a panic's, begin so: none of them looks like the start of a log line.
const INDENT: &str = "  ";

/// What tracing-subscriber writes: dim, italic, bold, the colours of the levels, and back. Nothing that hides text.
const COLOURS: [&str; 9] = ["0m", "1m", "2m", "3m", "31m", "32m", "33m", "34m", "35m"];

/// Whether a terminal's colours pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// [`COLOURS`] stay as they are.
    Kept,
    /// Written out, like all other control characters.
    WrittenOut,
}

/// Writes each message as one line. The line feed at its end stays.
#[derive(Debug)]
pub(crate) struct OneLine<W> {
    inner: W,
    colours: Colours,
}

impl<W: Write> OneLine<W> {
    /// Around `inner`; each call of `write` is one message.
    pub(crate) fn new(inner: W, colours: Colours) -> Self {
        Self { inner, colours }
    }
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(message);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        // In one piece, so that lines of other processes do not get in between.
        match written_out(line, self.colours) {
            Cow::Borrowed(_) => self.inner.write_all(text.as_bytes())?,
            Cow::Owned(line) => self.inner.write_all(format!("{line}{end}").as_bytes())?,
        }
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A text of several lines, each of them safe, and all but the first indented.
pub(crate) fn paragraph(text: &str) -> String {
    let lines = text.trim_end().split('\n').enumerate().map(|(at, line)| {
        let line = written_out(line, Colours::WrittenOut);
        if at == 0 || line.starts_with(INDENT) { line } else { format!("{INDENT}{line}").into() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn written_out(line: &str, colours: Colours) -> Cow<'_, str> {
    if !line.contains(is_unsafe) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut rest = line;
    while let Some(at) = rest.find(is_unsafe) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = if colours == Colours::Kept { colour_bytes(rest) } else { 0 };
        out.push_str(&rest[..kept]);
        rest = &rest[kept..];
        if kept == 0 {
            let mut letters = rest.chars();
            out.extend(letters.next().into_iter().flat_map(char::escape_default));
            rest = letters.as_str();
        }
    }
    out.push_str(rest);
    out.into()
}

/// Control characters but the tab, separators of lines and paragraphs, and what changes the direction of writing.
fn is_unsafe(letter: char) -> bool {
    match letter {
        '\t' => false,
        '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        letter => letter.is_control(),
    }
}

/// How long the colour is that the text begins with; 0 when it begins with none.
fn colour_bytes(text: &str) -> usize {
    let Some(after) = text.strip_prefix("\u{1b}[") else { return 0 };
    COLOURS.iter().find(|colour| after.starts_with(**colour)).map_or(0, |colour| 2 + colour.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn written(message: &str, colours: Colours) -> String {
        let mut out = Vec::new();
        OneLine::new(&mut out, colours).write_all(message.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_ends_a_line_or_moves_the_cursor_is_written_out() {
        for (given, expected) in [
            ("plain\ttext, ü\n", "plain\ttext, ü\n"),
            ("a\nb\r\n", "a\\nb\\r\n"),
            ("a\n\n", "a\\n\n"),
            ("\u{1b}[2J\u{7f}\u{9b}\u{0}\n", "\\u{1b}[2J\\u{7f}\\u{9b}\\u{0}\n"),
            ("a\u{2028}b\u{202e}c", "a\\u{2028}b\\u{202e}c"),
        ] {
            assert_eq!(written(given, Colours::WrittenOut), expected);
        }
        assert_eq!(
            written("\u{1b}[2mlow\u{1b}[0m \u{1b}[1A\u{1b}[\n", Colours::Kept),
            "\u{1b}[2mlow\u{1b}[0m \\u{1b}[1A\\u{1b}[\n"
        );
    }

    #[test]
    fn a_paragraphs_lines_cannot_pass_for_log_lines() {
        assert_eq!(paragraph("a\n2026-01-01 INFO b\n  - c\r\n"), "a\n  2026-01-01 INFO b\n  - c");
        assert_eq!(paragraph("one\u{1b}[2J"), "one\\u{1b}[2J");
    }

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics with it").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_name_with_a_line_feed_makes_one_log_line_wherever_it_stands() {
        for colours in [Colours::Kept, Colours::WrittenOut] {
            let heard = Heard::default();
            let out = heard.clone();
            let lines = tracing_subscriber::fmt()
                .with_ansi(colours == Colours::Kept)
                .with_writer(move || OneLine::new(out.clone(), colours))
                .finish();
            let name = "x\n2026-01-01T00:00:00Z  INFO \u{1b}[8mforged\u{1b}[1A";
            tracing::subscriber::with_default(lines, || {
                tracing::info!("connector {name} was made");
                tracing::info!(connector = name, "was made");
                tracing::info!(connector = %name, "was made");
                tracing::info!(connector = ?name, "was made");
            });
            let said = String::from_utf8(heard.0.lock().unwrap().clone()).unwrap();
            assert_eq!(said.lines().count(), 4, "{said}");
            assert!(
                said.lines()
                    .all(|line| line.contains("forged") && !line.contains("\u{1b}[8m") && !line.contains("\u{1b}[1A")),
                "{said}"
            );
        }
    }
}
