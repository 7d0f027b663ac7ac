//! A verifier that panics is one that cannot answer: it disturbs nobody but whoever asked.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
    time::SystemTime,
};

use super::{PresentedToken, Unavailable, Verified, Verify, VerifyError};

/// What a verifier says of a token.
pub(crate) async fn verified(
    verifier: &dyn Verify,
    token: &PresentedToken,
    now: SystemTime,
) -> Result<Verified, VerifyError> {
    let panicked = || Err(Unavailable::new("the verifier has panicked").into());
    let Ok(mut verifying) = catch_unwind(AssertUnwindSafe(|| verifier.verify(token, now))) else {
        return panicked();
    };
    // It is not polled again after a panic.
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| verifying.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_) => Poll::Ready(panicked()),
    })
    .await
}
