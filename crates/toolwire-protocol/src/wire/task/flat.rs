//! Reading tasks, and writing them as the core of 2025-11-25 does: whose members lie side by side with those of the message they are in.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

use super::{CreateTaskResult, DetailedTask};
use crate::wire::{EmptyResult, Extra, Meta, ResultType, buffered::Buffered, object::Object};

impl Serialize for DetailedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_result(&mut map, self.result_type.as_ref(), self.meta.as_ref())?;
        self.task.write(&mut map)?;
        self.write_details(&mut map)?;
        map.end()
    }
}

impl DetailedTask {
    /// Writes what a status brings along, which has the same names in every revision.
    pub(crate) fn write_details<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        write_some(map, "inputRequests", self.input_requests.as_ref())?;
        write_some(map, "result", self.result.as_ref())?;
        write_some(map, "error", self.error.as_ref())
    }
}

impl Serialize for CreateTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_result(&mut map, self.result_type.as_ref(), self.meta.as_ref())?;
        map.serialize_entry("task", &self.task)?;
        self.extra.write(&mut map)?;
        map.end()
    }
}

/// Writes what every result may have.
pub(crate) fn write_result<M: SerializeMap>(
    map: &mut M,
    result_type: Option<&ResultType>,
    meta: Option<&Meta>,
) -> Result<(), M::Error> {
    write_some(map, "resultType", result_type)?;
    write_some(map, "_meta", meta)
}

/// Writes a member if there is a value for it.
pub(crate) fn write_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

impl<'de> Deserialize<'de> for DetailedTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DetailedTaskVisitor)
    }
}

struct DetailedTaskVisitor;

impl<'de> Visitor<'de> for DetailedTaskVisitor {
    type Value = DetailedTask;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (DetailedTask)")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DetailedTask, A::Error> {
        let mut members = Buffered::collect(map)?;
        Ok(DetailedTask {
            input_requests: members.take_as("inputRequests")?,
            result: members.take_as("result")?,
            error: members.take_as("error")?,
            result_type: members.take_as("resultType")?,
            meta: members.take_as("_meta")?,
            task: members.into_typed()?,
        })
    }
}

impl<'de> Deserialize<'de> for CreateTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CreateTaskVisitor)
    }
}

struct CreateTaskVisitor;

impl<'de> Visitor<'de> for CreateTaskVisitor {
    type Value = CreateTaskResult;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (CreateTaskResult)")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CreateTaskResult, A::Error> {
        let mut members = Buffered::collect(map)?;
        if let Some(task) = members.take_as("task")? {
            let EmptyResult { result_type, meta, extra } = members.into_typed()?;
            return Ok(CreateTaskResult { task, result_type, meta, extra });
        }
        Ok(CreateTaskResult {
            result_type: members.take_as("resultType")?,
            meta: members.take_as("_meta")?,
            task: members.into_typed()?,
            extra: Extra::new(),
        })
    }
}
