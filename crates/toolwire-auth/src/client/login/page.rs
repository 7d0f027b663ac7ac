//! The page that a browser is shown in the end. Nothing in it comes from outside, and whether the login worked is for the
//! program to say.

const DONE: &str = "You can close this page, and go back to the program.";
const NOT_OURS: &str = "This is not the answer that is waited for.";

/// The whole response.
pub(super) fn response(expected: bool) -> String {
    let (status, text) = if expected { ("200 OK", DONE) } else { ("400 Bad Request", NOT_OURS) };
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Toolwire</title><p>{text}</p></html>\n"
    );
    format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: text/html; charset=utf-8\r\n\
         Content-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n\
         Cache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n{body}",
        body.len(),
    )
}
