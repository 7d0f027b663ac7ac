//! Reading the envelope, in one pass over its text.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::{EnvelopeFault, FaultKind, Message, Notification, Params, Request, Response};
use crate::{
    MethodName, RequestId,
    peek::Peek,
    scan::{Malformed, Quoted, Scanner},
};

/// Parses one message, and looks at its parameters on the way if there is a `peek` to be filled.
pub(super) fn parse(bytes: &Bytes, peek: Option<&mut Peek>) -> Result<Message, EnvelopeFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| not_json(bytes))?;
    let mut scanner = Scanner::new(text);
    if scanner.peek() != Some(b'{') {
        return Err(no_object(text, &mut scanner, bytes));
    }
    let mut fields = Fields { peek, ..Fields::default() };
    let walked = scanner.object(|scanner, name| fields.member(scanner, name, bytes));
    let whole = walked.is_ok() && scanner.is_done();
    if let Some(flaw) = scanner.flaw(whole) {
        return Err(fields.fault(flaw.into()));
    }
    if !whole {
        return Err(not_json(bytes));
    }
    fields.into_message(bytes)
}

#[cold]
fn no_object(text: &str, scanner: &mut Scanner<'_>, bytes: &Bytes) -> EnvelopeFault {
    match scanner.value() {
        Ok(_) if !scanner.is_done() => not_json(bytes),
        Ok(_) if text.trim_start().starts_with('[') => EnvelopeFault::new(FaultKind::Batch, None),
        Ok(_) => EnvelopeFault::new(FaultKind::NotAnObject, None),
        Err(Malformed) => match scanner.flaw(false) {
            Some(flaw) => EnvelopeFault::new(flaw.into(), None),
            None => not_json(bytes),
        },
    }
}

/// Says where the text stops being JSON, which the scanner does not keep track of.
#[cold]
fn not_json(bytes: &[u8]) -> EnvelopeFault {
    // What is ignored is not checked for everything, but for all that makes text no JSON.
    let error = serde_json::from_slice::<IgnoredAny>(bytes).err();
    let why = error.map_or_else(|| "not one JSON value".to_owned(), |error| error.to_string());
    EnvelopeFault::new(FaultKind::NotJson(why.into()), None)
}

/// Parses an array of messages, as 2025-03-26 allows it. Each message stands or falls for itself.
///
/// One message more than `limit` ends the reading: what comes behind it is not looked at.
///
/// # Errors
/// [`EnvelopeFault`] when the array itself is not acceptable.
pub fn parse_batch(
    bytes: &Bytes,
    limit: usize,
) -> Result<Vec<Result<Message, EnvelopeFault>>, EnvelopeFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| not_json(bytes))?;
    let mut scanner = Scanner::new(text);
    let (mut items, mut too_long) = (Vec::new(), false);
    let walked = scanner.array(|scanner| {
        too_long = items.len() == limit;
        if too_long {
            return Err(Malformed);
        }
        items.push(scanner.value()?);
        Ok(())
    });
    let fault = |kind| Err(EnvelopeFault::new(kind, None));
    if too_long {
        return fault(FaultKind::BatchTooLong { limit });
    }
    if walked.is_err() || !scanner.is_done() {
        return scanner.flaw(false).map_or_else(|| Err(not_json(bytes)), |flaw| fault(flaw.into()));
    }
    if items.is_empty() {
        return fault(FaultKind::EmptyBatch);
    }
    Ok(items.into_iter().map(|item| parse(&bytes.slice_ref(item.as_bytes()), None)).collect())
}

