//! Results for people: text, tables, files, and how it goes meanwhile.

mod content;
mod conversation;
mod files;
mod live;
mod structured;
mod words;

pub(crate) use content::{Blocks, text};
pub(crate) use conversation::message;
pub(crate) use files::{Saver, decode};
pub(crate) use live::{Live, log_line};
pub(crate) use structured::structured;
pub(crate) use words::{columns, indented, room, size, wrapped};
