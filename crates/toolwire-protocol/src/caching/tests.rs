use serde_json::{Value, json};

use super::*;

const FRESH: CacheHint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Private };
const PUBLIC: CacheHint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };

fn key_of(method: Method, params: &Value) -> Option<CacheKey> {
    CacheKey::new(method, params.as_object().unwrap())
}

fn key(method: Method, params: &Value) -> CacheKey {
    key_of(method, params).unwrap()
}

fn read(uri: &str) -> CacheKey {
    key(Method::ReadResource, &json!({ "uri": uri }))
}

fn list(method: Method) -> CacheKey {
    key(method, &json!({}))
}

fn text(content: &str) -> Arc<RawJson> {
    Arc::new(RawJson::of(content).unwrap())
}

/// Stores a result the way a request without delay does.
fn put(cache: &mut ResponseCache, key: &CacheKey, context: &str, hint: CacheHint, now: Instant) -> bool {
    let ticket = cache.ticket(key);
    cache.insert(key, context, hint, text("result"), ticket, now)
}

#[test]
fn hints_are_read_with_care() {
    for (ttl_ms, scope, expected) in [
        (Some(5), Some(CacheScope::Public), (5, CacheScope::Public)),
        (Some(5), Some(CacheScope::Private), (5, CacheScope::Private)),
        (Some(0), None, (0, CacheScope::Private)),
        (Some(-1), None, (0, CacheScope::Private)),
        (None, None, (0, CacheScope::Private)),
    ] {
        let hint = CacheHint::of(ttl_ms, scope);
        assert_eq!((hint.ttl_ms, hint.scope), expected);
    }
}

