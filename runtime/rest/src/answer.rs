//! What a request passes on its way to a resource: path, password, method, media types, body, time limit; and its reply on the way out.
//!
//! ```text
//! request ▶ route ▶ basic auth ▶ OPTIONS | method ▶ Accept ▶ Content-Type ▶ body ▶ herder there? ▶ resource ▶ reply
//!                                                                                                    └▶ another worker
//! ```

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{Request, Response, StatusCode};

use crate::auth::Users;
use crate::call::{Call, Problem, Reply};
use crate::client::{Outgoing, RestClient, forwarded_headers};
use crate::config::{RestConfig, Scheme};
use crate::error::{Blame, Failure, TOO_MANY_HOPS, blame};
use crate::forward::{Hop, next_hop};
use crate::herder::Herder;
use crate::negotiate::{JSON, check_accept, check_content_type};
use crate::path::Query;
use crate::resources;
use crate::route::{NoRoute, Route};

/// Of a request's body; the largest configurations are a hundredth of it.
const BODY_BYTES_MAX: usize = 10 << 20;
/// For a body to come in.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// For a herder to answer; Java's default.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// Everything.
    All,
    /// All but `/admin`.
    WithoutAdmin,
    /// `/admin` alone.
    AdminOnly,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) config: Arc<RestConfig>,
    pub(crate) users: Option<Users>,
    pub(crate) client: RestClient,
    pub(crate) advertised_authority: String,
    pub(crate) herder: OnceLock<Arc<dyn Herder>>,
}

/// Which listener a request came in by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    pub(crate) scheme: Scheme,
    pub(crate) serves: Serves,
}

impl Shared {
    /// Answers one request. Never fails: what goes wrong becomes a reply.
    pub(crate) async fn answer(&self, door: Door, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let origin = request.headers().get(ORIGIN).and_then(|origin| origin.to_str().ok()).map(str::to_owned);
        let preflight =
            request.method() == "OPTIONS" && request.headers().contains_key("access-control-request-method");
        let reply = match self.reply(door, request).await {
            Ok(reply) => reply,
            Err(failure) => Reply::failure(&self.masked(failure)),
        };
        self.response(reply, door, origin.as_deref(), preflight)
    }

