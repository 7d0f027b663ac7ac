use toolwire_protocol::wire::Implementation;

use super::*;
use crate::{Server, access::Policy, resource, template, tool};

fn catalog(resources: usize) -> Catalog {
    let mut catalog = Catalog::new(Served::new(Version::ALL.to_vec()));
    for number in 0..resources {
        catalog.add(Arc::new(resource(uri(number), || async { "" }))).unwrap();
    }
    catalog
}

fn uri(number: usize) -> String {
    format!("r://{number}")
}

/// A page, as it is sent.
fn sent(catalog: &Catalog, items: usize, cursor: Option<&str>) -> Prepared {
    let codec = ResultCodec::new(&Implementation::new("test", "1"));
    let version = Version::V2025_11_25;
    let policy = Policy::default();
    let viewer = Viewer::new(None, &policy);
    let request = PageRequest { version, cursor, items, codec: &codec, cache: CacheHint::default(), viewer };
    catalog.list_resources(&request).unwrap()
}

/// The URIs of a page, and the cursor of the next one.
fn page(catalog: &Catalog, items: usize, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let bytes = sent(catalog, items, cursor);
    let list: ListResourcesResult = serde_json::from_slice(&bytes.0).unwrap();
    (list.resources.into_iter().map(|resource| resource.uri).collect(), list.next_cursor)
}

/// All pages, one after the other.
fn all(catalog: &Catalog, items: usize) -> Vec<String> {
    let (mut all, mut next) = page(catalog, items, None);
    while let Some(cursor) = next {
        let (more, after) = page(catalog, items, Some(&cursor));
        all.extend(more);
        next = after;
    }
    all
}

#[test]
fn a_change_is_made_in_place_unless_somebody_looks() {
    let mut catalog = catalog(3);
    let place = |catalog: &Catalog| Arc::as_ptr(&catalog.resources);
    let before = place(&catalog);
    catalog.add(Arc::new(resource("r://new", || async { "" }))).unwrap();
    assert_eq!(place(&catalog), before);

    let snapshot = catalog.clone();
    assert!(catalog.remove::<ResourceRoute>("r://new"));
    assert!(
        snapshot.resources.get_for_all("r://new").is_some()
            && catalog.resources.get_for_all("r://new").is_none()
    );
    // What the change is not about is still shared.
    assert!(Arc::ptr_eq(&snapshot.tools, &catalog.tools));
}

#[test]
fn what_is_removed_leaves_no_trace() {
    let mut catalog = catalog(200);
    let removed = |number: &usize| !number.is_multiple_of(3);
    for number in (0..200).filter(removed) {
        assert!(catalog.remove::<ResourceRoute>(&uri(number)));
        assert!(!catalog.remove::<ResourceRoute>(&uri(number)));
    }
    let left: Vec<String> = (0..200).filter(|number| !removed(number)).map(uri).collect();
    for items in [1, 7, 1000] {
        assert_eq!(all(&catalog, items), left);
    }
    catalog.add(Arc::new(resource(uri(1), || async { "" }))).unwrap();
    assert_eq!(all(&catalog, 10).last(), Some(&uri(1)));
    assert!(
        left.iter()
            .all(|uri| catalog.resources.get_for_all(uri).is_some_and(|route| route.resource.uri == *uri))
    );
}

#[test]
fn a_list_is_serialised_when_it_changes_not_when_it_is_asked_for() {
    let mut catalog = catalog(3);
    let first = sent(&catalog, 10, None);
    assert_eq!(sent(&catalog, 10, None).0.as_ptr(), first.0.as_ptr(), "the same bytes, not the same text");
    catalog.add(Arc::new(resource("r://new", || async { "" }))).unwrap();
    assert_ne!(sent(&catalog, 10, None).0, first.0);
}

#[test]
fn only_pages_that_are_read_in_order_are_kept() {
    let mut catalog = catalog(100);
    assert_eq!(all(&catalog, 10).len(), 100);
    assert_eq!(catalog.resources.pages().count_and_bytes().0, 10);
    // A cursor can be made for any item.
    let kept = catalog.resources.pages().count_and_bytes();
    for number in 0..100 {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let cursor = BASE64_URL_SAFE_NO_PAD.encode(uri(number));
        let (items, _) = page(&catalog, 10, Some(&cursor));
        assert_eq!(items.first(), (number < 99).then(|| uri(number + 1)).as_ref());
    }
    assert_eq!(
        catalog.resources.pages().count_and_bytes().0,
        kept.0 + 1,
        "only the empty one at the end is new"
    );
    catalog.remove::<ResourceRoute>("r://5");
    assert_eq!(catalog.resources.pages().count_and_bytes(), (0, 0));
}

#[test]
fn the_most_specific_template_wins_and_of_equals_the_first() {
    let mut catalog = catalog(0);
    for uri in ["x://{+rest}", "x://{a}", "x://a/{b}", "x://{c}"] {
        catalog.add(Arc::new(template(uri, || async { "" }))).unwrap();
    }
    let found = |catalog: &Catalog, uri| {
        catalog
            .template_for(uri, &Viewer::new(None, &Policy::default()))
            .map(|(route, _)| route.template.uri_template.clone())
            .unwrap_or_default()
    };
    assert_eq!(found(&catalog, "x://a/b"), "x://a/{b}");
    assert_eq!(found(&catalog, "x://q"), "x://{a}");
    assert!(catalog.remove::<TemplateRoute>("x://{a}"));
    assert_eq!(found(&catalog, "x://q"), "x://{c}");
    assert!(catalog.remove::<TemplateRoute>("x://a/{b}"));
    assert_eq!(found(&catalog, "x://a/b"), "x://{+rest}");
}

#[test]
fn what_a_server_can_do_follows_what_it_has() {
    let mut catalog = catalog(1);
    let announced = Announced::default();
    catalog.add(Arc::new(tool("log", |_: crate::Log| async { "" }))).unwrap();
    catalog.settle(&announced);
    assert!(catalog.capabilities.logging.is_some() && catalog.capabilities.tools.is_some());
    catalog.remove::<ToolRoute>("log");
    catalog.remove::<ResourceRoute>("r://0");
    catalog.settle(&announced);
    assert!(catalog.capabilities.logging.is_none() && catalog.capabilities.tools.is_none());
    assert!(catalog.capabilities.resources.is_none());
}

#[test]
fn a_template_whose_uris_would_be_misread_is_found_when_the_server_is_built() {
    let route = template("x://{a}{&b}{c}", || async { "x" });
    let error = Server::builder("t", "1").template(route).build().unwrap_err();
    assert!(error.to_string().contains("what follows {&b} would be read as a part of its values"), "{error}");
}
