//! `#[tools]` on an `impl`, and `#[args]`.

use std::{
    fmt::Display,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use toolwire::{Args, Context, Group, Json, Result, Server, State, args, tools};

use crate::session::Session;

#[derive(Default)]
struct Library {
    books: Mutex<Vec<String>>,
    calls: AtomicUsize,
}

#[args]
struct Search {
    /// What to look for.
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[tools]
impl Library {
    /// Finds books by title.
    #[tool(read_only)]
    async fn search(&self, query: String, limit: Option<usize>, _cx: Context) -> Json<Vec<String>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.find(&query, limit)
    }

    #[tool(name = "search.by.struct")]
    async fn search_by_struct(&self, Args(search): Args<Search>) -> Json<Vec<String>> {
        self.find(&search.query, search.limit)
    }

    /// The rules.
    #[resource("library://rules", name = "rules")]
    async fn rules(&self) -> &'static str {
        "Be quiet."
    }

    #[resource("library://books/{number}")]
    async fn book(&self, number: usize) -> Option<String> {
        self.books.lock().unwrap().get(number).cloned()
    }

    #[prompt]
    async fn recommend(topic: String, State(tone): State<&'static str>) -> String {
        format!("{tone}, recommend me a book on {topic}.")
    }

    #[cfg(any())]
    #[tool]
    async fn gone(&self, what: Missing) {}

    fn find(&self, query: &str, limit: Option<usize>) -> Json<Vec<String>> {
        let books = self.books.lock().unwrap();
        Json(books.iter().filter(|book| book.contains(query)).take(limit.unwrap_or(10)).cloned().collect())
    }
}

#[tools(fn = admin)]
impl Library {
    #[tool(destructive)]
    async fn clear(&self) -> Result<&'static str> {
        self.books.lock().map_err(|_| "closed")?.clear();
        Ok("cleared")
    }
}

/// A service that is generic, which its arguments are not.
struct Shown<T>(T);

#[tools]
impl<T> Shown<T>
where
    T: Display + Send + Sync + 'static,
{
    #[tool]
    async fn show(&self, times: usize) -> String {
        self.0.to_string().repeat(times)
    }
}

fn library() -> Arc<Library> {
    let books = ["Middlemarch", "Persuasion", "Emma"].map(str::to_owned);
    Arc::new(Library { books: Mutex::new(books.into()), calls: AtomicUsize::new(0) })
}

#[tokio::test(flavor = "current_thread")]
async fn a_service_shares_itself_with_its_routes() {
    let library = library();
    let server = Server::builder("library", "1.0")
        .state("Please")
        .routes(Arc::clone(&library))
        .routes(Group::new().routes(library.admin()).prefix("admin."))
        .routes(Shown(7))
        .build()
        .unwrap();
    let mut session = Session::start(server).await;
    let tools = session.result("tools/list", &json!({})).await;
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["search", "search.by.struct", "admin.clear", "show"]);
    assert_eq!(tools["tools"][0]["description"], "Finds books by title.");
    assert_eq!(
        tools["tools"][0]["inputSchema"]["properties"],
        json!({
            "query": { "type": "string" },
            "limit": { "type": "integer", "minimum": 0 },
        })
    );

    let call = |name: &str, arguments: serde_json::Value| json!({ "name": name, "arguments": arguments });
    for name in ["search", "search.by.struct"] {
        let found = session.result("tools/call", &call(name, json!({ "query": "m", "limit": 1 }))).await;
        assert_eq!(found["structuredContent"]["result"], json!(["Middlemarch"]), "{found}");
    }
    assert_eq!(library.calls.load(Ordering::Relaxed), 1);
    let shown = session.result("tools/call", &call("show", json!({ "times": 3 }))).await;
    assert_eq!(shown["content"][0]["text"], "777");
    let rules = session.result("resources/read", &json!({ "uri": "library://rules" })).await;
    assert_eq!(rules["contents"][0]["text"], "Be quiet.");
    let book = session.result("resources/read", &json!({ "uri": "library://books/1" })).await;
    assert_eq!(book["contents"][0]["text"], "Persuasion");
    let prompt = json!({ "name": "recommend", "arguments": { "topic": "ships" } });
    let prompt = session.result("prompts/get", &prompt).await;
    assert_eq!(prompt["messages"][0]["content"]["text"], "Please, recommend me a book on ships.");
    session.result("tools/call", &call("admin.clear", json!({}))).await;
    // The functions are still there for everybody else.
    assert!(library.find("m", None).0.is_empty());
    assert_eq!(
        Library::recommend("ships".to_owned(), State("Do")).await,
        "Do, recommend me a book on ships."
    );
}