#[test]
fn the_key_is_the_method_and_the_parameters() {
    let params = json!({ "cursor": "a", "x": { "b": [1, "2"], "a": null } });
    let reordered: Value =
        serde_json::from_str(r#"{"x":{"a":null,"b":[1,"2"]},"_meta":{"n":1},"cursor":"a"}"#).unwrap();
    assert_eq!(key(Method::ListTools, &params), key(Method::ListTools, &reordered));
    for other in [
        json!({}),
        json!({ "cursor": "" }),
        json!({ "cursor": "b", "x": { "b": [1, "2"], "a": null } }),
        json!({ "cursor": "a", "x": { "b": [1, 2], "a": null } }),
        json!({ "cursor": "a", "x": { "b": ["2", 1], "a": null } }),
    ] {
        assert_ne!(key(Method::ListTools, &params), key(Method::ListTools, &other), "{other}");
    }
    assert_ne!(list(Method::ListTools), list(Method::ListPrompts));
}

#[test]
fn only_cacheable_requests_that_are_no_retries_have_a_key() {
    for method in Method::ALL {
        assert_eq!(key_of(*method, &json!({})).is_some(), method.info().cacheable, "{method}");
    }
    assert_eq!(key_of(Method::ReadResource, &json!({ "uri": "a:b", "requestState": "s" })), None);
    assert_eq!(key_of(Method::ReadResource, &json!({ "uri": "a:b", "inputResponses": {} })), None);
}

#[test]
fn a_result_is_fresh_for_its_time_and_stale_after_it() {
    let mut cache = ResponseCache::default();
    let (key, now) = (list(Method::ListTools), Instant::now());
    assert!(put(&mut cache, &key, "a", FRESH, now));
    assert_eq!(cache.fresh(&key, "a", now), Some(text("result")));
    assert_eq!(
        cache.fresh(
            &key,
            "a",
            now + Duration::from_millis(FRESH.ttl_ms).saturating_sub(Duration::from_nanos(1))
        ),
        Some(text("result"))
    );
    assert_eq!(cache.fresh(&key, "a", now + Duration::from_millis(FRESH.ttl_ms)), None);
    assert_eq!(cache.stale(&key, "a"), Some(text("result")));
    assert_eq!(cache.stale(&key, "b"), None);
}

#[test]
fn the_time_to_live_has_a_limit() {
    let mut cache = ResponseCache::default();
    let (key, now) = (list(Method::ListTools), Instant::now());
    assert!(put(&mut cache, &key, "a", CacheHint::of(Some(i64::MAX), None), now));
    assert!(cache.fresh(&key, "a", now + MAX_TTL.saturating_sub(Duration::from_secs(1))).is_some());
    assert!(cache.fresh(&key, "a", now + MAX_TTL).is_none());
}

#[test]
fn a_result_without_time_to_live_removes_the_one_before() {
    let mut cache = ResponseCache::default();
    let (key, now) = (list(Method::ListTools), Instant::now());
    assert!(put(&mut cache, &key, "a", PUBLIC, now));
    assert!(!put(&mut cache, &key, "a", CacheHint::default(), now));
    assert!(cache.is_empty());
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn private_results_stay_in_their_context() {
    let mut cache = ResponseCache::default();
    let (key, now) = (list(Method::ListTools), Instant::now());
    put(&mut cache, &key, "alice", FRESH, now);
    assert!(cache.fresh(&key, "alice", now).is_some());
    assert!(cache.fresh(&key, "bob", now).is_none());
    assert!(cache.fresh(&key, "", now).is_none());

    put(&mut cache, &key, "bob", PUBLIC, now);
    assert!(cache.fresh(&key, "carol", now).is_some());
    // What turns private is no longer shown to others.
    put(&mut cache, &key, "bob", FRESH, now);
    assert!(cache.fresh(&key, "carol", now).is_none());
    assert!(cache.fresh(&key, "bob", now).is_some());
}

#[test]
fn a_change_makes_its_topic_void_and_no_other() {
    let keys = [
        list(Method::Discover),
        list(Method::ListTools),
        list(Method::ListPrompts),
        list(Method::ListResources),
        list(Method::ListResourceTemplates),
        read("file:///a"),
        read("file:///b"),
        read("file:///b/"),
        read("file:///b/c"),
    ];
    for (change, gone) in [
        (CacheChange::ToolList, &[1][..]),
        (CacheChange::PromptList, &[2]),
        (CacheChange::ResourceList, &[3, 4]),
        (CacheChange::Resource("file:///a"), &[5]),
        (CacheChange::Resource("file:///b/c"), &[6, 7, 8]),
        (CacheChange::Resource("file:///bc"), &[]),
    ] {
        let mut cache = ResponseCache::default();
        let now = Instant::now();
        for key in &keys {
            assert!(put(&mut cache, key, "a", FRESH, now));
        }
        cache.invalidate(change);
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(cache.stale(key, "a").is_none(), gone.contains(&index), "{change:?} {key:?}");
        }
    }
}

#[test]
fn a_response_that_was_under_way_during_a_change_is_not_stored() {
    let now = Instant::now();
    for (key, change, stored) in [
        (list(Method::ListTools), CacheChange::ToolList, false),
        (list(Method::ListTools), CacheChange::PromptList, true),
        (list(Method::ListResourceTemplates), CacheChange::ResourceList, false),
        (read("file:///a"), CacheChange::Resource("file:///a"), false),
        (read("file:///a"), CacheChange::ResourceList, true),
    ] {
        let mut cache = ResponseCache::default();
        let ticket = cache.ticket(&key);
        cache.invalidate(change);
        assert_eq!(cache.insert(&key, "a", FRESH, text("old"), ticket, now), stored, "{key:?} {change:?}");
        assert!(put(&mut cache, &key, "a", FRESH, now));
        // A late response from before the change does not replace one from after it either.
        cache.insert(&key, "a", FRESH, text("old"), ticket, now);
        assert_eq!(cache.fresh(&key, "a", now) == Some(text("old")), stored, "{key:?} {change:?}");
        assert!(cache.fresh(&key, "a", now).is_some());
    }
}

#[test]
fn a_bad_cursor_drops_all_pages_of_its_list() {
    let mut cache = ResponseCache::default();
    let now = Instant::now();
    for cursor in ["1", "2", "3"] {
        put(&mut cache, &key(Method::ListTools, &json!({ "cursor": cursor })), "a", FRESH, now);
    }
    put(&mut cache, &list(Method::ListPrompts), "a", FRESH, now);
    let next = key(Method::ListTools, &json!({ "cursor": "4" }));
    let ticket = cache.ticket(&next);
    cache.drop_pages(Method::ListTools);
    assert!(!cache.insert(&next, "a", FRESH, text("old"), ticket, now));
    assert_eq!(cache.len(), 1);
    assert!(cache.fresh(&list(Method::ListPrompts), "a", now).is_some());
}

#[test]
fn clearing_covers_what_is_under_way() {
    let mut cache = ResponseCache::default();
    let (key, now) = (list(Method::Discover), Instant::now());
    put(&mut cache, &key, "a", FRESH, now);
    let ticket = cache.ticket(&key);
    cache.clear();
    assert!(cache.is_empty());
    assert!(!cache.insert(&key, "a", FRESH, text("old"), ticket, now));
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn somebody_else_finds_only_what_is_public() {
    let (mut cache, now) = (ResponseCache::new(CacheLimits::default()), Instant::now());
    let (private, public) = (read("file:///a"), read("file:///b"));
    put(&mut cache, &private, "alice", FRESH, now);
    put(&mut cache, &public, "alice", PUBLIC, now);
    let under_way = cache.ticket(&private);
    cache.clear_private();
    assert!(cache.fresh(&private, "alice", now).is_none());
    assert!(cache.fresh(&public, "alice", now).is_some());
    assert!(!cache.insert(&private, "alice", FRESH, text("late"), under_way, now));
}

#[test]
fn the_oldest_results_make_room() {
    let mut cache = ResponseCache::new(CacheLimits { entries: 2, ..CacheLimits::default() });
    let now = Instant::now();
    for uri in ["a:1", "a:2", "a:1", "a:3"] {
        assert!(put(&mut cache, &read(uri), "a", FRESH, now));
    }
    assert_eq!(cache.len(), 2);
    assert!(cache.fresh(&read("a:2"), "a", now).is_none());
    assert!(cache.fresh(&read("a:1"), "a", now).is_some());
}

#[test]
fn bytes_are_limited_too() {
    let now = Instant::now();
    let mut cache = ResponseCache::new(CacheLimits { bytes: 100, ..CacheLimits::default() });
    for number in 0..50 {
        assert!(put(&mut cache, &read(&format!("a:{number}")), "a", FRESH, now));
        assert!(cache.bytes() <= 100);
    }
    assert!(!cache.is_empty());
    let ticket = cache.ticket(&read("a:0"));
    assert!(!cache.insert(&read("a:0"), "a", FRESH, text(&"x".repeat(100)), ticket, now));

    let mut none = ResponseCache::new(CacheLimits { entries: 0, ..CacheLimits::default() });
    assert!(!put(&mut none, &read("a:1"), "a", FRESH, now));
}
