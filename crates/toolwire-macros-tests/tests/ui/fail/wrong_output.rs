use toolwire::tool;

struct Sum(i64);

#[tool]
async fn add(a: i64, b: i64) -> Sum {
    Sum(a + b)
}

fn main() {}
