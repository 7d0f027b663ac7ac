//! The cost of what a peer may send: the time of the processor grows no faster than the bytes.
//!
//! Each text here is blown up from a few pieces, because costs that grow faster show in long texts only. The bounds are
//! several times what a debug build takes, and the time is that of the thread, not of the clock on the wall.

use std::{fs, time::Duration};

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use toolwire_protocol::{
    Message, RawJson,
    envelope::{Outline, parse_batch},
    framing::{ndjson::LineDecoder, sse::SseDecoder},
    headers::{HeaderPlan, decode_value, encode_value},
    peek::Peek,
    schema::{Schema, elicitation_schema, inline_local_refs},
    seal::Binding,
    uri_template::UriTemplate,
    wire::{Content, JsonObject, Keyed},
};

/// The size that a text is blown up to.
const BYTES: usize = 512 * 1024;

/// The size of the longest message that a client reads from a server.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A limit on the time that one piece of work may take for budgets that do not depend on its text, in a debug build.
const FIXED: Duration = Duration::from_millis(400);

/// A limit on the time that each byte may take beyond that, in a debug build.
const PER_BYTE: Duration = Duration::from_nanos(250);

/// The number of times that a piece of work is done until it is cheap enough.
const ATTEMPTS: usize = 5;

/// Schemas. Of the pieces of each, every second one is repeated, with a number for each `@`.
const SCHEMAS: &[&[&str]] = &[
    &[r#"{"$id":"http://h/"#, "p", r#"/x","allOf":["#, r#"{"$id":"../a@"},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "p", r#"/x","allOf":["#, r#"{"$id":"/a@"},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "p", r#"/x","allOf":["#, r#"{"$id":"?q"},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "p", r#"/x","allOf":["#, r#"{"$id":""},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "p", r#"/x","allOf":["#, r#"{"$ref":"../a@#x","$dynamicRef":"/b"},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "/", r#"","allOf":["#, r#"{"$ref":"../a@"},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "a/../", r#"","allOf":["#, r#"{"$ref":"./a@"},"#, "true]}"],
    &[r#"{"$id":"http://h/"#, "a", r#"","$ref":""#, "../", r#""}"#],
    &[r#"{"$id":""#, ":", r#"","allOf":["#, r#"{"$id":"a"},"#, "true]}"],
    &[r##"{"$ref":"#"##, "/a", r#""}"#],
    &[r##"{"$ref":"#/%61"##, "%FF", r#""}"#],
    &[r#"{"$anchor":"x"#, "x", r#"","allOf":["#, r##"{"$anchor":"y@","$ref":"#x"},"##, "true]}"],
    &[r#"{"$defs":{"a":true"#, r##","n@":{"$dynamicAnchor":"n@","$dynamicRef":"#n@"}"##, "}}"],
    &[r##"{"$ref":"#/$defs/a","$defs":{"a":true"##, r##","n@":{"$ref":"#/$defs/n@/not"}"##, "}}"],
    &[
        r#"{"allOf":["#,
        r##"{"$ref":"#/$defs/a"},"##,
        r##"true],"$defs":{"a":{"$ref":"#/$defs/"##,
        "n",
        r#""}}}"#,
    ],
    &[r#"{"$schema":"http://"#, "/draft-0", r#""}"#],
    &[r#"{"properties":{"a":true"#, r#","n@":{"type":"string","format":"date"}"#, "}}"],
    &[r#"{"properties":{""#, "n", r#"":{"anyOf":["#, r#"{"type":"null"},"#, "true]}}}"],
    &[r#"{"required":["a""#, r#","n@""#, "]}"],
    &[r#"{"required":["a""#, r#","""#, "]}"],
    &[r#"{"dependentRequired":{"a":[]"#, r#","n@":["n","m@"]"#, "}}"],
    &[r#"{"dependencies":{"a":true"#, r#","n@":["n"]"#, r#","z":1}}"#],
    &[r#"{"const":[0"#, ",{}", "]}"],
    &[r#"{"const":"#, r#"{"const":"#, "0}"],
    &[r#"{"enum":[0"#, r#",{"a":@}"#, "]}"],
    &[r#"{"enum":[0"#, ",1e308", "]}"],
    &[r#"{"type":["string""#, r#","null""#, "]}"],
    &[r#"{"type":["string""#, r#","null""#, r#","odd"]}"#],
    &[r#"{"type":"object","properties":{"f":{"type":["string""#, r#","null""#, "]}}}"],
    &[r#"{"type":"object","properties":{"a":{"type":"string"}"#, r#","n@":{"enum":["a",null]}"#, "}}"],
    &[
        r#"{"type":"object","properties":{"f":{"type":"array","items":{"enum":["a""#,
        r#","v@""#,
        r#"]},"default":["a""#,
        r#","v@""#,
        "]}}}",
    ],
    &[r#"{"type":"object","properties":{""#, "n", r#"":{"type":"object"}}}"#],
    &[r#"{"maximum":1,"title":""#, "\\u00e9", r#"","examples":[0"#, ",[[0]]", "]}"],
    &[r#"{"maximum":0."#, "3", "}"],
    &[r#"{"pattern":""#, "(?<n@>a)", r#""}"#],
    &[r#"{"pattern":"(?x)"#, " #", r#"\n"}"#],
    &[r#"{"allOf":["#, r#"{"pattern":"(a{999}){99@}"},"#, "true]}"],
    &[r#"{"patternProperties":{"a":true"#, r#","(?=@)":true"#, "}}"],
    &[r#"{"allOf":["#, r#"{"unevaluatedProperties":false,"contains":{"not":{}}},"#, "true]}"],
    &[
        r#"{"x-mcp-header":"a","properties":{"a":{"#,
        r#""n@":{"x-mcp-header":"b","type":"string"},"#,
        r#""type":"string"}}}"#,
    ],
    &["", r#"{"not":"#, "{}"],
];

/// Other texts, mostly messages.
const TEXTS: &[&[&str]] = &[
    &[r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":0"#, r#","n@":{"b":[1,"c"]}"#, "}}"],
    &[r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":0"#, r#","\u006e@":0"#, "}}}"],
    &[
        r#"{"jsonrpc":"2.0","id":"i"#,
        "\\n",
        r#"","method":"m","params":{"name":""#,
        "\\ud83d\\ude00",
        r#""}}"#,
    ],
    &[r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"#, r#""_meta":{"progressToken":@},"#, r#""a":1}}"#],
    &[r#"{"jsonrpc":"2.0","id":1"#, "0", r#","method":"m","params":{"a":1"#, "0", ".5}}"],
    &[r#"{"jsonrpc":"2.0","result":{"a":[0"#, r#",{"a":1,"b":2,"c":3}"#, r#"]},"id":1}"#],
    &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":"#, "[", "0"],
    &["[", r#"{"jsonrpc":"2.0","method":"m@"},"#, r#"{"jsonrpc":"2.0","method":"m"}]"#],
    &["[0", ",1e5,-0.1E-7", "]"],
    &[r#"{"a"#, "\\\\", r#"":"#, "{", "0"],
    &["", r#"{"a":"#, "0"],
    &["{", r#""a":{"b@":0},"#, r#""b":0"#],
    &["", "data: a@\n", "\n"],
    &["", "id: @\nevent: e\ndata:\n\n", "data"],
    &["", ":\r\r\n\n", "\n"],
    &["data: ", "\u{e9}", "\n\n"],
    &["", "\n", "{}\n"],
    &["{\"id\":1,\"method\":\"", " ", "\"}"],
    &["=?base64?", "YQ==", "?="],
    &["", "%41/", "a"],
    &["", "{+a@}/", "a"],
    &[
        r#"{"content":["#,
        r#"{"content":[{}],"type":"tool_result","toolUseId":"@"},"#,
        r#"{"type":"text"}],"type":"tool_result","toolUseId":"1"}"#,
    ],
];

/// Returns the pieces as one text of about so many bytes.
fn blown_up(pieces: &[&str], bytes: usize) -> String {
    let share = bytes / (pieces.len() / 2);
    let piece = |(index, piece): (usize, &&str)| match *piece {
        piece if index % 2 == 0 => piece.to_owned(),
        piece if !piece.contains('@') => piece.repeat(share / piece.len()),
        piece => (0..share / piece.len()).map(|number| piece.replace('@', &number.to_string())).collect(),
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// Returns the time of the processor that this thread has taken; always zero on a system that does not tell.
fn spent() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

/// Does `work` on `text` and checks its cost: that of the cheapest attempt, as a busy machine can make any of them cost
/// more.
fn within<T>(what: &str, text: &str, work: impl Fn() -> T) -> T {
    let most = FIXED + PER_BYTE * u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut least = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let before = spent();
        let done = work();
        least = least.min(spent().saturating_sub(before));
        if least <= most {
            return done;
        }
    }
    let start: String = text.chars().take(60).collect();
    panic!("{what} of {} bytes took {least:?}, more than {most:?}: {start}…", text.len());
}

#[test]
fn schemas_cost_no_more_than_their_bytes_and_a_fixed_part() {
    let largest = SCHEMAS.first().map(|pieces| (pieces, MESSAGE_BYTES));
    for (pieces, bytes) in SCHEMAS.iter().map(|pieces| (pieces, BYTES)).chain(largest) {
        let text = blown_up(pieces, bytes);
        let Ok(schema) = serde_json::from_str::<Value>(&text) else { continue };
        let compiled = within("compiling", &text, || Schema::compile(&schema));
        let _ = within("replacing references", &text, || inline_local_refs(schema.clone()));
        let _ = within("making a form", &text, || elicitation_schema(&schema));
        let _ = within("planning headers", &text, || HeaderPlan::compile(schema.as_object().unwrap()));
        if let Ok(compiled) = compiled {
            within("validating", &text, || compiled.is_valid(&schema));
        }
    }
}

#[test]
fn long_names_of_an_instance_are_not_read_again_for_each_constant() {
    let name = "n".repeat(200_000);
    let instance: JsonObject = (0..40).map(|at| (format!("{name}{at}"), json!(0))).collect();
    let constant: JsonObject = (0..40).map(|at| (at.to_string(), json!(0))).collect();
    let rule = json!({"not": {"const": constant}});
    let schema = json!({"allOf": vec![json!({"$ref": "#/$defs/rule"}); 9_000], "$defs": {"rule": rule}});
    let (schema, instance) = (Schema::compile(&schema).unwrap(), Value::Object(instance));
    // It is as if there were no text: what is looked at is a few members of a constant.
    assert!(within("validating", "", || schema.is_valid(&instance)));
}

#[test]
fn patterns_with_very_many_groups_cost_no_more_than_the_fixed_part() {
    let groups = (0..6_000).map(|at| format!("(?<n{at:04}>)")).collect::<Vec<_>>().concat();
    let schema = json!({"allOf": vec![json!({"pattern": groups}); 40]});
    let compiled = within("compiling", "", || Schema::compile(&schema));
    assert_eq!(compiled.unwrap().skipped().len(), 1);
}

#[test]
fn messages_cost_no_more_than_their_bytes() {
    for pieces in TEXTS {
        let text = blown_up(pieces, BYTES);
        let bytes = Bytes::from(text.clone());
        let message = within("parsing", &text, || Message::parse_and_peek(&bytes));
        if let Ok((Message::Request(request), _)) = message {
            let params = &request.params;
            let _ = within("peeking", &text, || Peek::of(params));
            let _ = within("binding", &text, || Binding::of("m", params, None));
        }
        let _ = within("parsing a batch", &text, || parse_batch(&bytes, usize::MAX));
        within("outlining", &text, || Outline::of(&bytes));
        let _ = within("checking", &text, || RawJson::parse(text.as_str()));
        let _ = within("decoding a list of members", &text, || serde_json::from_str::<Keyed<RawJson>>(&text));
        let _ = within("decoding an object", &text, || serde_json::from_str::<JsonObject>(&text));
        let _ = within("decoding content", &text, || serde_json::from_str::<Content>(&text));
        let _ = within("decoding a header", &text, || decode_value(&text).map(|it| encode_value(&it).len()));
        for size in [97, BYTES] {
            within("reading events", &text, || events(&bytes, size));
            within("reading lines", &text, || lines(&bytes, size, 2 * BYTES));
            within("reading lines that are too long", &text, || lines(&bytes, size, 64));
        }
        let _ = within("parsing a template", &text, || UriTemplate::parse(&text));
    }
}

#[test]
fn a_match_costs_no_more_than_the_longest_template_and_uri() {
    for template in ["{a}", "{+a}", "{;a*}", "{?a*}", "{&a,b}", "{/a*}", "{.a}", "a/{b:3}"] {
        let template = UriTemplate::parse(&template.repeat(20)).unwrap();
        for uri in ["a", "/", ";", "&a=1", "?a", "%61", ",", ".a"] {
            let uri = uri.repeat(8192 / uri.len());
            within("matching", &uri, || template.match_uri(&uri));
        }
    }
}

fn events(bytes: &Bytes, size: usize) {
    let mut decoder = SseDecoder::new(2 * BYTES);
    for piece in bytes.chunks(size) {
        let mut piece = bytes.slice_ref(piece);
        while let Ok(Some(_)) = decoder.decode(&mut piece) {}
    }
}

fn lines(bytes: &Bytes, size: usize, limit: usize) {
    let (mut decoder, mut buffer) = (LineDecoder::new(limit), BytesMut::new());
    for piece in bytes.chunks(size) {
        buffer.extend_from_slice(piece);
        while !matches!(decoder.decode(&mut buffer), Ok(None)) {}
    }
}
