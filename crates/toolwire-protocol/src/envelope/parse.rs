//! Reading the envelope with one hand-written visitor.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Message, Notification, Params, Request, Response};
use crate::{ErrorCode, MethodName, RequestId, RpcError};

/// Bytes that are not a JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvelopeFault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The id, where one could be read, so that the error can be matched to its request.
    pub id: Option<RequestId>,
}

/// What is wrong with an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Not JSON at all; the text says where.
    NotJson(Box<str>),
    /// JSON, but not an object.
    NotAnObject,
    /// An array of messages where none may stand.
    Batch,
    /// An empty batch.
    EmptyBatch,
    /// A batch with more messages than allowed.
    BatchTooLong {
        /// How many are allowed.
        limit: usize,
    },
    /// `jsonrpc` is missing or not `"2.0"`.
    NotVersionTwo,
    /// The same member twice.
    DuplicateMember(&'static str),
    /// `id` is `null`.
    NullId,
    /// `id` is a number, but not a whole one in the range of 64 bits.
    FractionalId,
    /// `id` is neither a string nor a number.
    WrongIdType,
    /// A result without an id.
    MissingId,
    /// `method` is not a string.
    WrongMethodType,
    /// `params` is not an object.
    WrongParamsType,
    /// `error` is not an error object.
    WrongErrorType,
    /// A method and a result or an error in one message.
    RequestAndResponse,
    /// A result and an error in one message.
    ResultAndError,
    /// Neither a method nor a result nor an error.
    NothingInIt,
}

impl EnvelopeFault {
    fn new(kind: FaultKind, id: Option<RequestId>) -> Self {
        Self { kind, id }
    }

    /// The error to answer with.
    pub fn rpc_error(&self) -> RpcError {
        let code = match self.kind {
            FaultKind::NotJson(_) => ErrorCode::PARSE_ERROR,
            _ => ErrorCode::INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }
}

impl fmt::Display for EnvelopeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::NotJson(why) => write!(f, "not JSON: {why}"),
            FaultKind::NotAnObject => f.write_str("a message must be a JSON object"),
            FaultKind::Batch => {
                f.write_str("batches exist only in protocol version 2025-03-26; send one message at a time")
            }
            FaultKind::EmptyBatch => f.write_str("a batch must hold at least one message"),
            FaultKind::BatchTooLong { limit } => write!(f, "a batch may hold at most {limit} messages"),
            FaultKind::NotVersionTwo => f.write_str("the member \"jsonrpc\" must be \"2.0\""),
            FaultKind::DuplicateMember(name) => write!(f, "the member {name:?} stands twice in the message"),
            FaultKind::NullId => f.write_str("\"id\" must not be null; leave it out to send a notification"),
            FaultKind::FractionalId => f.write_str("\"id\" must be a whole number or a string"),
            FaultKind::WrongIdType => f.write_str("\"id\" must be a string or a whole number"),
            FaultKind::MissingId => f.write_str("a result must carry the \"id\" of its request"),
            FaultKind::WrongMethodType => f.write_str("\"method\" must be a string"),
            FaultKind::WrongParamsType => f.write_str("\"params\" must be an object"),
            FaultKind::WrongErrorType => {
                f.write_str("\"error\" must be an object with an integer \"code\" and a string \"message\"")
            }
            FaultKind::RequestAndResponse => {
                f.write_str("a message is either a request or a response, not both")
            }
            FaultKind::ResultAndError => {
                f.write_str("a response has either a \"result\" or an \"error\", not both")
            }
            FaultKind::NothingInIt => {
                f.write_str("a message needs a \"method\", a \"result\" or an \"error\"")
            }
        }
    }
}

impl std::error::Error for EnvelopeFault {}

pub(super) fn parse(bytes: &Bytes) -> Result<Message, EnvelopeFault> {
    match serde_json::from_slice::<Shape<'_>>(bytes) {
        Ok(Shape::Object(fields)) => fields.into_message(bytes),
        Ok(Shape::Array) => Err(EnvelopeFault::new(FaultKind::Batch, None)),
        Ok(Shape::Scalar) => Err(EnvelopeFault::new(FaultKind::NotAnObject, None)),
        Err(error) => Err(EnvelopeFault::new(FaultKind::NotJson(error.to_string().into()), None)),
    }
}

