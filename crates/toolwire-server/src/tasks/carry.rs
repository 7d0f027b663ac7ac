//! What travels with a task from the request that made it.

use std::any::TypeId;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use toolwire_protocol::RawJson;

use crate::Extensions;

/// Takes values of one type out of a request, and puts them back for a later run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
    pack: fn(&Extensions) -> serde_json::Result<Option<Value>>,
    unpack: fn(Value, &mut Extensions) -> serde_json::Result<()>,
}

impl Carrier {
    pub(crate) fn of<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static>() -> Self {
        Self {
            id: TypeId::of::<T>(),
            name: std::any::type_name::<T>(),
            pack: |extensions| extensions.get::<T>().map(serde_json::to_value).transpose(),
            unpack: |value, extensions| {
                extensions.insert(serde_json::from_value::<T>(value)?);
                Ok(())
            },
        }
    }
}

/// What is to be kept of the extensions of a request.
pub(super) fn pack(carriers: &[Carrier], extensions: &Extensions) -> serde_json::Result<RawJson> {
    let mut packed = Map::new();
    for carrier in carriers {
        if let Some(value) = (carrier.pack)(extensions)? {
            packed.insert(carrier.name.to_owned(), value);
        }
    }
    RawJson::of(&packed)
}

/// Puts back what was kept. What nobody carries any longer is left out.
pub(super) fn unpack(
    carriers: &[Carrier],
    packed: &RawJson,
    extensions: &mut Extensions,
) -> serde_json::Result<()> {
    let mut packed: Map<String, Value> = packed.decode()?;
    for carrier in carriers {
        if let Some(value) = packed.remove(carrier.name) {
            (carrier.unpack)(value, extensions)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Tenant(String);

    #[test]
    fn only_what_is_to_be_carried_travels() {
        let carriers = [Carrier::of::<Tenant>(), Carrier::of::<u8>()];
        let mut extensions = Extensions::default();
        extensions.insert(Tenant("acme".to_owned()));
        extensions.insert("a token".to_owned());
        let packed = pack(&carriers, &extensions).unwrap();
        assert!(!packed.text().contains("token"));
        let mut again = Extensions::default();
        unpack(&carriers, &packed, &mut again).unwrap();
        assert_eq!(again.get::<Tenant>(), Some(&Tenant("acme".to_owned())));
        assert_eq!(again.get::<u8>(), None);
        let broken = RawJson::parse(packed.text().replace("\"acme\"", "7")).unwrap();
        assert!(
            unpack(&carriers, &broken, &mut again).is_err(),
            "it is never left out because it cannot be read"
        );
    }
}
