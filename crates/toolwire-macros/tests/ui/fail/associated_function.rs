use toolwire::tool;

struct Calculator;

impl Calculator {
    #[tool]
    async fn add(a: i64, b: i64) -> String {
        (a + b).to_string()
    }
}

fn main() {}
