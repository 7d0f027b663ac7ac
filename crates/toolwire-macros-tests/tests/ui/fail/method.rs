use toolwire::tool;

struct Calculator;

impl Calculator {
    #[tool]
    async fn add(&self, a: i64, b: i64) -> String {
        (a + b).to_string()
    }

    #[tool]
    async fn clear(this: Self) {
        drop(this);
    }
}

fn main() {}
