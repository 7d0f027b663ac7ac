//! Everything a service can look like.
#![deny(warnings, missing_docs)]

use std::{
    fmt::Display,
    sync::{Arc, Mutex},
};

use toolwire::{Args, Context, Group, Json, Progress, Result, Server, State, args, tools};

/// A library.
#[derive(Default)]
pub struct Library {
    books: Mutex<Vec<String>>,
}

/// What to look for.
#[args]
pub struct Search {
    query: String,
    #[serde(default)]
    #[schemars(range(max = 100))]
    limit: u8,
}

#[args]
enum Tone {
    Warm,
    #[serde(rename = "cool")]
    Cold,
}

#[tools]
impl Library {
    /// How many books there may be.
    pub const MOST: usize = 3;

    /// Finds books.
    #[tool(read_only, title = "Find")]
    pub async fn find(&self, /** What. */ query: String, limit: Option<u8>, _progress: Progress) -> Result<Json<usize>> {
        let books = self.books.lock().map_err(|_| "closed")?;
        Ok(Json(books.iter().filter(|book| book.contains(&query)).count().min(limit.map_or(usize::MAX, usize::from))))
    }

    #[tool(name = "find.by.struct")]
    async fn find_by_struct(&self, Args(search): Args<Search>, cx: Option<Context>) -> String {
        format!("{} {} {}", search.query, search.limit, cx.is_some())
    }

    #[toolwire::tool]
    fn plain(#[arg(default = 3)] count: u8, #[extract] State(text): State<String>) -> String {
        text.repeat(count.into())
    }

    #[prompt]
    async fn greet(tone: Tone) -> &'static str {
        match tone {
            Tone::Warm => "Dear",
            Tone::Cold => "To",
        }
    }

    #[resource("library://rules")]
    async fn rules(&self) -> &'static str {
        "Be quiet."
    }

    /// A name that no free function could have here.
    #[resource("library://{number}")]
    async fn str(&self, number: usize) -> Option<String> {
        self.books.lock().ok()?.get(number).cloned()
    }

    #[cfg(any())]
    #[tool]
    async fn gone(&self, what: Missing) {}

    fn count(&self) -> usize {
        self.books.lock().map_or(0, |books| books.len())
    }
}

#[tools(fn = admin, crate = "::toolwire")]
impl Library {
    #[tool(destructive)]
    async fn clear(&self) {}
}

struct Shown<T>(T);

#[tools]
impl<T> Shown<T>
where
    T: Display + Send + Sync + 'static,
{
    #[tool]
    async fn show(&self) -> String {
        self.0.to_string()
    }
}

fn main() {
    let library = Arc::new(Library::default());
    Server::builder("demo", "1.0")
        .state(String::new())
        .routes(Arc::clone(&library))
        .routes(Group::new().routes(library.admin()).prefix("admin_"))
        .routes(Shown(7))
        .build()
        .unwrap();
    Server::builder("demo", "1.0").state(String::new()).routes(Library::default()).build().unwrap();
    assert_eq!(library.count(), 0);
    assert_eq!(Library::plain(2, State("x".to_owned())), "xx");
}
