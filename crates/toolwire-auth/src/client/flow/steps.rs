//! The machine itself: its states, and which input each of them takes.

use std::time::{Duration, SystemTime};

use super::{
    Cause, Change, Effect, Env, Input, Plan,
    state::{Answer, Course, State, Turned, Why},
};
use crate::{
    challenge::Challenge,
    client::{
        AuthError, AuthErrorKind, Event, Notice, Step, Verdict, authorize::PROTOCOL_PARAMETERS,
        scopes::Scopes, skew::Skew,
    },
    fetch::{Request, Response},
};

/// A login, a renewal or a step-up that is under way.
#[derive(Debug)]
pub struct Flow {
    plan: Plan,
    course: Course,
    state: State,
}

/// One transition: what it starts from besides a state.
pub(super) struct Turn<'a> {
    pub(super) plan: Plan,
    pub(super) course: Course,
    pub(super) env: &'a Env,
    pub(super) events: &'a mut Vec<Event>,
}

impl Flow {
    pub(super) fn begin(plan: Plan, cause: Cause, env: &Env, events: &mut Vec<Event>) -> Turned {
        let (why, challenges, ask) = match cause {
            Cause::Start => (Why::Start, Vec::new(), None),
            Cause::Refused(challenges) => (Why::Refused, challenges, None),
            Cause::Lack(challenges, ask) => (Why::Lack, challenges, Some(ask)),
            Cause::Expired => (Why::Expired, Vec::new(), None),
        };
        let (challenge, dpop_challenged) = choose_challenge(challenges);
        let course = Course {
            why,
            challenge,
            dpop_challenged,
            ask,
            renewed: false,
            started_over: false,
            skew: Skew::None,
        };
        let turned = check(&plan).and_then(|()| Turn { plan, course, env, events: &mut *events }.start());
        told(turned, events)
    }

    /// Goes on with what came of the last effect. What is found on the way is appended to `events`.
    pub fn next(self, input: Input, env: &Env, events: &mut Vec<Event>) -> Turned {
        let Self { plan, course, state } = self;
        let turn = Turn { plan, course, env, events: &mut *events };
        let turned = match input {
            Input::Response(response) => turn.answered(state, Ok(&response)),
            Input::Unreachable(error) => turn.answered(state, Err(&error)),
            Input::Declined => Err(declined(&state)),
            other => turn.went_on(state, other),
        };
        told(turned, events)
    }
}

/// Tells the refusal that ends a flow.
fn told(turned: Turned, events: &mut Vec<Event>) -> Turned {
    if let Err(error) = &turned {
        events.push(Event::refused(error, ""));
    }
    turned
}

/// Bearer, unless nothing but DPoP is offered. Challenges with a scope that is none are not readable.
fn choose_challenge(challenges: Vec<Challenge>) -> (Option<Challenge>, bool) {
    let readable =
        |challenge: &Challenge| challenge.scope().is_none_or(|scope| Scopes::parse(scope).is_some());
    let mut readable: Vec<Challenge> = challenges.into_iter().filter(readable).collect();
    let at = |scheme: &str, all: &[Challenge]| all.iter().position(|challenge| challenge.is(scheme));
    if let Some(bearer) = at("Bearer", &readable) {
        return (Some(readable.swap_remove(bearer)), false);
    }
    match at("DPoP", &readable) {
        Some(dpop) => (Some(readable.swap_remove(dpop)), true),
        None => (None, false),
    }
}

fn check(plan: &Plan) -> Result<(), AuthError> {
    let protocol = |name: &str| PROTOCOL_PARAMETERS.contains(&name);
    match plan.settings.authorize_params.iter().find(|(name, _)| protocol(name)) {
        Some((name, _)) => {
            let detail =
                format!("the parameter \"{name}\" of the authorization request is the protocol's own");
            Err(AuthError::new(AuthErrorKind::Misconfigured, Step::Authorization, detail))
        }
        None => Ok(()),
    }
}

fn declined(state: &State) -> AuthError {
    let step = match state {
        State::DeviceShow { .. } | State::DeviceWait { .. } => Step::Device,
        State::Assertion { .. } => Step::Exchange,
        _ => Step::Authorization,
    };
    AuthError::new(AuthErrorKind::Declined, step, "it was not gone on with")
}

