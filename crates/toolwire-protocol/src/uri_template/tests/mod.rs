mod expansion;
mod matching;

use super::*;

fn template(source: &str) -> UriTemplate {
    UriTemplate::parse(source).unwrap()
}

#[test]
fn mistakes_are_found_where_they_are() {
    use UriTemplateFault::{
        InvalidLiteral, InvalidModifier, InvalidName, ReservedOperator, Unclosed, Unopened,
    };
    for (source, position, reason) in [
        ("{", 0, Unclosed),
        ("a{b", 1, Unclosed),
        ("a}", 1, Unopened),
        ("{a}}", 3, Unopened),
        ("{}", 1, InvalidName),
        ("{+}", 2, InvalidName),
        ("{a,}", 3, InvalidName),
        ("{a..b}", 1, InvalidName),
        ("{a b}", 1, InvalidName),
        ("{a-b}", 1, InvalidName),
        ("{ä}", 1, InvalidName),
        ("{a{b}", 1, InvalidName),
        ("{a%2}", 1, InvalidName),
        ("{x,=y}", 3, InvalidName),
        ("{=a}", 1, ReservedOperator),
        ("{!a}", 1, ReservedOperator),
        ("{|a}", 1, ReservedOperator),
        ("{a:0}", 1, InvalidModifier),
        ("{a:}", 1, InvalidModifier),
        ("{a:+1}", 1, InvalidModifier),
        ("{x,a:10000}", 3, InvalidModifier),
        ("{a:1x}", 1, InvalidModifier),
        ("a b", 1, InvalidLiteral),
        ("a%", 1, InvalidLiteral),
        ("a%zz", 1, InvalidLiteral),
        ("ä<", 2, InvalidLiteral),
        ("a\n", 1, InvalidLiteral),
    ] {
        assert_eq!(
            UriTemplate::parse(source).unwrap_err(),
            UriTemplateError { position, reason },
            "{source}"
        );
    }
}

#[test]
fn size_and_number_of_variables_are_limited() {
    let most = "{a}".repeat(MAX_VARIABLES);
    assert!(UriTemplate::parse(&most).is_ok());
    let error = UriTemplate::parse(&format!("{most}{{a}}")).unwrap_err();
    assert_eq!(error, UriTemplateError { position: most.len(), reason: UriTemplateFault::TooManyVariables });

    let long = "a".repeat(MAX_TEMPLATE_BYTES);
    assert!(UriTemplate::parse(&long).is_ok());
    assert_eq!(UriTemplate::parse(&(long + "a")).unwrap_err().reason, UriTemplateFault::TooLong);
}

#[test]
fn variables_are_named_once_in_order() {
    assert_eq!(template("/{b}/{a:3}{?b,c*}").variables(), ["b", "a", "c"]);
    assert!(template("a:b").variables().is_empty());
}

#[test]
fn the_more_literal_template_is_the_more_specific_one() {
    let from_best_to_worst = [
        "file:///logs/today",
        "file:///logs/{name}.txt",
        "file:///logs/{name}",
        "file:///{a}",
        "file:///{a}{b}",
        "file:///{+a}",
        "file:///{+a}{b}",
        "{+a}",
    ];
    let mut sorted = from_best_to_worst;
    sorted.reverse();
    sorted.sort_by_key(|source| Reverse(template(source).specificity()));
    assert_eq!(sorted, from_best_to_worst);
}

#[test]
fn a_template_shows_as_it_was_written() {
    let template = template("ä/{+x}");
    assert_eq!(template.to_string(), "ä/{+x}");
    assert_eq!(template.as_str().parse(), Ok(template.clone()));
}

#[test]
fn a_value_shows_as_text() {
    let shown =
        |source: &str, uri: &str| template(source).match_uri(uri).unwrap().get("x").unwrap().to_string();
    assert_eq!(shown("{x}", "a%20b"), "a b");
    assert_eq!(shown("{/x*}", "/a/b"), "a,b");
    assert_eq!(shown("{?x*}", "?a=1&b=2"), "a=1,b=2");
}
