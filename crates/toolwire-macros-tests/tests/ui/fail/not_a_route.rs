use toolwire::{Server, routes};

async fn plain() {}

fn main() {
    let _ = routes![plain];
    let _ = Server::builder("demo", "1.0").routes(plain());
}
