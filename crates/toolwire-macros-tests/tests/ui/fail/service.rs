use toolwire::{args, tools};

struct Counter {
    count: usize,
}

#[tools]
impl Counter {
    #[tool]
    async fn increase(&mut self) -> String {
        self.count += 1;
        self.count.to_string()
    }

    #[tool]
    async fn finish(self) -> String {
        self.count.to_string()
    }

    #[tool]
    #[prompt]
    async fn both(&self) -> String {
        self.count.to_string()
    }

    #[tool(colour = "red")]
    async fn option(&self) {}
}

struct Nothing;

#[tools]
impl Nothing {
    fn nothing(&self) {}
}

#[tools]
impl Clone for Counter {
    fn clone(&self) -> Self {
        Self { count: self.count }
    }
}

#[tools]
struct Library;

struct Admin;

#[tools(fn)]
impl Admin {
    #[tool]
    async fn clear(&self) {}
}

#[args]
fn search() {}

fn main() {}