/// Parses an array of messages, as 2025-03-26 allows it. Each message stands or falls for itself.
///
/// # Errors
/// [`EnvelopeFault`] when the array itself is not acceptable.
pub fn parse_batch(
    bytes: &Bytes,
    limit: usize,
) -> Result<Vec<Result<Message, EnvelopeFault>>, EnvelopeFault> {
    let items: Vec<&RawValue> = serde_json::from_slice(bytes)
        .map_err(|error| EnvelopeFault::new(FaultKind::NotJson(error.to_string().into()), None))?;
    if items.is_empty() {
        return Err(EnvelopeFault::new(FaultKind::EmptyBatch, None));
    }
    if items.len() > limit {
        return Err(EnvelopeFault::new(FaultKind::BatchTooLong { limit }, None));
    }
    Ok(items.into_iter().map(|item| parse(&bytes.slice_ref(item.get().as_bytes()))).collect())
}

/// What the bytes are, before they are judged.
enum Shape<'de> {
    Object(Box<Fields<'de>>),
    Array,
    Scalar,
}

/// The members of an envelope as they stand; faults are kept instead of thrown, so that broken JSON
/// further on is still noticed and the id can still be read.
#[derive(Default)]
struct Fields<'de> {
    jsonrpc: Option<bool>,
    id: IdField,
    method: Option<Text<'de>>,
    params: Option<&'de RawValue>,
    result: Option<&'de RawValue>,
    error: Option<&'de RawValue>,
    duplicate: Option<&'static str>,
}

#[derive(Default)]
enum IdField {
    #[default]
    Absent,
    Null,
    Fractional,
    WrongType,
    Good(RequestId),
}

impl Fields<'_> {
    fn into_message(self, bytes: &Bytes) -> Result<Message, EnvelopeFault> {
        let known_id = match &self.id {
            IdField::Good(id) => Some(id.clone()),
            _ => None,
        };
        self.judge(bytes).map_err(|kind| EnvelopeFault::new(kind, known_id))
    }

    fn judge(self, bytes: &Bytes) -> Result<Message, FaultKind> {
        if let Some(name) = self.duplicate {
            return Err(FaultKind::DuplicateMember(name));
        }
        if self.jsonrpc != Some(true) {
            return Err(FaultKind::NotVersionTwo);
        }
        let slice = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
        if let Some(method) = self.method {
            if self.result.is_some() || self.error.is_some() {
                return Err(FaultKind::RequestAndResponse);
            }
            let method = MethodName::from(method.0.ok_or(FaultKind::WrongMethodType)?.as_ref());
            let params = match self.params.map(|raw| (raw, raw.get().as_bytes())) {
                // Some peers write null for "none".
                None | Some((_, b"null")) => Params::NONE,
                Some((raw, [b'{', ..])) => Params::trusted(slice(raw)),
                Some(_) => return Err(FaultKind::WrongParamsType),
            };
            return match self.id {
                IdField::Absent => Ok(Message::Notification(Notification { method, params })),
                IdField::Good(id) => Ok(Message::Request(Request { id, method, params })),
                bad => Err(bad.fault()),
            };
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err(FaultKind::ResultAndError),
            (None, None) => Err(FaultKind::NothingInIt),
            (Some(result), None) => match self.id {
                IdField::Good(id) => {
                    let outcome = Ok(Params::trusted(slice(result)));
                    Ok(Message::Response(Response { id: Some(id), outcome }))
                }
                IdField::Absent => Err(FaultKind::MissingId),
                bad => Err(bad.fault()),
            },
            (None, Some(error)) => {
                let error = serde_json::from_str(error.get()).map_err(|_| FaultKind::WrongErrorType)?;
                match self.id {
                    IdField::Good(id) => {
                        Ok(Message::Response(Response { id: Some(id), outcome: Err(error) }))
                    }
                    // Plain JSON-RPC writes null here when the request was unreadable.
                    IdField::Absent | IdField::Null => {
                        Ok(Message::Response(Response { id: None, outcome: Err(error) }))
                    }
                    bad => Err(bad.fault()),
                }
            }
        }
    }
}

