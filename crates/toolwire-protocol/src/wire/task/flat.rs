//! Reading and writing tasks, whose members lie side by side with those of the message they are in.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

use super::{CreateTaskResult, DetailedTask, InEra, Task};
use crate::{
    Era,
    wire::{EmptyResult, Extra, Meta, ResultType, buffered::Buffered, object::Object},
};

macro_rules! in_era {
    ($($task:ident),+) => {
        $(
            impl $task {
                /// This, to be serialised the way `era` does.
                pub const fn in_era(&self, era: Era) -> InEra<'_, Self> {
                    InEra { value: self, era }
                }
            }

            impl Serialize for InEra<'_, $task> {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let mut map = serializer.serialize_map(None)?;
                    self.value.write_in(self.era, &mut map)?;
                    map.end()
                }
            }
        )+
    };
}

in_era!(Task, DetailedTask, CreateTaskResult);

impl Task {
    fn write_in<M: SerializeMap>(&self, era: Era, map: &mut M) -> Result<(), M::Error> {
        if era == Era::Legacy {
            return self.write(map);
        }
        map.serialize_entry("taskId", &self.task_id)?;
        map.serialize_entry("status", &self.status)?;
        write_some(map, "statusMessage", self.status_message.as_ref())?;
        map.serialize_entry("createdAt", &self.created_at)?;
        map.serialize_entry("lastUpdatedAt", &self.last_updated_at)?;
        map.serialize_entry("ttlMs", &self.ttl)?;
        write_some(map, "pollIntervalMs", self.poll_interval.as_ref())?;
        self.extra.write(map)
    }
}

impl DetailedTask {
    fn write_in<M: SerializeMap>(&self, era: Era, map: &mut M) -> Result<(), M::Error> {
        write_result(map, self.result_type.as_ref(), self.meta.as_ref())?;
        self.task.write_in(era, map)?;
        write_some(map, "inputRequests", self.input_requests.as_ref())?;
        write_some(map, "result", self.result.as_ref())?;
        write_some(map, "error", self.error.as_ref())
    }
}

impl CreateTaskResult {
    fn write_in<M: SerializeMap>(&self, era: Era, map: &mut M) -> Result<(), M::Error> {
        write_result(map, self.result_type.as_ref(), self.meta.as_ref())?;
        match era {
            Era::Legacy => map.serialize_entry("task", &self.task)?,
            Era::Modern => self.task.write_in(era, map)?,
        }
        self.extra.write(map)
    }
}

fn write_result<M: SerializeMap>(
    map: &mut M,
    result_type: Option<&ResultType>,
    meta: Option<&Meta>,
) -> Result<(), M::Error> {
    write_some(map, "resultType", result_type)?;
    write_some(map, "_meta", meta)
}

fn write_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

impl Serialize for DetailedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_era(Era::Legacy).serialize(serializer)
    }
}

impl Serialize for CreateTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_era(Era::Legacy).serialize(serializer)
    }
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
