//! Clients on a pipe.

use std::{sync::Arc, time::Duration};

use toolwire_server::{CallerKey, Extensions, Principal};
use toolwire_testkit::simulation::{MessageEnd, Random, message_link};

use crate::{
    talk::{Line, plan},
    world::World,
};

/// What counts as soon.
const SOON: Duration = Duration::from_millis(30);

pub(crate) fn connect(
    world: &Arc<World>,
    name: &str,
    random: &mut Random,
    is_first: bool,
) -> Line<MessageEnd> {
    let plan = plan(world, random, is_first);
    let (mut reliable, is_prompt) = (plan.is_reliable(), plan.is_prompt(SOON));
    world.note(name, &format!("connects: {plan:?}"));
    if plan.there.stall.is_some_and(|stall| stall.time.is_none()) {
        // On a pipe nobody notices that a client is gone whose end never arrives.
        world.keep(());
    }
    let (end, theirs, link) = message_link(random, plan);
    let mut extensions = Extensions::default();
    if random.percent(50) {
        extensions.insert(CallerKey::principal(Principal::new("somebody").key()));
    }
    let server = world.server.clone();
    let serving = world.serve(name, false, async move {
        let _ = server.serve_with(theirs, extensions).await;
    });
    if random.percent(15) {
        reliable = false;
        let (world, name, serving) = (Arc::clone(world), name.to_owned(), serving.clone());
        link.at_poll(random.between(1, 100), move || {
            world.note(&name, "is not served any more");
            serving.abort();
        });
    }
    Line { end, serving, reliable, is_prompt }
}
