use toolwire_auth::client::{Revoked, store::MemoryStore};
use toolwire_http::client::{authorize::Purpose, fetch::Fetcher};

use super::world::{World, bound, call};

#[tokio::test]
async fn a_logout_says_what_the_issuer_has_revoked() {
    for (keeps_access, expected) in [(false, Revoked::Yes), (true, Revoked::Renewal)] {
        let (world, store) = (World::new().await, MemoryStore::new());
        world.state().revokes = true;
        world.state().keeps_access = keeps_access;
        let oauth = World::oauth().store(store.clone()).build().unwrap();
        let auth = bound(&oauth, &world);
        call(&*auth, &world, Purpose::Request).await.unwrap();
        let out = oauth.log_out(&world.server(), Fetcher::new(), false).await.unwrap().unwrap();
        assert_eq!(out.revoked, Ok(expected));
        // It is forgotten, too.
        let other = World::oauth().store(store).build().unwrap();
        assert!(other.log_out(&world.server(), Fetcher::new(), false).await.unwrap().is_none());
    }
}
