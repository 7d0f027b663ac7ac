//! Tasks, as each revision spells them.
//!
//! 2025-11-25 has them in its core, the extension of 2026-07-28 has the same members under other names and in other
//! places. Both are read everywhere.

mod state;

pub use state::{CreatedTask, ShownTask, TaskOutcome, TaskState, relate, relate_question};

#[cfg(test)]
mod tests;

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    Feature, Version,
    wire::{CreateTaskResult, DetailedTask, Task, write_result, write_some},
};

/// A task, to be serialised the way one revision does. It renames and wraps, and drops nothing.
#[derive(Debug, Clone, Copy)]
pub struct InVersion<'a, T> {
    value: &'a T,
    version: Version,
}

macro_rules! in_version {
    ($($task:ident, $write:ident;)+) => {
        $(
            impl $task {
                /// This, to be serialised the way `version` does.
                pub const fn in_version(&self, version: Version) -> InVersion<'_, Self> {
                    InVersion { value: self, version }
                }
            }

            impl Serialize for InVersion<'_, $task> {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    if !self.version.has(Feature::TasksExtension) {
                        return self.value.serialize(serializer);
                    }
                    let mut map = serializer.serialize_map(None)?;
                    $write(self.value, &mut map)?;
                    map.end()
                }
            }
        )+
    };
}

in_version! {
    Task, write_task;
    DetailedTask, write_detailed;
    CreateTaskResult, write_created;
}

fn write_task<M: SerializeMap>(task: &Task, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("taskId", &task.task_id)?;
    map.serialize_entry("status", &task.status)?;
    write_some(map, "statusMessage", task.status_message.as_ref())?;
    map.serialize_entry("createdAt", &task.created_at)?;
    map.serialize_entry("lastUpdatedAt", &task.last_updated_at)?;
    map.serialize_entry("ttlMs", &task.ttl)?;
    write_some(map, "pollIntervalMs", task.poll_interval.as_ref())?;
    task.extra.write(map)
}

fn write_detailed<M: SerializeMap>(task: &DetailedTask, map: &mut M) -> Result<(), M::Error> {
    write_result(map, task.result_type.as_ref(), task.meta.as_ref())?;
    write_task(&task.task, map)?;
    task.write_details(map)
}

fn write_created<M: SerializeMap>(created: &CreateTaskResult, map: &mut M) -> Result<(), M::Error> {
    write_result(map, created.result_type.as_ref(), created.meta.as_ref())?;
    write_task(&created.task, map)?;
    created.extra.write(map)
}
