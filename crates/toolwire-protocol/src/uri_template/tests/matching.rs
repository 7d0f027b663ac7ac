use proptest::prelude::*;

use super::*;

/// The captured variables as one line of text, lists in brackets and pairs in braces.
fn captures(source: &str, uri: &str) -> Option<String> {
    let show = |(name, value): (&str, &Value)| match value {
        Value::Text(text) => format!("{name}={text}"),
        Value::List(items) => format!("{name}=[{}]", items.join("|")),
        Value::Pairs(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            format!("{name}={{{}}}", pairs.join("|"))
        }
    };
    let variables = template(source).match_uri(uri)?;
    Some(variables.iter().map(show).collect::<Vec<_>>().join(" "))
}

fn check(source: &str, table: &[(&str, Option<&str>)]) {
    for (uri, expected) in table {
        assert_eq!(captures(source, uri).as_deref(), *expected, "{source} {uri}");
    }
}

#[test]
fn literals_match_to_the_letter() {
    check("a:b/%7e?c", &[("a:b/%7E?c", Some("")), ("a:b/~?c", None), ("A:b/%7e?c", None), ("a:b/%7e", None)]);
    check("ä", &[("ä", Some("")), ("%C3%A4", Some("")), ("%c3%a4", Some(""))]);
    check("", &[("", Some("")), ("a", None)]);
}

#[test]
fn a_simple_variable_stays_in_its_segment() {
    check(
        "file:///{dir}/{name}.txt",
        &[
            ("file:///a/b.txt", Some("dir=a name=b")),
            ("file:///a/b.c.txt", Some("dir=a name=b.c")),
            ("file:///a%2Fb/c%20d.txt", Some("dir=a/b name=c d")),
            ("file:///ä/ö.txt", Some("dir=ä name=ö")),
            ("file:///a/b/c.txt", None),
            ("file:///a/.txt", None),
            ("file:////b.txt", None),
            ("file:///a/b?c.txt", None),
            ("file:///a/b#c.txt", None),
            ("file:///a/b.md", None),
            ("file:///a/%zz.txt", None),
            ("file:///a/%f", None),
            ("file:///a/%FF.txt", None),
        ],
    );
    check("{x,y}", &[("1,2", Some("x=1 y=2")), ("1", Some("x=1")), ("1,2,3", None), ("1,", None)]);
    check("{x}{y}", &[("abc", Some("x=ab y=c")), ("a", None)]);
    check("{x*}", &[("a,b%2Cc,d", Some("x=[a|b,c|d]"))]);
}

#[test]
fn a_reserved_variable_goes_anywhere() {
    check(
        "file:///{+path}",
        &[
            ("file:///a/b?c#d", Some("path=a/b?c#d")),
            ("file:///%61/../b", Some("path=a/../b")),
            ("file:///", None),
        ],
    );
    check("{+a}/{b}/{+c}", &[("1/2/3/4", Some("a=1/2 b=3 c=4")), ("1/2", None)]);
    check("{+a,b}", &[("x/y,z", Some("a=x/y b=z"))]);
}

#[test]
fn operators_announce_their_values() {
    check("a{#x}", &[("a#b/c?d", Some("x=b/c?d")), ("a#", Some("x=")), ("a", Some("")), ("a?b", None)]);
    check("a{.x}", &[("a.b.c", Some("x=b.c")), ("a", Some("")), ("a.", Some("x=")), ("a.b/c", None)]);
    check("a{.x,y}", &[("a.b.c", Some("x=b y=c")), ("a.b", Some("x=b")), ("a.b.c.d", None)]);
    check("a{.x*}", &[("a.b.c", Some("x=[b|c]"))]);
    check("a{/x,y}", &[("a/b/c", Some("x=b y=c")), ("a/b", Some("x=b")), ("a", Some("")), ("a/b/c/d", None)]);
    check("a{/x*}", &[("a/b/c", Some("x=[b|c]")), ("a/b%2Fc", Some("x=[b/c]")), ("a/b?c", None)]);
    check("a{/x*,y}", &[("a/b/c/d", Some("x=[b|c|d]"))]);
    check("a{/x*}/end", &[("a/b/c/end", Some("x=[b|c]")), ("a/end", Some(""))]);
}

