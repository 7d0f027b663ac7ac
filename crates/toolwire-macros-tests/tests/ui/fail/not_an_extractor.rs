use toolwire::tool;

struct Caller;

#[tool]
async fn hello(#[extract] caller: Caller) {
    drop(caller);
}

fn main() {}
