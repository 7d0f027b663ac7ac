use toolwire::tool;

struct Caller;

#[tool]
async fn hello(caller: Caller) {
    drop(caller);
}

fn main() {}
