//! Tasks whose questions a person answers later, and answers that the server does not take.

use serde_json::json;
use toolwire_client::{ElicitReply, ErrorKind, Started};
use toolwire_protocol::wire::ElicitResult;

use crate::{
    script::{builder, text},
    tasks::{begin, begun, created, form, get, no_pushes, tasks, with},
};

#[tokio::test(start_paused = true)]
async fn a_person_can_be_asked_later_by_a_client_that_has_no_handler() {
    let (client, mut script) = tasks(builder().elicit_later(true)).await;
    let (started, ()) = tokio::join!(client.call("report", ()).start(), async {
        let call = script.expect("tools/call").await;
        let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["elicitation"], json!({"form": {}}));
        script.reply(&call, created()).await;
    });
    let Started::Task(task) = started.unwrap() else { panic!() };
    let open = with("input_required", "inputRequests", json!({"who": form()}));
    let (outcome, ()) = tokio::join!(task.wait(), async {
        no_pushes(&mut script).await;
        // The person sees the question, and takes an hour.
        let (state, ()) = tokio::join!(task.get(), get(&mut script, open.clone()));
        let state = state.unwrap();
        assert_eq!(state.questions().map(|(key, _)| key).collect::<Vec<_>>(), ["who"]);
        for _ in 0..3600 {
            get(&mut script, open.clone()).await;
        }
        let (answered, ()) = tokio::join!(task.answer("who", ElicitResult::decline()), async {
            let update = script.expect("tasks/update").await;
            script.reply(&update, json!({"resultType": "complete"})).await;
        });
        answered.unwrap();
        get(&mut script, with("completed", "result", text("done"))).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_refused_is_not_a_task_that_is_gone() {
    let builder = builder().on_elicit(async |_| ElicitReply::accept_defaults());
    let (client, mut script) = tasks(builder).await;
    let open = with("input_required", "inputRequests", json!({"who": form()}));
    let (outcome, ()) = tokio::join!(client.call("report", ()), async {
        begin(&mut script).await;
        no_pushes(&mut script).await;
        get(&mut script, open.clone()).await;
        let update = script.expect("tasks/update").await;
        script.fail(&update, -32602, "an answer is larger than the limit of 262144").await;
        get(&mut script, open.clone()).await;
        // The task is there and waits, and nobody will answer it any more.
        let cancel = script.expect("tasks/cancel").await;
        script.reply(&cancel, json!({})).await;
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rpc, "{error}");
    assert!(error.to_string().contains("262144"), "{error}");

    let task = begun(&client, &mut script).await;
    let (answered, ()) = tokio::join!(task.answer("who", ElicitResult::decline()), async {
        let update = script.expect("tasks/update").await;
        script.fail(&update, -32602, "unknown task").await;
        let request = script.expect("tasks/get").await;
        script.fail(&request, -32602, "unknown task").await;
    });
    assert_eq!(answered.unwrap_err().kind(), ErrorKind::TaskGone);
}
