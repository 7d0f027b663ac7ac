//! Whole flows with a fixed clock and fixed randomness, against pages that answer alike every time.
//!
//! A transcript is compared with its file in `transcripts/`; `TOOLWIRE_BLESS=1` writes the files anew.

mod attacks;
mod login;
mod refusals;
mod renew;
mod robots;

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    fs,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use http::StatusCode;
use serde_json::{Value, json};

use super::*;
use crate::{
    Endpoint,
    client::{
        AuthErrorKind,
        authorize::Callback,
        token::{Credential, GrantKind},
    },
    fetch::{FetchErrorKind, Request},
};

pub(super) const SERVER: &str = "https://files.example/mcp";
pub(super) const ISSUER: &str = "https://login.example";
pub(super) const PATH_PLACE: &str = "GET https://files.example/.well-known/oauth-protected-resource/mcp";
pub(super) const ROOT_PLACE: &str = "GET https://files.example/.well-known/oauth-protected-resource";
pub(super) const ISSUER_PLACE: &str = "GET https://login.example/.well-known/oauth-authorization-server";
pub(super) const REGISTER: &str = "POST https://login.example/register";
pub(super) const TOKEN: &str = "POST https://login.example/token";
pub(super) const START: u64 = 1_800_000_000;

/// Answers of a network, and of a person.
pub(super) struct World {
    pages: HashMap<String, VecDeque<Input>>,
    /// What the browser brings back: the query, in which `STATE` stands for the state.
    pub(super) callback: String,
    pub(super) assertion: &'static str,
    turns: u8,
    now: SystemTime,
}

/// What came of a flow.
pub(super) struct Outcome {
    pub(super) result: Result<Credential, AuthError>,
    pub(super) transcript: String,
    pub(super) events: Vec<Event>,
    pub(super) requests: Vec<Request>,
    pub(super) changes: Vec<Change>,
}

impl World {
    pub(super) fn empty() -> Self {
        Self {
            pages: HashMap::new(),
            callback: format!("code=c-1&state=STATE&iss={ISSUER}"),
            assertion: "assertion-1",
            turns: 0,
            now: UNIX_EPOCH + Duration::from_secs(START),
        }
    }

    /// A server and an issuer as the specification wants them.
    pub(super) fn good() -> Self {
        Self::empty()
            .json(PATH_PLACE, 200, &json!({ "resource": SERVER, "authorization_servers": [ISSUER] }))
            .json(ISSUER_PLACE, 200, &metadata())
            .json(REGISTER, 201, &json!({ "client_id": "made-1" }))
            .json(TOKEN, 200, &token())
    }

    /// What a page answers from now on; several answers are given one after the other, the last one for ever.
    pub(super) fn json(mut self, page: &str, status: u16, body: &Value) -> Self {
        let response = Response::json(StatusCode::from_u16(status).unwrap(), body);
        self.pages.insert(page.to_owned(), [Input::Response(response)].into());
        self
    }

    pub(super) fn then(mut self, page: &str, status: u16, body: &Value) -> Self {
        let response = Response::json(StatusCode::from_u16(status).unwrap(), body);
        self.pages.entry(page.to_owned()).or_default().push_back(Input::Response(response));
        self
    }

    pub(super) fn with_header(mut self, page: &str, name: &'static str, value: &str) -> Self {
        let Some(Input::Response(response)) = self.pages.get_mut(page).and_then(VecDeque::back_mut) else {
            panic!("{page}")
        };
        response.headers.insert(name, value.parse().unwrap());
        self
    }

    pub(super) fn down(mut self, page: &str, kind: FetchErrorKind) -> Self {
        let error = FetchError::new(kind, "no answer");
        self.pages.insert(page.to_owned(), [Input::Unreachable(error)].into());
        self
    }

    pub(super) fn callback(mut self, query: &str) -> Self {
        self.callback = query.to_owned();
        self
    }

    fn env(&mut self) -> Env {
        self.turns += 1;
        Env { now: self.now, entropy: [self.turns; 64] }
    }