/// The members of an envelope as they stand; faults are kept instead of thrown, so that broken JSON
/// further on is still noticed and the id can still be read.
#[derive(Default)]
struct Fields<'a, 'p> {
    /// What is seen of the parameters, if it is wanted.
    peek: Option<&'p mut Peek>,
    /// Whether it says that it is version 2.0.
    jsonrpc: bool,
    id: IdField,
    method: MethodField<'a>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

#[derive(Default)]
enum MethodField<'a> {
    #[default]
    Absent,
    WrongType,
    Good(Cow<'a, str>),
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

impl<'a> Fields<'a, '_> {
    /// Takes the member that the scanner stands before.
    fn member(
        &mut self,
        scanner: &mut Scanner<'a>,
        name: Quoted<'a>,
        bytes: &Bytes,
    ) -> Result<(), Malformed> {
        match name.text().as_deref() {
            Some("jsonrpc") => self.jsonrpc = text(scanner)?.as_deref() == Some("2.0"),
            Some("id") => {
                // A second one makes the message unacceptable, and neither of them is the one to answer to.
                let first = matches!(self.id, IdField::Absent);
                let id = IdField::of(scanner)?;
                self.id = if first { id } else { IdField::WrongType };
            }
            Some("method") => {
                self.method = text(scanner)?.map_or(MethodField::WrongType, MethodField::Good);
            }
            Some("params") => {
                self.params = Some(match &mut self.peek {
                    Some(peek) if scanner.peek() == Some(b'{') => {
                        scanner.span(|scanner| peek.scan(scanner, bytes))?
                    }
                    _ => scanner.value()?,
                });
            }
            Some("result") => self.result = Some(scanner.value()?),
            Some("error") => self.error = Some(scanner.value()?),
            _ => drop(scanner.value()?),
        }
        Ok(())
    }

    /// The fault, with the id if it could be read.
    #[cold]
    fn fault(self, kind: FaultKind) -> EnvelopeFault {
        let answer =
            matches!(self.method, MethodField::Absent) && (self.result.is_some() || self.error.is_some());
        let id = match self.id {
            IdField::Good(id) => Some(id),
            _ => None,
        };
        EnvelopeFault { kind, id, answer }
    }

    fn into_message(mut self, bytes: &Bytes) -> Result<Message, EnvelopeFault> {
        self.judge(bytes).map_err(|kind| self.fault(kind))
    }

    /// Makes a message of the members, or says what is wrong and leaves the id where it is.
    fn judge(&mut self, bytes: &Bytes) -> Result<Message, FaultKind> {
        if !self.jsonrpc {
            return Err(FaultKind::NotVersionTwo);
        }
        let slice = |raw: &str| Params::trusted(bytes.slice_ref(raw.as_bytes()));
        if !matches!(self.method, MethodField::Absent) {
            if self.result.is_some() || self.error.is_some() {
                return Err(FaultKind::RequestAndResponse);
            }
            let MethodField::Good(method) = &self.method else { return Err(FaultKind::WrongMethodType) };
            let method = MethodName::from(&**method);
            let params = match self.params {
                // Some peers write null for "none".
                None | Some("null") => Params::NONE,
                Some(raw) if raw.starts_with('{') => slice(raw),
                Some(_) => return Err(FaultKind::WrongParamsType),
            };
            return Ok(match self.id.take()? {
                Some(id) => Message::Request(Request { id, method, params }),
                None => Message::Notification(Notification { method, params }),
            });
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err(FaultKind::ResultAndError),
            (None, None) => Err(FaultKind::NothingInIt),
            (Some(result), None) => {
                let id = self.id.take()?.ok_or(FaultKind::MissingId)?;
                Ok(Message::Response(Response { id: Some(id), outcome: Ok(slice(result)) }))
            }
            (None, Some(error)) => {
                let error =
                    serde_json::from_slice(error.as_bytes()).map_err(|_| FaultKind::WrongErrorType)?;
                // Plain JSON-RPC writes null here when the request was unreadable.
                let id = if matches!(self.id, IdField::Null) { None } else { self.id.take()? };
                Ok(Message::Response(Response { id, outcome: Err(error) }))
            }
        }
    }
}

impl IdField {
    fn of(scanner: &mut Scanner<'_>) -> Result<Self, Malformed> {
        Ok(match scanner.peek() {
            Some(b'"') => match scanner.string()?.text() {
                Some(text) => Self::Good(RequestId::Str((*text).into())),
                None => Self::WrongType,
            },
            Some(b'-' | b'0'..=b'9') => match scanner.value()? {
                // A number with a sign but without a value is none of the whole ones.
                "-0" => Self::Fractional,
                number => {
                    number.parse().map_or(Self::Fractional, |number| Self::Good(RequestId::Num(number)))
                }
            },
            _ if scanner.value()? == "null" => Self::Null,
            _ => Self::WrongType,
        })
    }

    /// The id, if there is one.
    fn take(&mut self) -> Result<Option<RequestId>, FaultKind> {
        match std::mem::take(self) {
            Self::Absent => Ok(None),
            Self::Good(id) => Ok(Some(id)),
            Self::Null => Err(FaultKind::NullId),
            Self::Fractional => Err(FaultKind::FractionalId),
            Self::WrongType => Err(FaultKind::WrongIdType),
        }
    }
}

/// Passes a value, and gives its text if it is a string.
pub(crate) fn text<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Cow<'a, str>>, Malformed> {
    if scanner.peek() == Some(b'"') {
        return scanner.string().map(Quoted::text);
    }
    scanner.value().map(|_| None)
}
