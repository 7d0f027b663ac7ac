//! Asking the user: with a form, or by sending them to a URL.

use std::{
    fmt,
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
    time::Duration,
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolwire_protocol::{
    Feature, Method, RawJson,
    schema::{Schema, elicitation_check, elicitation_schema},
    wire::{
        ElicitAction, ElicitRequestFormParams, ElicitRequestUrlParams, ElicitResult,
        ElicitationCompleteNotificationParams, InputRequest, RequestedSchema,
    },
};

use super::{
    Answer, AskError,
    question::{ask_for, decode, question},
};
use crate::{Context, schema};

/// A form for the user. Made by [`Context::elicit`]; await it.
#[must_use]
pub struct Elicit<T> {
    pub(super) cx: Context,
    pub(super) message: String,
    pub(super) key: Option<String>,
    pub(super) time: Duration,
    pub(super) fields: PhantomData<fn() -> T>,
}

impl<T> Elicit<T> {
    /// Names the question. Give a name when a handler may ask in another order in another run.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long a client that is asked directly may take. By default ten minutes.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Elicit<T> {
    /// Asks, and takes anything but an accepted answer for an error that is told to the model.
    ///
    /// # Errors
    /// [`AskError::NotAccepted`] when the user declined or cancelled, and whatever else may go wrong.
    pub async fn accepted(self) -> Result<T, AskError> {
        self.run().await?.accepted().ok_or(AskError::NotAccepted)
    }

    async fn run(self) -> Result<Answer<T>, AskError> {
        let form = Form::of::<T>()?;
        let request = form.request(self.message);
        ask_for(&self.cx, self.key, "elicit", request, self.time, |answer| form.read(answer)).await
    }
}

/// The form made of a type.
pub(super) struct Form {
    requested: RequestedSchema,
    /// Everything that the type demands, which is more than a form can ask for.
    check: Schema,
}

impl Form {
    pub(super) fn of<T: DeserializeOwned + JsonSchema>() -> Result<Self, AskError> {
        let unfit = |why: String| {
            AskError::Invalid(format!("{} cannot be a form: {why}", std::any::type_name::<T>()))
        };
        let (schema, _) = schema::of_input::<T>();
        let flat = elicitation_schema(&schema).map_err(|error| unfit(error.to_string()))?;
        let full = elicitation_check(&schema).map_err(|error| unfit(error.to_string()))?;
        let check = Schema::compile_form(&full).map_err(|error| unfit(error.to_string()))?;
        if !check.skipped().is_empty() {
            return Err(unfit(format!("{} cannot be checked", check.skipped().join(", "))));
        }
        let mut requested: RequestedSchema =
            serde_json::from_value(flat).map_err(|error| unfit(error.to_string()))?;
        let order = schema::Order::flat::<T>();
        let required = requested.required.as_deref().unwrap_or_default();
        let mut fields: Vec<_> = std::mem::take(&mut requested.properties).into_iter().collect();
        fields.sort_by_cached_key(|(name, _)| order.place(required, name));
        requested.properties = fields.into_iter().collect();
        Ok(Self { requested, check })
    }

    pub(super) fn request(&self, message: String) -> InputRequest {
        ElicitRequestFormParams::new(message, self.requested.clone()).into()
    }

    pub(super) fn read<T: DeserializeOwned>(&self, answer: &RawJson) -> Result<Answer<T>, String> {
        let result: ElicitResult = decode(answer)?;
        match result.action {
            ElicitAction::Accept => {}
            ElicitAction::Decline => return Ok(Answer::Decline),
            ElicitAction::Cancel => return Ok(Answer::Cancel),
        }
        let content = Value::Object(result.content.unwrap_or_default());
        self.check.validate(&content).map_err(|violations| violations.to_string())?;
        serde_json::from_value(content).map(Answer::Accept).map_err(|error| error.to_string())
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> IntoFuture for Elicit<T> {
    type Output = Result<Answer<T>, AskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<T> fmt::Debug for Elicit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elicit")
            .field("message", &self.message)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A URL for the user to visit. Made by [`Context::elicit_url`]; await it.
#[must_use]
pub struct ElicitUrl {
    pub(super) cx: Context,
    pub(super) url: String,
    pub(super) message: String,
    pub(super) key: Option<String>,
    pub(super) time: Duration,
}

impl ElicitUrl {
    async fn run(self) -> Result<Answer<UrlAnswer>, AskError> {
        let cx = self.cx.clone();
        let id = cx.0.version.has(Feature::ElicitationComplete).then(|| cx.idempotency_key(&self.url));
        let mut params = ElicitRequestUrlParams::new(self.message, self.url);
        params.elicitation_id.clone_from(&id);
        let read = |answer: &RawJson| {
            let result: ElicitResult = decode(answer)?;
            Ok(match result.action {
                ElicitAction::Accept => Answer::Accept(UrlAnswer { cx: cx.clone(), id: id.clone() }),
                ElicitAction::Decline => Answer::Decline,
                ElicitAction::Cancel => Answer::Cancel,
            })
        };
        ask_for(&cx, self.key, "url", params.into(), self.time, read).await
    }
}

question!(ElicitUrl, Answer<UrlAnswer>, run);

/// The user has agreed to visit the URL. That says nothing yet of what they did there.
#[derive(Clone, Debug)]
pub struct UrlAnswer {
    cx: Context,
    id: Option<String>,
}

impl UrlAnswer {
    /// Tells the client that what was to be done at the URL has been done, where the revision has a message
    /// for that.
    pub async fn complete(&self) {
        if let Some(id) = &self.id {
            let params = ElicitationCompleteNotificationParams::new(id.clone());
            self.cx.outbox().send(Method::ElicitationComplete, &params).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Order {
        #[schemars(regex(pattern = "^[A-Z]{3}$"))]
        code: String,
        #[schemars(email)]
        mail: Option<String>,
        #[schemars(extend("exclusiveMinimum" = 0))]
        weight: Option<f64>,
    }

    fn read(content: &Value) -> Result<Answer<Order>, String> {
        let answer = json!({"action": "accept", "content": content});
        Form::of::<Order>().unwrap().read(&RawJson::from(&answer))
    }

    #[test]
    fn an_answer_is_checked_against_what_a_form_cannot_express() {
        assert!(matches!(
            read(&json!({"code": "ABC", "mail": "a@b.example", "weight": 0.5})),
            Ok(Answer::Accept(Order { code, weight: Some(_), .. })) if code == "ABC"
        ));
        assert!(matches!(read(&json!({"code": "ABC"})), Ok(Answer::Accept(order)) if order.mail.is_none()));
        for (content, words) in [
            (json!({"code": "abc"}), "/code: expected a string that matches the pattern"),
            (json!({"code": "ABC", "mail": "nope"}), "/mail: expected an email address"),
            (json!({"code": "ABC", "weight": 0}), "/weight: expected a number greater than 0"),
            (json!({"mail": "a@b"}), "missing required property \"code\""),
        ] {
            let error = read(&content).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        // Only what a form knows is asked for.
        let asked = serde_json::to_value(&Form::of::<Order>().unwrap().requested).unwrap();
        assert!(asked["properties"]["code"].get("pattern").is_none());
        assert_eq!(asked["properties"]["mail"]["format"], "email");
    }

    #[test]
    fn what_cannot_be_checked_is_no_form() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Odd {
            #[schemars(regex(pattern = "(?=x)y"))]
            code: String,
        }
        let error = Form::of::<Odd>().map(drop).unwrap_err();
        assert!(error.to_string().contains("(?=x)y cannot be checked"), "{error}");
    }

    #[test]
    fn a_form_has_its_fields_in_the_order_of_the_type() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Address {
            street: String,
            number: Option<u16>,
            city: String,
            country: Option<String>,
        }
        let form = Form::of::<Address>().unwrap();
        let asked: Vec<_> = form.requested.properties.keys().collect();
        assert_eq!(asked, ["street", "number", "city", "country"]);
        let InputRequest::Elicit(asked) = form.request("Where?".into()) else { panic!("not a form") };
        let text = serde_json::to_string(&asked).unwrap();
        assert!(text.find("street") < text.find("city"), "{text}");
    }
}
