//! The tests of `toolwire-macros`: its examples are compiled here, and the rest is in `tests/`.
//!
//! They are no part of that crate because cargo builds what the tests of a procedural macro need for the host, with
//! features of its own: the whole of `toolwire` and its dependencies would be compiled twice.

#[cfg(doctest)]
#[doc = include_str!("../../toolwire-macros/docs/args.md")]
struct Args;

#[cfg(doctest)]
#[doc = include_str!("../../toolwire-macros/docs/prompt.md")]
struct Prompt;

#[cfg(doctest)]
#[doc = include_str!("../../toolwire-macros/docs/resource.md")]
struct Resource;

#[cfg(doctest)]
#[doc = include_str!("../../toolwire-macros/docs/tool.md")]
struct Tool;

#[cfg(doctest)]
#[doc = include_str!("../../toolwire-macros/docs/tools.md")]
struct Tools;
