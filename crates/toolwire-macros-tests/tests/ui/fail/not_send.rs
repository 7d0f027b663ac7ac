use std::rc::Rc;

use toolwire::tool;

#[tool]
async fn count() -> String {
    let count = Rc::new(1);
    std::future::ready(()).await;
    count.to_string()
}

fn main() {}
