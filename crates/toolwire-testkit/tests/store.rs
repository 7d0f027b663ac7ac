//! The store in memory keeps the contract of stores.

use toolwire_testkit::store::contract::InMemory;

toolwire_testkit::store_contract!(InMemory::new());
