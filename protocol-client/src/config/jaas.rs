//! The one line of `sasl.jaas.config`, in the syntax of Java's JAAS files.
//!
//! ```text
//! org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="it's \"quoted\"";
//! ```
//!
//! Java cuts it with a `StreamTokenizer`: words, texts in double or single quotes with C's escapes, `=`, `;`, and comments.
//! Kafka's rules on top: one login module, a control flag, options as `name=value`, a semicolon at the end. An unquoted
//! value may hold more characters here than in Java. Errors say where, and never what: any token may be a password.
//!
//! Source: `JaasConfig` as documented in "JAAS configuration for Kafka clients"; the documentation of `StreamTokenizer`.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// A login module and its options. Has no `Debug`: the options hold passwords.
pub(super) struct Entry {
    pub(super) module: String,
    pub(super) options: BTreeMap<String, String>,
}

/// No credential is longer; a longer line is a file's content in the wrong place.
const LINE_BYTES_MAX: usize = 64 * 1024;

const FLAGS: [&str; 4] = ["REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"];

#[derive(PartialEq)]
enum Token {
    Text(String),
    Equals,
    Semicolon,
}

/// Reads the one entry, or says in words what is wrong with it.
pub(super) fn parse(line: &str) -> Result<Entry, String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("it is longer than {LINE_BYTES_MAX} bytes"));
    }
    let mut tokens = Tokens { rest: line.chars().peekable() };
    let Some(Token::Text(module)) = tokens.next()? else {
        return Err("it must begin with the class name of a login module".to_owned());
    };
    match tokens.next()? {
        Some(Token::Text(flag)) if FLAGS.contains(&flag.to_uppercase().as_str()) => {}
        _ => return Err("after the login module a control flag is due, such as 'required'".to_owned()),
    }
    let mut options = BTreeMap::new();
    loop {
        match tokens.next()? {
            Some(Token::Semicolon) => break,
            Some(Token::Text(name)) => {
                let equals = tokens.next()?;
                let value = tokens.next()?;
                match (equals, value) {
                    (Some(Token::Equals), Some(Token::Text(value))) => options.insert(name, value),
                    _ => return Err(format!("option {} of it has no value; write name=\"value\"", options.len() + 1)),
                };
            }
            Some(Token::Equals) => return Err("an option of it has no name; write name=\"value\"".to_owned()),
            None => return Err("it must end with a semicolon".to_owned()),
        }
    }
    match tokens.next()? {
        None => Ok(Entry { module, options }),
        Some(_) => Err("something follows the semicolon; only one login module is allowed".to_owned()),
    }
}

struct Tokens<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<Token>, String> {
        loop {
            match self.rest.peek() {
                None => return Ok(None),
                Some(c) if c.is_whitespace() => {
                    self.rest.next();
                }
                Some('/') => self.skip_comment()?,
                Some('=') => {
                    self.rest.next();
                    return Ok(Some(Token::Equals));
                }
                Some(';') => {
                    self.rest.next();
                    return Ok(Some(Token::Semicolon));
                }
                Some(&quote @ ('"' | '\'')) => return self.quoted(quote).map(|text| Some(Token::Text(text))),
                Some(_) => return Ok(Some(Token::Text(self.word()))),
            }
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        let part = |c: &char| !c.is_whitespace() && !matches!(c, '=' | ';' | '"' | '\'' | '/');
        while let Some(c) = self.rest.next_if(part) {
            word.push(c);
        }
        word
    }

    fn skip_comment(&mut self) -> Result<(), String> {
        self.rest.next();
        match self.rest.next() {
            Some('/') => while self.rest.next_if(|c| *c != '\n').is_some() {},
            Some('*') => {
                let mut before = ' ';
                loop {
                    match self.rest.next() {
                        Some('/') if before == '*' => break,
                        Some(c) => before = c,
                        None => return Err("a comment in it does not end".to_owned()),
                    }
                }
            }
            _ => return Err("a '/' stands outside quotes; put the value in double quotes".to_owned()),
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some(c) if c == quote => return Ok(text),
                None | Some('\n' | '\r') => return Err("a quoted text in it does not end".to_owned()),
                Some('\\') => text.push(self.escaped()?),
                Some(c) => text.push(c),
            }
        }
    }

    /// What follows a backslash: C's letters, up to three octal digits (at most \377), or the character itself.
    fn escaped(&mut self) -> Result<char, String> {
        let Some(c) = self.rest.next() else { return Err("it ends with a backslash".to_owned()) };
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => {
                let first = c.to_digit(8).unwrap_or_default();
                let mut code = first;
                // \377 is the largest, so only what begins with 0 to 3 has a third digit.
                for _ in 0..if first <= 3 { 2 } else { 1 } {
                    let Some(digit) = self.rest.next_if(|c| c.is_digit(8)).and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + digit;
                }
                char::from_u32(code).unwrap_or_default()
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Vec<(String, String)> {
        parse(line).map(|entry| entry.options.into_iter().collect()).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn refused(line: &str) -> String {
        match parse(line) {
            Ok(_) => panic!("{line} was accepted"),
            Err(error) => error,
        }
    }

    #[test]
    fn quotes_escapes_and_comments_are_javas() {
        let line = r#" a.b.PlainLoginModule // the module
            REQUIRED username='a b' /* why */ password = "p\"w;=\\ \101\t" other=plain-word_1.2 ; "#;
        let entry = parse(line).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(entry.module, "a.b.PlainLoginModule");
        assert_eq!(entry.options["username"], "a b");
        assert_eq!(entry.options["password"], "p\"w;=\\ A\t");
        assert_eq!(entry.options["other"], "plain-word_1.2");
    }

    #[test]
    fn octal_escapes_end_at_three_digits_and_at_377() {
        assert_eq!(options(r#"m required p="\1011\47x\477";"#)[0].1, "A1'x'7");
    }

    #[test]
    fn mistakes_are_named_without_the_content() {
        let lines = [
            "",
            "module",
            "module username=\"hunter2\";",
            "module required username=\"hunter2\"",
            "module required username \"hunter2\";",
            "module required =\"hunter2\";",
            "module required password=\"hunter2;",
            "module required password=hunter2/x;",
            "module required a=b; other required;",
            "module required /* hunter2",
            "module required a=\"hunter2\\",
        ];
        for line in lines {
            let error = refused(line);
            assert!(!error.contains("hunter2"), "{error}");
        }
        refused(&"x".repeat(LINE_BYTES_MAX + 1));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_never_loops(line in ".{0,60}") {
            let _ = parse(&line);
        }

        #[test]
        fn any_password_survives_quoting(password in "[^\r\n]{0,30}") {
            let quoted = password.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("m required password=\"{quoted}\";");
            proptest::prop_assert_eq!(&options(&line)[0].1, &password);
        }
    }
}
