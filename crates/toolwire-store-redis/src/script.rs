//! Scripts that the server runs as one step, and what they answer.

use redis::{Script, Value};
use toolwire_protocol::RawJson;
use toolwire_store::StoreError;

/// A script with what it begins with. With `at maxmemory`, one that also works when the server has no memory left: what
/// frees memory, and what keeps those who may free some from giving up.
macro_rules! script {
    (at maxmemory: $($file:literal),+) => {
        redis::Script::new(concat!(
            "#!lua flags=allow-oom\n",
            $(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts/", $file, ".lua"))),+
        ))
    };
    ($($file:literal),+) => {
        redis::Script::new(concat!($(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts/", $file, ".lua"))),+))
    };
}
pub(crate) use script;

/// One call of a script: its arguments in their order.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    script: &'a Script,
    arguments: Vec<Vec<u8>>,
    prefix: &'a str,
}

impl<'a> Call<'a> {
    pub(crate) fn new(script: &'a Script, prefix: &'a str) -> Self {
        Self { script, arguments: Vec::new(), prefix }
    }

    pub(crate) fn text(mut self, text: impl AsRef<[u8]>) -> Self {
        self.arguments.push(text.as_ref().to_vec());
        self
    }

    pub(crate) fn number(self, number: u64) -> Self {
        self.text(number.to_string())
    }

    pub(crate) fn flag(self, flag: bool) -> Self {
        self.text(if flag { "1" } else { "0" })
    }

    pub(crate) fn each<T>(self, things: impl IntoIterator<Item = T>, add: impl Fn(Self, T) -> Self) -> Self {
        things.into_iter().fold(self, add)
    }

    /// Runs it; a server that does not know it is given it first.
    pub(crate) async fn run(
        &self,
        connection: &mut redis::aio::MultiplexedConnection,
    ) -> redis::RedisResult<Value> {
        let mut invocation = self.script.key(self.prefix);
        for argument in &self.arguments {
            invocation.arg(argument.as_slice());
        }
        invocation.invoke_async(connection).await
    }
}

/// The members of an answer, one after the other.
#[derive(Debug)]
pub(crate) struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    pub(crate) fn of(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            _ => Err(unexpected("a list")),
        }
    }

    fn value(&mut self) -> Result<Value, StoreError> {
        self.0.next().ok_or_else(|| unexpected("more"))
    }

    /// How many members there still are.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn list(&mut self) -> Result<Self, StoreError> {
        Self::of(self.value()?)
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        self.maybe_number()?.ok_or_else(|| unexpected("a number"))
    }

    pub(crate) fn maybe_number(&mut self) -> Result<Option<u64>, StoreError> {
        let number = match self.value()? {
            Value::Nil => return Ok(None),
            Value::Int(number) => u64::try_from(number).ok(),
            Value::BulkString(text) => std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()),
            _ => None,
        };
        number.map(Some).ok_or_else(|| unexpected("a number"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, StoreError> {
        Ok(self.number()? == 1)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.maybe_bytes()?.ok_or_else(|| unexpected("a value"))
    }

    pub(crate) fn maybe_bytes(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.value()? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes)),
            _ => Err(unexpected("a value")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        String::from_utf8(self.bytes()?).map_err(|_| unexpected("a text"))
    }

    pub(crate) fn texts(&mut self) -> Result<Vec<String>, StoreError> {
        let mut list = self.list()?;
        (0..list.left()).map(|_| list.text()).collect()
    }

    pub(crate) fn json(&mut self) -> Result<RawJson, StoreError> {
        // As lenient as what has taken it: a value that was accepted can be read again.
        serde_json::from_slice(&self.bytes()?).map_err(StoreError::corrupt)
    }

    pub(crate) fn jsons(&mut self) -> Result<Vec<RawJson>, StoreError> {
        let mut list = self.list()?;
        (0..list.left()).map(|_| list.json()).collect()
    }
}

/// A script of another version, or somebody who writes to our keys.
pub(crate) fn unexpected(wanted: &str) -> StoreError {
    StoreError::corrupt(format!("Redis answered with something else where {wanted} was expected"))
}