    fn answer(&mut self, request: &Request) -> Input {
        let page = format!("{} {}", request.method, request.url.shown());
        match self.pages.get_mut(&page) {
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => copied(&answers[0]),
            None => Input::Response(Response::empty(StatusCode::NOT_FOUND)),
        }
    }

    pub(super) fn run(&mut self, plan: Plan, cause: Cause) -> Outcome {
        let (mut events, mut transcript) = (Vec::new(), String::new());
        let (mut requests, mut changes) = (Vec::new(), Vec::new());
        let env = self.env();
        let mut turn = begin(plan, cause, &env, &mut events);
        let result = loop {
            let (flow, effect) = match turn {
                Ok(turned) => turned,
                Err(error) => break Err(error),
            };
            assert!(self.turns < 60, "the flow does not end:\n{transcript}");
            let input = match effect {
                Effect::Send(request) => {
                    write(&mut transcript, &request);
                    let input = self.answer(&request);
                    requests.push(request);
                    match &input {
                        Input::Response(response) => writeln!(transcript, "  → {}", response.status.as_u16()),
                        _ => writeln!(transcript, "  → nothing"),
                    }
                    .unwrap();
                    input
                }
                Effect::Browse(url) => {
                    writeln!(transcript, "browse {}", url.as_str().replace('&', "\n  &")).unwrap();
                    let query = url.as_str().split_once('?').unwrap().1;
                    let state = url::form_urlencoded::parse(query.as_bytes())
                        .find_map(|(name, value)| (name == "state").then(|| value.into_owned()))
                        .unwrap();
                    let query = self.callback.replace("STATE", &state);
                    Input::Callback(Callback::from_query(&query).unwrap())
                }
                Effect::ShowCode(code, _) => {
                    writeln!(transcript, "show {} {}", code.user_code, code.verification_uri).unwrap();
                    Input::Elapsed
                }
                Effect::Wait(pause) => {
                    writeln!(transcript, "wait {} s", pause.as_secs()).unwrap();
                    self.now += pause;
                    Input::Elapsed
                }
                Effect::Assert(audience) => {
                    writeln!(transcript, "assert for {} at {}", audience.issuer, audience.token_endpoint)
                        .unwrap();
                    Input::Assertion(Secret::from(self.assertion))
                }
                Effect::Identify(idp) => {
                    writeln!(transcript, "identify at {idp}").unwrap();
                    Input::Assertion(Secret::from(self.assertion))
                }
                Effect::Save(change) => {
                    writeln!(transcript, "save {}", shown(&change)).unwrap();
                    changes.push(change);
                    Input::Saved
                }
                Effect::Done(credential) => break Ok(*credential),
            };
            let env = self.env();
            turn = flow.next(input, &env, &mut events);
        };
        match &result {
            Ok(credential) => writeln!(
                transcript,
                "done {} \"{}\" of \"{}\"{}",
                credential.kind,
                credential.granted,
                credential.requested,
                if credential.refresh.is_some() { ", renewable" } else { "" }
            ),
            Err(error) => writeln!(transcript, "failed {:?}: {error}", error.kind),
        }
        .unwrap();
        Outcome { result, transcript, events, requests, changes }
    }
}

impl Outcome {
    #[track_caller]
    pub(super) fn kind(self) -> AuthErrorKind {
        match self.result {
            Ok(_) => panic!("it worked:\n{}", self.transcript),
            Err(error) => error.kind,
        }
    }

    #[track_caller]
    pub(super) fn credential(self) -> Credential {
        self.result.unwrap_or_else(|error| panic!("{error}\n{}", self.transcript))
    }

    /// The form of the only request to a page.
    #[track_caller]
    pub(super) fn form(&self, page: &str) -> HashMap<String, String> {
        let mut found = self.to(page);
        let request = found.next().unwrap_or_else(|| panic!("{page}\n{}", self.transcript));
        assert!(found.next().is_none(), "{page} more than once\n{}", self.transcript);
        url::form_urlencoded::parse(&request.body).into_owned().collect()
    }

