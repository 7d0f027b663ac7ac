//! Sealing what lies in a store: the arguments, the journal and the results of tasks.
//!
//! It is not a `requestState`: nobody carries it, so it may be long, and it outlives protocol versions. What it is bound
//! to is where it lies.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    XNonce,
    aead::{Aead, Payload},
};

use super::{
    KeyRing, NONCE_BYTES, Unsealable,
    keys::{KEY_ID_BYTES, PurposeKey},
};

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;

/// Where a value lies. A value that was moved elsewhere does not open.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a place is described completely or not at all")]
pub struct StorePlace<'a> {
    /// Which server it is for.
    pub audience: &'a str,
    /// The task that it belongs to.
    pub task: &'a [u8],
    /// What it is there: the parameters, a step, a question, …
    pub kind: &'a str,
    /// Which one of these.
    pub name: &'a str,
}

impl StorePlace<'_> {
    fn associated(&self) -> Vec<u8> {
        let parts = [self.audience.as_bytes(), self.task, self.kind.as_bytes(), self.name.as_bytes()];
        let mut bytes = vec![FORMAT];
        for part in parts {
            // Each with its length, so that none can run into the next.
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

impl KeyRing {
    /// The keys for what lies in a store, the one that seals first.
    pub fn store_keys(&self) -> impl Iterator<Item = [u8; 4]> {
        self.keys.iter().map(|key| key.store.id)
    }

    /// Seals a value for its place in a store, with the key of this id, or the first. The nonce must be random and never
    /// used twice.
    ///
    /// ```
    /// use toolwire_protocol::seal::{KeyRing, StorePlace};
    ///
    /// let ring = KeyRing::new([b"a secret of at least thirty-two bytes"]).unwrap();
    /// let place = StorePlace { audience: "reports", task: b"1", kind: "step", name: "fetch" };
    /// let sealed = ring.seal_value([7; 24], None, &place, b"42").unwrap(); // a random nonce in real life
    /// assert_eq!(ring.open_value(&sealed, &place).unwrap(), b"42");
    /// assert!(ring.open_value(&sealed, &StorePlace { task: b"2", ..place }).is_err());
    /// ```
    ///
    /// # Errors
    /// When there is no such key.
    pub fn seal_value(
        &self,
        nonce: [u8; NONCE_BYTES],
        key: Option<[u8; 4]>,
        place: &StorePlace<'_>,
        plain: &[u8],
    ) -> Result<String, Unsealable> {
        let key = match key {
            Some(id) => self.store_key(id),
            None => self.keys.first().map(|key| &key.store),
        };
        let key = key.ok_or(Unsealable::UnknownKey)?;
        let aad = place.associated();
        let payload = Payload { msg: plain, aad: &aad };
        // Encryption fails only for texts of many gigabytes.
        let cipher = key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| Unsealable::TooLong)?;
        let mut token = Vec::with_capacity(HEAD_BYTES + cipher.len());
        token.push(FORMAT);
        token.extend_from_slice(&key.id);
        token.extend_from_slice(&nonce);
        token.extend_from_slice(&cipher);
        Ok(BASE64_URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens what [`seal_value`](Self::seal_value) has made for this place with one of these keys.
    ///
    /// # Errors
    /// [`Unsealable`] for everything else.
    pub fn open_value(&self, sealed: &str, place: &StorePlace<'_>) -> Result<Vec<u8>, Unsealable> {
        let token = BASE64_URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Unsealable::Malformed)?;
        let (head, cipher) = token.split_first_chunk::<HEAD_BYTES>().ok_or(Unsealable::Malformed)?;
        let (format, rest) = head.split_first().ok_or(Unsealable::Malformed)?;
        let (id, nonce) = rest.split_first_chunk::<KEY_ID_BYTES>().ok_or(Unsealable::Malformed)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| Unsealable::Malformed)?;
        if *format != FORMAT {
            return Err(Unsealable::Malformed);
        }
        let key = self.store_key(*id).ok_or(Unsealable::UnknownKey)?;
        let aad = place.associated();
        let payload = Payload { msg: cipher, aad: &aad };
        key.cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| Unsealable::Forged)
    }

    /// Returns the id of the key that a value was sealed with, as far as its first bytes tell; nothing is opened.
    #[doc(hidden)]
    pub fn key_of_value(sealed: &str) -> Option<[u8; 4]> {
        // Eight characters are six bytes: the format, the id, and the first of the nonce.
        let head = BASE64_URL_SAFE_NO_PAD.decode(sealed.get(..8)?).ok()?;
        let (format, rest) = head.split_first()?;
        rest.first_chunk::<KEY_ID_BYTES>().copied().filter(|_| *format == FORMAT)
    }

    fn store_key(&self, id: [u8; KEY_ID_BYTES]) -> Option<&PurposeKey> {
        self.keys.iter().map(|key| &key.store).find(|key| key.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    const OLD: &[u8] = b"the old secret, which is long enough too";
    const NEW: &[u8] = b"the new secret, which is long enough as well";

    const PLACE: StorePlace<'_> =
        StorePlace { audience: "reports", task: b"task 1", kind: "step", name: "fetch" };

    #[test]
    fn a_value_opens_where_it_was_put_and_nowhere_else() {
        let ring = KeyRing::new([OLD]).unwrap();
        let long = vec![b'x'; 100_000];
        let sealed = ring.seal_value([1; 24], None, &PLACE, &long).unwrap();
        assert_eq!(ring.open_value(&sealed, &PLACE).unwrap(), long);
        for elsewhere in [
            StorePlace { audience: "report", ..PLACE },
            StorePlace { task: b"task 2", ..PLACE },
            StorePlace { kind: "ask", ..PLACE },
            StorePlace { name: "fetch2", ..PLACE },
            StorePlace { kind: "stepf", name: "etch", ..PLACE },
        ] {
            assert_eq!(ring.open_value(&sealed, &elsewhere), Err(Unsealable::Forged), "{elsewhere:?}");
        }
        let mut bent = sealed.clone();
        bent.replace_range(60..61, if &sealed[60..61] == "A" { "B" } else { "A" });
        assert_eq!(ring.open_value(&bent, &PLACE), Err(Unsealable::Forged));
        for malformed in ["", "AA", "not base64!"] {
            assert_eq!(ring.open_value(malformed, &PLACE), Err(Unsealable::Malformed));
        }
    }

    #[test]
    fn secrets_can_be_rotated_and_a_key_can_be_named() {
        let (old, both) = (KeyRing::new([OLD]).unwrap(), KeyRing::new([NEW, OLD]).unwrap());
        let before = old.seal_value([1; 24], None, &PLACE, b"1").unwrap();
        assert_eq!(both.open_value(&before, &PLACE).unwrap(), b"1");
        let after = both.seal_value([2; 24], None, &PLACE, b"2").unwrap();
        assert_eq!(old.open_value(&after, &PLACE), Err(Unsealable::UnknownKey));
        let id = old.store_keys().next();
        let named = both.seal_value([3; 24], id, &PLACE, b"3").unwrap();
        assert_eq!(old.open_value(&named, &PLACE).unwrap(), b"3");
        assert_eq!(KeyRing::key_of_value(&named), id);
        for malformed in ["", "AQ", "AgAAAAAA", "not base64!"] {
            assert_eq!(KeyRing::key_of_value(malformed), None);
        }
        assert_eq!(
            old.seal_value([4; 24], both.store_keys().next(), &PLACE, b"4"),
            Err(Unsealable::UnknownKey)
        );
    }

    #[test]
    fn what_a_client_carries_is_never_taken_for_what_lies_in_a_store() {
        let ring = KeyRing::new([OLD]).unwrap();
        let carried = ring.seal([1; 24], PLACE.audience, Version::LATEST, b"1");
        assert_eq!(ring.open_value(&carried, &PLACE), Err(Unsealable::UnknownKey));
        let stored = ring.seal_value([1; 24], None, &PLACE, b"1").unwrap();
        assert_eq!(ring.open(&stored, PLACE.audience, Version::LATEST), Err(Unsealable::UnknownKey));
    }
}
