//! Two macros that turn the specification's TypeScript into Rust types.
//!
//! `wire_struct!` reads like an interface of the specification:
//!
//! ```text
//! wire_struct! {
//!     /// What it is.
//!     pub struct Tool {
//!         name: String,                                        // required
//!         title?: String,                                      // optional; `null` counts as absent
//!         input_schema as "inputSchema": JsonObject,           // another name on the wire
//!         structured_content as "structuredContent" ??: RawJson, // optional, and `null` is a value
//!     }
//! }
//! ```
//!
//! `pub struct Resource worded { … }` has constructors of its own, which name what is given, so that the positional `new`
//! is not shown. A second literal after `|` is another spelling accepted on input, and `tag "type" = "text"` after the
//! name is a member with a fixed value. `wire_enum!` is the same idea for enumerations of strings.
//! Neither knows anything about revisions: which member may be sent to whom is the codec's business.

/// Defines a struct with its constructor, its setters and its serde implementations.
macro_rules! wire_struct {
    // Each member is sorted into three lists: all of them in order, the required ones, the optional ones.
    (@member $head:tt [$($all:tt)*] [$($req:tt)*] [$($opt:tt)*]
        $(#[$doc:meta])* $field:ident $(as $wire:literal $(| $alias:literal)*)? : $ty:ty $(, $($rest:tt)*)?) => {
        wire_struct! { @member $head
            [$($all)* { required [$(#[$doc])*] $field ($($wire $($alias)*)?) $ty }]
            [$($req)* { $field $ty }] [$($opt)*] $($($rest)*)? }
    };
    (@member $head:tt [$($all:tt)*] [$($req:tt)*] [$($opt:tt)*]
        $(#[$doc:meta])* $field:ident $(as $wire:literal $(| $alias:literal)*)? ? : $ty:ty $(, $($rest:tt)*)?) => {
        wire_struct! { @member $head
            [$($all)* { optional [$(#[$doc])*] $field ($($wire $($alias)*)?) $ty }]
            [$($req)*] [$($opt)* { $field ($($wire)?) $ty }] $($($rest)*)? }
    };
    (@member $head:tt [$($all:tt)*] [$($req:tt)*] [$($opt:tt)*]
        $(#[$doc:meta])* $field:ident $(as $wire:literal $(| $alias:literal)*)? ? ? : $ty:ty $(, $($rest:tt)*)?) => {
        wire_struct! { @member $head
            [$($all)* { present [$(#[$doc])*] $field ($($wire $($alias)*)?) $ty }]
            [$($req)*] [$($opt)* { $field ($($wire)?) $ty }] $($($rest)*)? }
    };
    (@member { [$($attr:tt)*] $name:ident [$($key:literal $tag:literal)?] [$($constructor:tt)*] }
        [$({ $kind:ident [$($doc:tt)*] $field:ident $wire:tt $ty:ty })*]
        [$({ $req:ident $req_ty:ty })*]
        [$({ $opt:ident $opt_wire:tt $opt_ty:ty })*]) => {
        $($attr)*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($($doc)* pub $field: wire_struct!(@type $kind $ty),)*
            /// Members that are not part of the model, kept as they came.
            pub extra: $crate::wire::Extra,
        }

        impl $name {
            /// Creates one from its required members; the optional ones are absent.
            $($constructor)*
            pub fn new($($req: impl Into<$req_ty>),*) -> Self {
                Self {
                    $($req: $req.into(),)*
                    $($opt: None,)*
                    extra: $crate::wire::Extra::new(),
                }
            }

            $(
                #[doc = concat!("Sets `", wire_struct!(@name $opt $opt_wire), "`.")]
                #[must_use]
                pub fn $opt(mut self, value: impl Into<$opt_ty>) -> Self {
                    self.$opt = Some(value.into());
                    self
                }
            )*
        }

        wire_struct! { @default $name $($req)* }

        const _: () = {
            /// The members that have been read so far.
            #[derive(Default)]
            pub(crate) struct Draft {
                $($field: Option<wire_struct!(@draft $kind $ty)>,)*
                extra: $crate::wire::Extra,
            }

            impl $crate::wire::object::Object for $name {
                type Draft = Draft;

                const NAME: &'static str = stringify!($name);
                const TAG: Option<(&'static str, &'static str)> = wire_struct!(@tag $($key $tag)?);

                fn read<'de, A: ::serde::de::MapAccess<'de>>(
                    draft: &mut Draft,
                    key: &str,
                    map: &mut A,
                ) -> Result<(), A::Error> {
                    match key {
                        $(wire_struct!(@names $field $wire) => {
                            let name = wire_struct!(@name $field $wire);
                            $crate::wire::object::read(&mut draft.$field, name, map)
                        })*
                        other => draft.extra.read(other, map),
                    }
                }

                fn finish<E: ::serde::de::Error>(draft: Draft) -> Result<Self, E> {
                    Ok(Self {
                        $($field: wire_struct!(@finish $kind draft.$field, wire_struct!(@name $field $wire)),)*
                        extra: draft.extra,
                    })
                }

                fn write<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                    $(map.serialize_entry($key, $tag)?;)?
                    $(wire_struct!(@write $kind &self.$field, wire_struct!(@name $field $wire), map);)*
                    self.extra.write(map)
                }
            }
        };

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::wire::object::serialize(self, serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::wire::object::deserialize(deserializer)
            }
        }
    };

    (@type required $ty:ty) => { $ty };
    (@type $optional:ident $ty:ty) => { Option<$ty> };

    // A draft knows of an optional member whether it has been read, even if it was `null`.
    (@draft optional $ty:ty) => { Option<$ty> };
    (@draft $kind:ident $ty:ty) => { $ty };

    (@name $field:ident ()) => { stringify!($field) };
    (@name $field:ident ($wire:literal $($alias:literal)*)) => { $wire };
    (@names $field:ident ()) => { stringify!($field) };
    (@names $field:ident ($wire:literal $($alias:literal)*)) => { $wire $(| $alias)* };

    (@tag) => { None };
    (@tag $key:literal $tag:literal) => { Some(($key, $tag)) };

    (@finish required $slot:expr, $name:expr) => { $slot.ok_or_else(|| E::missing_field($name))? };
    (@finish optional $slot:expr, $name:expr) => { $slot.flatten() };
    (@finish present $slot:expr, $name:expr) => { $slot };

    (@write required $slot:expr, $name:expr, $map:expr) => { $map.serialize_entry($name, $slot)? };
    (@write $optional:ident $slot:expr, $name:expr, $map:expr) => {
        if let Some(value) = $slot {
            $map.serialize_entry($name, value)?;
        }
    };

    // Only a struct without required members has a default.
    (@default $name:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    (@default $name:ident $($required:ident)+) => {};

    ($(#[$attr:meta])* pub struct $name:ident worded { $($body:tt)* }) => {
        wire_struct! { @member { [$(#[$attr])*] $name [] [#[doc(hidden)]] } [] [] [] $($body)* }
    };
    ($(#[$attr:meta])* pub struct $name:ident $(tag $key:literal = $tag:literal)? { $($body:tt)* }) => {
        wire_struct! { @member { [$(#[$attr])*] $name [$($key $tag)?] [] } [] [] [] $($body)* }
    };
}

/// Defines an enumeration of strings. With `open`, a string that is not listed is kept in `Other`.
macro_rules! wire_enum {
    ($(#[$attr:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// The word that stands for it on the wire.
            pub const fn as_str(&self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        wire_enum! { @serde $name }

        impl $crate::wire::string_enum::StringEnum for $name {
            const EXPECTED: &'static [&'static str] = &[$($text),+];

            fn from_text(word: &str) -> Option<Self> {
                match word {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
    ($(#[$attr:meta])* pub open enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A word that this version of the model does not know.
            Other(String),
        }

        impl $name {
            /// The word that stands for it on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        wire_enum! { @serde $name }

        impl $crate::wire::string_enum::StringEnum for $name {
            const EXPECTED: &'static [&'static str] = &[$($text),+];

            fn from_text(word: &str) -> Option<Self> {
                Some(Self::from(word))
            }
        }
    };
    (@serde $name:ident) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::wire::string_enum::deserialize(deserializer)
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};
