//! Which versions of the protocol a client is ready to speak.

use toolwire_protocol::Version;

/// Which protocol versions to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraChoice {
    /// Find out what the server speaks, and prefer the newest.
    #[default]
    Auto,
    /// Only versions without a handshake: `server/discover` opens.
    Modern,
    /// Only versions with a handshake: `initialize` opens.
    Legacy,
    /// Only this version.
    Version(Version),
}

impl EraChoice {
    /// The versions it allows, oldest first.
    pub(crate) fn offered(self) -> Vec<Version> {
        let allowed = |version: &Version| match self {
            Self::Auto => true,
            Self::Modern => version.is_modern(),
            Self::Legacy => !version.is_modern(),
            Self::Version(only) => *version == only,
        };
        Version::ALL.into_iter().filter(allowed).collect()
    }
}
