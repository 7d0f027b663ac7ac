use super::*;

/// A credential with marked secrets.
pub(crate) fn credential() -> Credential {
    let issuer = Issuer::parse("https://login.example").unwrap();
    Credential {
        server: "https://files.example/mcp".to_owned(),
        resource: Some(Resource::parse("https://files.example/mcp").unwrap()),
        client: Registration {
            issuer: issuer.clone(),
            client_id: "client".to_owned(),
            source: Source::Dynamic,
            secret: Some(Secret::from("marked-secret")),
            secret_expires: None,
            method: AuthMethod::ClientSecretBasic,
            redirects: vec!["http://127.0.0.1:17853/callback".to_owned()],
        },
        issuer,
        grant: GrantKind::AuthorizationCode,
        requested: Scopes::new(["a", "b"]).unwrap(),
        granted: Scopes::new(["a"]).unwrap(),
        access: Secret::from("marked-access"),
        kind: TokenType::Bearer,
        expires: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2_000)),
        received: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000),
        refresh: Some(Secret::from("marked-refresh")),
        dpop: None,
        endpoints: KnownEndpoints {
            token: Endpoint::parse("https://login.example/token").unwrap(),
            revocation: None,
            found: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000),
            named_by: NamedBy::Peer,
        },
        lineage: Some("first".to_owned()),
    }
}

#[test]
fn a_record_of_an_earlier_version_has_a_credential_without_a_lineage() {
    let mut record = Record::empty();
    record.set_credential(&credential());
    assert!(record.is_of_login(&credential()));
    record.0.remove("lineage");
    let read = record.credential(&Origins::none()).unwrap();
    assert_eq!(read.lineage, None);
    assert!(record.is_of_login(&read) && !record.is_of_login(&credential()));
    // Its renewal has none either, and the next login does.
    record.set_credential(&read);
    assert!(record.is_of_login(&read));
    record.set_credential(&credential());
    assert!(record.is_of_login(&credential()));
}

#[test]
fn a_logout_leaves_nothing_but_the_issuer_of_the_client() {
    let mut record = Record::empty();
    record.set_credential(&credential());
    assert!(record.logged_out().is_none());
    let issuer = credential().issuer;
    record.set_bound(&issuer);
    let left = record.after(6).logged_out().unwrap();
    assert_eq!((left.generation(), left.bound()), (8, Some(issuer)));
    assert!(!left.has_credential() && !left.to_json().contains("marked"));
}

#[test]
fn what_is_written_is_read_and_nothing_of_it_is_shown() {
    let mut record = Record::empty();
    record.set_credential(&credential());
    let record = Record::from_json(record.after(6).to_json().as_bytes()).unwrap();
    assert_eq!(record.generation(), 7);
    assert!(!format!("{record:?}").contains("marked"));
    let read = record.credential(&Origins::none()).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", credential()));
    assert_eq!((read.access, read.refresh), (credential().access, credential().refresh));
    assert_eq!(read.client, credential().client);
}

#[test]
fn unknown_members_are_kept_and_unknown_versions_refused() {
    let mut record = Record::from_json(br#"{"version":1,"token":{"new":1},"more":[2]}"#).unwrap();
    record.set_credential(&credential());
    let again = Record::from_json(record.to_json().as_bytes()).unwrap();
    assert_eq!((&again.0["more"], &again.0["token"]["new"]), (&json!([2]), &json!(1)));
    for text in [r#"{"version":2}"#, "{}", "[]", "", r#"{"version":"1"}"#] {
        let error = Record::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{text}");
    }
}

#[test]
fn a_refresh_token_is_taken_out_only_if_it_is_the_rejected_one() {
    let mut record = Record::empty();
    record.set_credential(&credential());
    assert!(!record.reject_refresh(&Secret::from("another")));
    assert!(record.reject_refresh(&Secret::from("marked-refresh")));
    assert!(record.credential(&Origins::none()).unwrap().refresh.is_none());
    assert!(!record.summary().unwrap().unwrap().renewable);
}

#[test]
fn a_login_without_a_refresh_token_is_not_called_renewable() {
    let mut record = Record::empty();
    record.set_credential(&credential());
    assert!(record.summary().unwrap().unwrap().renewable);
    let mut without = Record::empty();
    without.set_credential(&Credential { refresh: None, ..credential() });
    for record in [without.clone(), Record::from_json(without.to_json().as_bytes()).unwrap()] {
        let summary = record.summary().unwrap().unwrap();
        assert!(!summary.renewable && !summary.bound_to_key);
    }
}

#[test]
fn the_secret_of_a_configured_client_is_not_kept() {
    let mut configured = credential();
    configured.client.source = Source::Configured;
    let mut record = Record::empty();
    record.set_credential(&configured);
    assert!(!record.to_json().contains("marked-secret"));
}

#[test]
fn a_damaged_record_is_refused_and_not_guessed_at() {
    let mut record = Record::empty();
    record.set_credential(&credential());
    for member in ["issuer", "client", "grant", "token", "endpoints", "server"] {
        let mut damaged = record.clone();
        damaged.0.insert(member.to_owned(), json!(5));
        assert!(damaged.credential(&Origins::none()).is_err(), "{member}");
    }
}