#[test]
fn path_parameters_have_names() {
    check(
        "a{;x,y}/b",
        &[
            ("a;x=1;y=2/b", Some("x=1 y=2")),
            ("a;y=2;x=1/b", Some("x=1 y=2")),
            ("a;x/b", Some("x=")),
            ("a/b", Some("")),
            ("a;z=1/b", None),
            ("a;x=1;x=2/b", None),
            ("a;x=1/;y=2/b", None),
        ],
    );
    check("a{;x*}", &[("a;x=1;x=2", Some("x=[1|2]")), ("a;k=1;l=2", Some("x={k:1|l:2}"))]);
}

#[test]
fn query_parameters_come_in_any_order() {
    check(
        "a{?x,y}",
        &[
            ("a?x=1&y=2", Some("x=1 y=2")),
            ("a?y=2&x=1", Some("x=1 y=2")),
            ("a?y=b%26c%3Dd", Some("y=b&c=d")),
            ("a?x=a?b/c=d", Some("x=a?b/c=d")),
            ("a?x", Some("x=")),
            ("a?x=", Some("x=")),
            ("a", Some("")),
            ("a?", None),
            ("a?z=1", None),
            ("a?x=1&z=1", None),
            ("a?x=1&x=2", None),
            ("a?x=1&", None),
            ("a?x=%FF", None),
            ("b?x=1", None),
            ("a?x=1#f", None),
        ],
    );
    check("a{?x}{&y}", &[("a?y=2&x=1", Some("x=1 y=2"))]);
    check("a?f=1{&x}", &[("a?f=1&x=2", Some("x=2")), ("a?f=1", Some("")), ("a?x=2&f=1", None)]);
    check("a{?x}{#f}", &[("a?x=1#g?x=2", Some("f=g?x=2 x=1")), ("a#g?x=1", Some("f=g?x=1"))]);
    check("a{?x*}", &[("a?x=1&x=2", Some("x=[1|2]")), ("a?k=1&l=2", Some("x={k:1|l:2}"))]);
    check("a{?x,r*}", &[("a?k=1&x=2", Some("r={k:1} x=2"))]);
    check("{+p}{?x}", &[("a/b?x=1", Some("p=a/b x=1")), ("a/b", Some("p=a/b")), ("a?b?x=1", None)]);
    check(
        "{+p}/{q}{?x}{#f}",
        &[("a/b/c?x=1#d", Some("f=d p=a/b q=c x=1")), ("a/b#?x", Some("f=?x p=a q=b"))],
    );
}

#[test]
fn a_prefix_takes_no_more_than_its_length() {
    check("{x:2}{y}", &[("abc", Some("x=ab y=c")), ("ab", Some("x=a y=b"))]);
    check("{x:2}", &[("ab", Some("x=ab")), ("%C3%A4%C3%B6", Some("x=äö")), ("abc", None)]);
    check("a{?x:2}", &[("a?x=ab", Some("x=ab")), ("a?x=abc", None)]);
    check("a{;x:1}/b", &[("a;x=1/b", Some("x=1")), ("a;x=12/b", None)]);
}

#[test]
fn a_variable_has_one_value() {
    check("{x}/{x}", &[("a/a", Some("x=a")), ("a/b", None)]);
    check("{x:1}/{x}", &[("a/abc", Some("x=abc")), ("b/abc", None)]);
    check("{x}/{x:1}", &[("abc/a", Some("x=abc"))]);
    check("{x:1}/{x:3}", &[("a/abc", Some("x=abc")), ("b/abc", None)]);
}

#[test]
fn the_first_variable_takes_as_much_as_it_can() {
    check("{a}-{b}", &[("1-2-3", Some("a=1-2 b=3"))]);
    check("{+a}{+b}", &[("x/y", Some("a=x/ b=y"))]);
    check("{name}{.ext}", &[("a.b.c", Some("ext=b.c name=a")), ("a", Some("name=a"))]);
    check("{name}{;v}", &[("a;v=1", Some("name=a v=1")), ("a;w=1", None)]);
}