impl IdField {
    fn fault(self) -> FaultKind {
        match self {
            Self::Null => FaultKind::NullId,
            Self::Fractional => FaultKind::FractionalId,
            Self::WrongType => FaultKind::WrongIdType,
            Self::Absent | Self::Good(_) => FaultKind::MissingId,
        }
    }
}

impl<'de> Deserialize<'de> for Shape<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShapeVisitor;

        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = Shape<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape<'de>, A::Error> {
                let mut fields = Box::<Fields<'de>>::default();
                while let Some(key) = map.next_key::<Member>()? {
                    let twice = match key {
                        Member::Jsonrpc => {
                            fields.jsonrpc.replace(map.next_value::<Text<'_>>()?.is("2.0")).is_some()
                        }
                        Member::Id => {
                            let before = std::mem::replace(&mut fields.id, map.next_value()?);
                            !matches!(before, IdField::Absent)
                        }
                        Member::Method => fields.method.replace(map.next_value()?).is_some(),
                        Member::Params => fields.params.replace(map.next_value()?).is_some(),
                        Member::Result => fields.result.replace(map.next_value()?).is_some(),
                        Member::Error => fields.error.replace(map.next_value()?).is_some(),
                        Member::Other => {
                            map.next_value::<IgnoredAny>()?;
                            false
                        }
                    };
                    if twice {
                        fields.duplicate = Some(key.name());
                    }
                }
                Ok(Shape::Object(fields))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape<'de>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Shape::Array)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Shape<'de>, E> {
                Ok(Shape::Scalar)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Shape<'de>, E> {
                Ok(Shape::Scalar)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Shape<'de>, E> {
                Ok(Shape::Scalar)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Shape<'de>, E> {
                Ok(Shape::Scalar)
            }

            fn visit_str<E>(self, _: &str) -> Result<Shape<'de>, E> {
                Ok(Shape::Scalar)
            }

            fn visit_unit<E>(self) -> Result<Shape<'de>, E> {
                Ok(Shape::Scalar)
            }
        }

        deserializer.deserialize_any(ShapeVisitor)
    }
}

#[derive(Clone, Copy)]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl Member {
    const fn name(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
            Self::Other => "",
        }
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberVisitor;

        impl Visitor<'_> for MemberVisitor {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Member, E> {
                Ok(match name {
                    "jsonrpc" => Member::Jsonrpc,
                    "id" => Member::Id,
                    "method" => Member::Method,
                    "params" => Member::Params,
                    "result" => Member::Result,
                    "error" => Member::Error,
                    _ => Member::Other,
                })
            }
        }

        deserializer.deserialize_str(MemberVisitor)
    }
}

/// A string, borrowed where it has no escapes; any other JSON value reads as `None`.
pub(crate) struct Text<'de>(pub(crate) Option<Cow<'de, str>>);

impl Text<'_> {
    fn is(&self, expected: &str) -> bool {
        self.0.as_deref() == Some(expected)
    }
}

impl<'de> Text<'de> {
    pub(crate) fn of(raw: &'de RawValue) -> Self {
        let raw = raw.get();
        let plain = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        Self(match plain {
            Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
            // A lone surrogate is valid JSON syntax but no text.
            Some(_) => serde_json::from_str::<String>(raw).ok().map(Cow::Owned),
            None => None,
        })
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::of)
    }
}

impl<'de> Deserialize<'de> for IdField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match raw.as_bytes() {
            b"null" => Self::Null,
            [b'"' | b'-' | b'0'..=b'9', ..] => match serde_json::from_str(raw) {
                Ok(id) => Self::Good(id),
                Err(_) if raw.starts_with('"') => Self::WrongType,
                Err(_) => Self::Fractional,
            },
            _ => Self::WrongType,
        })
    }
}
