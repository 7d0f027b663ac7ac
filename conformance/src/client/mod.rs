//! The client that the suite watches: what an application would do in each of its scenarios.