    pub(super) fn to(&self, page: &str) -> impl Iterator<Item = &Request> {
        let page = page.to_owned();
        self.requests
            .iter()
            .filter(move |request| format!("{} {}", request.method, request.url.shown()) == page)
    }

    /// Compares the transcript with its file.
    #[track_caller]
    pub(super) fn is(&self, name: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("src/client/flow/tests/transcripts/{name}.txt"));
        let mut actual = self.transcript.clone();
        actual.push_str("---\n");
        for event in &self.events {
            writeln!(actual, "{event}").unwrap();
        }
        if std::env::var_os("TOOLWIRE_BLESS").is_some() {
            fs::write(&file, &actual).unwrap();
        }
        let expected =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(actual, expected.replace("\r\n", "\n"), "{name}");
    }
}

fn copied(input: &Input) -> Input {
    match input {
        Input::Response(response) => Input::Response(response.clone()),
        Input::Unreachable(error) => Input::Unreachable(error.clone()),
        _ => unreachable!("pages answer or do not"),
    }
}

/// Signatures differ each time; other tests verify them.
fn write(transcript: &mut String, request: &Request) {
    writeln!(transcript, "{} {}", request.method, request.url.as_str()).unwrap();
    for name in ["authorization", "dpop"] {
        if let Some(value) = request.headers.get(name) {
            let value = if name == "dpop" { "SIGNED" } else { value.to_str().unwrap() };
            writeln!(transcript, "  {name}: {value}").unwrap();
        }
    }
    if request.headers.get("content-type").is_some_and(|kind| kind == "application/json") {
        writeln!(transcript, "  {}", std::str::from_utf8(&request.body).unwrap()).unwrap();
    } else {
        for (name, value) in url::form_urlencoded::parse(&request.body) {
            let value = if name == "client_assertion" { "SIGNED".into() } else { value };
            writeln!(transcript, "  {name}={value}").unwrap();
        }
    }
}

fn shown(change: &Change) -> String {
    match change {
        Change::Registered(client) => format!("client {} of {}", client.client_id, client.issuer),
        Change::Forgotten(client) => format!("no client {} of {}", client.client_id, client.issuer),
        Change::Bound { client_id, issuer } => format!("{client_id} belongs to {issuer}"),
        Change::Granted(credential) => format!("credential {}", credential.access.expose()),
        Change::RefreshRejected(token) => format!("no refresh token {}", token.expose()),
    }
}

pub(super) fn metadata() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "https://login.example/token",
        "registration_endpoint": "https://login.example/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// The metadata with some members changed; `null` removes one.
pub(super) fn metadata_with(changes: &Value) -> Value {
    let mut metadata = metadata();
    let members = metadata.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    metadata
}

pub(super) fn token() -> Value {
    json!({ "access_token": "at-1", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt-1" })
}

pub(super) fn redirects() -> Redirects {
    let at = |port: u16| format!("http://127.0.0.1:{port}/callback");
    Redirects::new((17_853..=17_856).map(at), at(17_854))
}

pub(super) fn plan() -> Plan {
    Plan::new(Endpoint::parse(SERVER).unwrap(), Settings::new("Notes"), Way::Browser(redirects()))
}

pub(super) fn scopes(text: &str) -> Scopes {
    Scopes::parse(text).unwrap()
}

pub(super) fn bearer() -> Challenge {
    Challenge::new("Bearer")
}

/// A credential as a login at the good world leaves it.
pub(super) fn stored() -> Credential {
    let mut world = World::good();
    let challenge = bearer().with("scope", "files:read");
    world.run(plan(), Cause::Refused(vec![challenge])).credential()
}

#[test]
fn what_was_not_asked_for_ends_the_flow() {
    let mut world = World::good();
    let (flow, _) = begin(plan(), Cause::Start, &world.env(), &mut Vec::new()).unwrap();
    let error = flow.next(Input::Saved, &world.env(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind, AuthErrorKind::OutOfOrder);
    assert_eq!(stored().grant, GrantKind::AuthorizationCode);
}
