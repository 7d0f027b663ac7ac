//! Tests for stores: their [contract], for the stores of this project and for yours, and a
//! [store that fails](faulty) when it is told to.

pub mod contract;
pub mod faulty;
