//! The charge for a buffer that grows and shrinks.

use crate::ledger::{Account, Charge, Ledger, LimitReached};

/// The number of bytes that one connection buffers in one direction without being charged: 64 KiB, about as much as one read or
/// write takes. Thus small messages cost no shared counters, and what is not charged is bounded by the number of
/// connections.
pub const UNCHARGED_BYTES: usize = 64 * 1024;

/// The charge for what one connection buffers in one direction, if that is more than [`UNCHARGED_BYTES`].
#[derive(Debug)]
pub struct BufferCharge(Charge);

impl BufferCharge {
    /// Creates the charge of an empty buffer.
    pub fn new(ledger: &Ledger, account: Account) -> Self {
        Self(ledger.empty_charge(account))
    }

    /// Charges a buffer of `buffered` bytes.
    ///
    /// # Errors
    /// When a ledger would hold more than it may; then nothing has changed.
    pub fn set(&mut self, buffered: usize) -> Result<(), LimitReached> {
        match self.shrink_to(buffered) {
            0 => Ok(()),
            missing => self.0.grow(missing),
        }
    }

    /// Charges a buffer of `buffered` bytes that were charged before they came into it, so that they cannot be refused.
    pub fn set_unchecked(&mut self, buffered: usize) {
        match self.shrink_to(buffered) {
            0 => {}
            missing => self.0.grow_unchecked(missing),
        }
    }

    /// Gives back what is too much, and returns what is missing.
    fn shrink_to(&mut self, buffered: usize) -> usize {
        let amount = if buffered > UNCHARGED_BYTES { buffered } else { 0 };
        let charged = self.0.amount();
        if amount < charged {
            self.0.shrink(charged - amount);
        }
        amount - self.0.amount()
    }

    /// Returns the number of bytes charged.
    pub const fn amount(&self) -> usize {
        self.0.amount()
    }

    /// Returns whether a ledger that it is charged to holds more bytes than it may.
    pub fn is_over(&self) -> bool {
        self.0.ledger().is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ceilings;

    #[test]
    fn a_buffer_is_charged_as_a_whole_once_it_is_large() {
        const LARGE: usize = UNCHARGED_BYTES + 1;
        let ledger = Ledger::root(Ceilings { bytes: ("bytes", LARGE), ..Ceilings::NONE });
        let mut charge = BufferCharge::new(&ledger, Account::RequestBytes);
        for (buffered, charged) in [(UNCHARGED_BYTES, 0), (LARGE, LARGE), (0, 0), (LARGE, LARGE)] {
            charge.set(buffered).unwrap();
            assert_eq!((charge.amount(), ledger.used(Account::RequestBytes)), (charged, charged));
        }
        assert_eq!(charge.set(LARGE + 1).unwrap_err().limit_name(), "bytes");
        assert_eq!((charge.amount(), charge.is_over()), (LARGE, false));
        charge.set_unchecked(LARGE + 1);
        assert_eq!((ledger.used_bytes(), charge.is_over()), (LARGE + 1, true));
        drop(charge);
        assert_eq!(ledger.used_bytes(), 0);
    }
}
