//! The value stands for the function's signature, so a public one cannot have private types in it.

mod tools {
    use toolwire::{State, tool};

    #[derive(Clone)]
    struct App;

    #[tool]
    pub async fn look(State(_app): State<App>) {}
}

fn main() {}