    async fn reply(&self, door: Door, request: Request<Incoming>) -> Result<Reply, Failure> {
        let path = request.uri().path().to_owned();
        let method = request.method().as_str().to_owned();
        let route = route(&path, door.serves);
        if let Some(refusal) = self.refuse_stranger(&method, route.as_ref().ok(), &request) {
            return Ok(refusal);
        }
        let route = route?;
        if method == "OPTIONS" {
            return Ok(Reply { code: 200, body: Some(route.allow().into()), text: true, ..Reply::default() }
                .with("Allow", route.allow()));
        }
        let method = if method == "HEAD" { "GET".to_owned() } else { method };
        if !route.methods().contains(&method.as_str()) {
            return Ok(Reply::failure(&Failure::plain(405)).with("Allow", route.allow()));
        }
        check_accept(request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()))?;
        self.call(door, &route, &path, method, request).await
    }

    /// The one outlet of what went wrong: whoever worded it may have quoted a secret.
    fn masked(&self, Failure { code, message }: Failure) -> Failure {
        let message = match self.herder.get() {
            Some(herder) => herder.masked(message),
            None => message,
        };
        Failure { code, message }
    }

    /// 401 for whom the users' file does not know.
    fn refuse_stranger(&self, method: &str, route: Option<&Route>, request: &Request<Incoming>) -> Option<Reply> {
        let users = self.users.as_ref()?;
        let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let failure = users.check(method, route.unwrap_or(&Route::Root), authorization).err()?;
        Some(Reply::failure(&failure).with("WWW-Authenticate", "Basic realm=\"kafka-connect\""))
    }

    async fn call(
        &self,
        door: Door,
        route: &Route,
        path: &str,
        method: String,
        request: Request<Incoming>,
    ) -> Result<Reply, Failure> {
        let (parts, body) = request.into_parts();
        let body = read_body(body).await?;
        let content_type = parts.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
        check_content_type(content_type, resources::takes_body(route, &method), body.is_empty())?;
        let Some(herder) = self.herder.get() else { return Ok(before_herder(route)) };
        let raw_query = parts.uri.query().map(str::to_owned);
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| !host.is_empty());
        let call = Call {
            herder: Arc::clone(herder),
            config: Arc::clone(&self.config),
            method,
            query: Query::parse(raw_query.as_deref()),
            headers: parts.headers.clone(),
            body,
            base: format!("{}://{}", door.scheme.name(), host.unwrap_or(&self.advertised_authority)),
        };
        let problem = match tokio::time::timeout(REQUEST_TIMEOUT, resources::dispatch(route, &call)).await {
            Ok(Ok(reply)) => return Ok(reply),
            Ok(Err(problem)) => problem,
            Err(_) => return Err(Failure::timed_out(herder.stage().as_ref())),
        };
        let worker_url = match problem {
            Problem::Failed(failure) => return Err(failure),
            Problem::Herder(error, forwards) => match blame(error, forwards) {
                Blame::Failed(failure) => return Err(failure),
                Blame::Forward(url) => url,
            },
        };
        match next_hop(&worker_url, path, raw_query.as_deref(), call.query.flag("forward")) {
            Hop::TooMany => Err(Failure::new(409, TOO_MANY_HOPS)),
            Hop::To(url) => self.forward(url, call).await,
        }
    }

    async fn forward(&self, url: String, call: Call) -> Result<Reply, Failure> {
        tracing::debug!(method = %call.method, url, "forwarding a request");
        let headers = forwarded_headers(&call.headers);
        let answer = self.client.send(Outgoing { method: call.method, url, headers, body: call.body }).await?;
        let reply = Reply::empty(answer.code);
        if answer.body.is_empty() {
            return Ok(reply);
        }
        let created = serde_json::from_slice::<serde_json::Value>(&answer.body).ok().filter(|_| answer.code == 201);
        let reply = Reply { body: Some(answer.body), ..reply };
        Ok(match created.as_ref().and_then(|body| body["name"].as_str()) {
            // Where the client finds it is here, not where it was made.
            Some(name) => reply.located(&call.base, name),
            None => reply,
        })
    }

    fn response(&self, reply: Reply, door: Door, origin: Option<&str>, preflight: bool) -> Response<Full<Bytes>> {
        let has_body = reply.body.is_some();
        let mut response = Response::new(Full::new(reply.body.unwrap_or_default()));
        *response.status_mut() = StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if has_body {
            let kind = if reply.text { "text/plain" } else { JSON };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        // As in Java, listeners of their own for `/admin` have neither these headers nor the configured ones.
        let (cors, rules) = match door.serves {
            Serves::AdminOnly => (None, &[][..]),
            _ => (self.config.cors.as_ref(), &self.config.headers[..]),
        };
        let cors = cors.into_iter().flat_map(|cors| cors.headers(origin, preflight));
        for (name, value) in reply.headers.into_iter().chain(cors) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.append(
                    HeaderName::from_bytes(name.as_bytes()).expect("header names of this crate are tokens"),
                    value,
                );
            }
        }
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        for rule in rules {
            let name = HeaderName::from_bytes(rule.name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&rule.value.at(now))) {
                if rule.replaces {
                    headers.insert(name, value);
                } else {
                    headers.append(name, value);
                }
            }
        }
        response
    }
}

fn route(path: &str, serves: Serves) -> Result<Route, Failure> {
    let route = Route::of(path).map_err(|none| match none {
        NoRoute::NotFound => Failure::plain(404),
        NoRoute::Malformed(error) => Failure::new(400, error.message()),
    })?;
    let here = match serves {
        Serves::All => true,
        Serves::WithoutAdmin => !route.is_admin(),
        Serves::AdminOnly => route.is_admin(),
    };
    if here { Ok(route) } else { Err(Failure::plain(404)) }
}

fn before_herder(route: &Route) -> Reply {
    match route {
        Route::OpenApi => {
            Reply { code: 200, body: Some(Bytes::from_static(resources::OPENAPI.as_bytes())), ..Reply::default() }
        }
        Route::Health => resources::starting(None),
        _ => Reply::failure(&Failure::new(503, "Worker is still starting up.")),
    }
}

async fn read_body(body: Incoming) -> Result<Bytes, Failure> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Failure::new(413, format!("the body is longer than {BODY_BYTES_MAX} bytes")))
        }
        Ok(Err(error)) => Err(Failure::new(400, format!("the body broke off: {error}"))),
        Err(_) => Err(Failure::new(408, format!("the body did not come within {} s", BODY_TIMEOUT.as_secs()))),
    }
}