pub(super) fn out_of_order() -> AuthError {
    let detail = "the flow was given something that it had not asked for";
    AuthError::new(AuthErrorKind::OutOfOrder, Step::Use, detail)
}

impl Turn<'_> {
    /// Waits in a state for what comes of an effect.
    #[expect(clippy::unnecessary_wraps, reason = "it is how every transition ends")]
    pub(super) fn wait(self, state: State, effect: Effect) -> Turned {
        Ok((Flow { plan: self.plan, course: self.course, state }, effect))
    }

    pub(super) fn send(self, state: State, request: Request) -> Turned {
        self.wait(state, Effect::Send(request))
    }

    pub(super) fn save(self, state: State, change: Change) -> Turned {
        self.wait(state, Effect::Save(change))
    }

    pub(super) fn tell(
        &mut self,
        step: Step,
        verdict: Verdict,
        rule: &'static str,
        detail: impl Into<String>,
    ) {
        self.events.push(Event::new(step, verdict, rule, detail));
    }

    fn start(self) -> Turned {
        if self.course.why == Why::Expired && self.can_renew() {
            self.renew(None)
        } else {
            self.find_resource()
        }
    }

    /// An answer came from the network, or none.
    fn answered(self, state: State, answer: Answer<'_>) -> Turned {
        match state {
            State::FindResource { asked, left, mismatch } => {
                self.resource_answered(&asked, left, mismatch, answer)
            }
            State::FindIssuer { search, target, left } => self.issuer_answered(search, target, left, answer),
            State::Register { target, metadata, scopes, dpop, by_name } => {
                self.registered(target, metadata, scopes, dpop, by_name, answer)
            }
            State::DeviceAsk { ready } => self.device_answered(ready, answer),
            State::DevicePoll { waiting, call, ready } => self.device_polled(waiting, *call, ready, answer),
            State::FindIdp { search, subject, ready } => self.idp_answered(search, subject, ready, answer),
            State::IdpExchange { endpoint, ready } => self.exchanged(&endpoint, ready, answer),
            State::Token { call, target } => self.token_answered(*call, target, answer),
            _ => Err(out_of_order()),
        }
    }

    /// Something else than an answer came.
    fn went_on(self, state: State, input: Input) -> Turned {
        match (state, input) {
            (State::Ask { pending, ready }, Input::Callback(callback)) => {
                self.called_back(pending, ready, &callback)
            }
            (State::DeviceShow { waiting, ready }, Input::Elapsed) => {
                let pause = waiting.first(self.env.now)?;
                self.wait(State::DeviceWait { waiting, ready }, Effect::Wait(pause))
            }
            (State::DeviceWait { waiting, ready }, Input::Elapsed) => self.poll(waiting, ready),
            (State::Assertion { ready }, Input::Assertion(assertion)) => self.asserted(ready, assertion),
            (State::SaveClient { ready }, Input::Saved) => self.ask(ready),
            (State::SaveForgotten, Input::Saved) => self.find_resource(),
            (State::SaveRejected { target }, Input::Saved) => self.log_in_again(target),
            (State::SaveCredential { credential }, Input::Saved) => {
                self.wait(State::Done, Effect::Done(credential))
            }
            _ => Err(out_of_order()),
        }
    }

    /// The time as the issuer sees it: what is signed is dated by it.
    pub(super) fn issuers_now(&self) -> SystemTime {
        self.course.skew.applied_to(self.env.now)
    }

    /// Notes how the clock of the issuer differs from ours, up to an hour.
    pub(super) fn note_time(&mut self, response: &Response) {
        const TOLERATED: Duration = Duration::from_secs(30);
        const MOST: Duration = Duration::from_secs(3_600);
        let Some(skew) = Skew::of(&response.headers, self.env.now, TOLERATED, MOST) else { return };
        if skew != Skew::None && self.course.skew == Skew::None {
            let detail = "the clock of the issuer and ours differ by more than half a minute";
            let event = Event::new(Step::Issuer, Verdict::Warning, "RFC 9110, 6.6.1", detail);
            self.events.push(event.notice(Notice::ClockWrong));
        }
        self.course.skew = skew;
    }
}
