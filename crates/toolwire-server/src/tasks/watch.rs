//! Telling clients of changes of their tasks.
