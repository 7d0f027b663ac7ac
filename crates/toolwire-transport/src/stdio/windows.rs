//! Standard input and output where only blocking access is to be had.

use std::fs::File;
use std::io;
use std::os::windows::io::AsHandle;

use super::threads::{ThreadReader, ThreadWriter};

pub(super) type Input = ThreadReader;
pub(super) type Output = ThreadWriter;

/// The protocol's own copies of the two handles.
#[derive(Debug)]
pub(super) struct Descriptors {
    input: File,
    output: File,
}

impl Descriptors {
    pub(super) fn claim() -> io::Result<Self> {
        let input = io::stdin().as_handle().try_clone_to_owned()?;
        let output = io::stdout().as_handle().try_clone_to_owned()?;
        Ok(Self { input: input.into(), output: output.into() })
    }

    pub(super) fn open(self) -> (Input, Output) {
        (ThreadReader::spawn(self.input), ThreadWriter::spawn(self.output))
    }
}