/// The table has (steps + 1) rows and (units + 1) columns, so these two bounds are a bound on all work.
#[test]
fn the_work_is_bounded_by_template_and_uri() {
    for (expression, tail) in
        [("{+a}", "!"), ("{x}", "/"), ("{/x*}", "?"), ("{;x}", "/"), ("{&x*}", "#"), ("{x}a", "/")]
    {
        let source = expression.repeat(MAX_VARIABLES);
        let template = template(&source);
        assert!(template.program.len() <= 4 * MAX_VARIABLES, "{source}");
        for filler in ["a", "/", ";x", "&x", "?", "%C3%A4", "a,"] {
            let uri = filler.repeat((MAX_URI_BYTES - 1) / filler.len()) + tail;
            // Trying one choice after another would not end in our lifetime.
            let _ = template.match_uri(&uri);
        }
    }
    let template = template("{+a}");
    assert!(template.match_uri(&"a".repeat(MAX_URI_BYTES)).is_some());
    assert!(template.match_uri(&"a".repeat(MAX_URI_BYTES + 1)).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_expanded_is_matched(
        segment in "\\PC{1,6}", name in "\\PC{1,6}", path in "[a-z/]{1,8}",
        query in prop::option::of("\\PC{0,6}"), page in prop::option::of("\\PC{0,6}"),
        fragment in prop::option::of("[a-z/?]{0,6}"), label in prop::option::of("[a-z]{0,4}"),
    ) {
        let mut variables = Variables::from([("segment", segment.as_str()), ("name", name.as_str()), ("path", &path)]);
        let rest = [("query", query), ("page", page), ("fragment", fragment), ("label", label)];
        for (name, value) in rest {
            if let Some(value) = value {
                variables.insert(name, value);
            }
        }
        let template = template("x://{segment}/{+path}/!/{name}!{.label}{?query,page}{#fragment}");
        let uri = template.expand(&variables).unwrap();
        prop_assert_eq!(template.match_uri(&uri), Some(variables), "{}", uri);
    }

    #[test]
    fn exploded_lists_are_matched(items in prop::collection::vec("\\PC{0,5}", 1..5)) {
        for source in ["a{/x*}", "a{;x*}", "a{?x*}", "a?b{&x*}"] {
            let variables = Variables::from([("x", items.clone())]);
            let uri = template(source).expand(&variables).unwrap();
            prop_assert_eq!(template(source).match_uri(&uri), Some(variables), "{}", uri);
        }
    }

    #[test]
    fn a_match_expands_to_an_equal_match(
        // With nothing between two variables a URI can be divided in several ways, and what is encoded in what is
        // expanded can change which of them is found.
        expressions in prop::collection::vec(("[ab/]{1,2}", "[+./;?&#]?", r"(\*|:2)?"), 0..5),
        uri in "([abxy01/;.?&=#,]|%41|%C3%A4){0,16}",
    ) {
        let expression = |(index, (literal, operator, modifier)): (usize, &(String, String, String))| {
            format!("{literal}{{{operator}x{index}{modifier}}}")
        };
        let template = template(&expressions.iter().enumerate().map(expression).collect::<String>());
        if let Some(variables) = template.match_uri(&uri) {
            prop_assert!(variables.iter().all(|(name, _)| template.variables().contains(&name)));
            let again = template.expand(&variables).unwrap();
            prop_assert_eq!(template.match_uri(&again), Some(variables), "{} {} {}", template, uri, again);
        }
    }

    #[test]
    fn arbitrary_text_does_no_harm(source: String, uri: String) {
        if let Ok(template) = UriTemplate::parse(&source) {
            let _ = template.match_uri(&uri);
            let _ = template.expand(&Variables::new());
        }
        let _ = template("{+a}{b}{/c*}{;d}{?e}{#f}").match_uri(&uri);
    }
}

#[test]
fn a_literal_that_nearly_fits_everywhere_is_compared_in_good_time() {
    // Each place of the URI is as good a beginning of the literal as any other.
    let template = template(&format!("{{+x}}{}{{+y}}", "a".repeat(2000)));
    let uri = "a".repeat(MAX_URI_BYTES);
    for _ in 0..20 {
        assert!(template.match_uri(&uri).is_some());
        assert!(template.match_uri(&uri[..1999]).is_none());
    }
}
