//! Cross-origin requests (`access.control.allow.origin`, `access.control.allow.methods`), with the headers of a Java 4.3.1 worker. Pure.
//!
//! Credentials are never allowed, as in Java: a browser must not be made to lend its user's password to another page.

/// Seconds for which a browser may remember a preflight's answer.
const MAX_AGE_S: u32 = 60;

/// Which origins may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    origins: Vec<String>,
    methods: String,
}

impl Cors {
    /// `None` when no origin is allowed.
    pub fn from_keys(origin: &str, methods: &str) -> Option<Self> {
        let list = |text: &str| {
            text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect::<Vec<_>>()
        };
        let origins = list(origin);
        let methods = list(methods);
        let methods = if methods.is_empty() { "GET,POST,HEAD".to_owned() } else { methods.join(",") };
        (!origins.is_empty()).then_some(Cors { origins, methods })
    }

    /// The headers for a request from `origin`; `preflight` is an `OPTIONS` with `Access-Control-Request-Method`.
    pub fn headers(&self, origin: Option<&str>, preflight: bool) -> Vec<(&'static str, String)> {
        let mut headers = vec![("Vary", "Origin".to_owned())];
        let Some(origin) = origin.filter(|origin| self.allows(origin)) else { return headers };
        headers.push(("Access-Control-Allow-Origin", origin.to_owned()));
        if preflight {
            headers.push(("Access-Control-Allow-Methods", self.methods.clone()));
            headers.push(("Access-Control-Allow-Headers", "Content-Type".to_owned()));
            headers.push(("Access-Control-Max-Age", MAX_AGE_S.to_string()));
        }
        headers
    }

    fn allows_all(&self) -> bool {
        self.origins.iter().any(|allowed| allowed == "*")
    }

    fn allows(&self, origin: &str) -> bool {
        self.allows_all()
            || self.origins.iter().any(|allowed| match allowed.split_once('*') {
                Some((start, end)) => {
                    origin.len() >= start.len() + end.len() && origin.starts_with(start) && origin.ends_with(end)
                }
                None => allowed == origin,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(cors: &Cors, origin: &str) -> bool {
        cors.headers(Some(origin), false).iter().any(|(name, _)| *name == "Access-Control-Allow-Origin")
    }

    #[test]
    fn only_listed_origins_are_let_in() {
        let cors = Cors::from_keys("http://a, https://*.b", "").expect("origins");
        assert!(allowed(&cors, "http://a"));
        assert!(allowed(&cors, "https://x.b"));
        assert!(!allowed(&cors, "http://aa"));
        assert_eq!(cors.headers(None, false), [("Vary", "Origin".to_owned())]);
        assert_eq!(Cors::from_keys(" ", "GET"), None);
    }

    #[test]
    fn a_preflight_tells_the_methods() {
        let cors = Cors::from_keys("*", "GET, PUT").expect("origins");
        let headers = cors.headers(Some("http://z"), true);
        assert!(headers.contains(&("Access-Control-Allow-Methods", "GET,PUT".to_owned())));
        assert!(allowed(&cors, "http://anybody"));
    }
}
