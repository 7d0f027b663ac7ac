//! Programs that nobody sits at.

use toolwire_auth::{
    Issuer as IssuerName, Secret,
    client::{
        OAuth,
        flow::Idp,
        register::{AuthMethod, ClientId},
        token::SubjectKind,
    },
    jose::{Algorithm, PrivateKey},
};

use super::{
    guard::Place,
    issuer::{Fault, Issuer},
    login::used,
    marks::{learn, secret},
    recorder::{say, show},
};

pub(crate) async fn ask_for_themselves(issuer: &Issuer) {
    let place = Place::signed(issuer).await;
    let der = PrivateKey::generate_pkcs8(Algorithm::Es256).unwrap();
    {
        use base64::Engine as _;
        learn(&base64::prelude::BASE64_STANDARD.encode(&*der));
    }
    let client = || ClientId::new("robot");
    let idp = || Idp {
        issuer: IssuerName::parse(&issuer.url).unwrap(),
        client_id: "desk".to_owned(),
        subject: SubjectKind::IdToken,
    };
    let given = |what: &'static str| move || async move { Ok::<_, String>(Secret::from(secret(what))) };
    let workload = given("workload");
    for fault in [
        Fault::None,
        Fault::Refuses("invalid_client"),
        Fault::Refuses("invalid_grant"),
        Fault::RefusesKindly,
        Fault::Status(500),
        Fault::Html,
    ] {
        issuer.set(fault);
        let key = PrivateKey::pkcs8(&der, Algorithm::Es256).unwrap();
        show("a key", &key);
        let post = client().method(AuthMethod::ClientSecretPost);
        show(
            "a client",
            &client()
                .secret(Secret::from(secret("robot")))
                .key(PrivateKey::pkcs8(&der, Algorithm::Es256).unwrap()),
        );
        for builder in [
            OAuth::client_credentials(&issuer.url, client(), Secret::from(secret("robot"))),
            OAuth::client_credentials(&issuer.url, post, Secret::from(secret("robot"))),
            OAuth::client_credentials(&issuer.url, client(), key),
            OAuth::workload(&issuer.url, client().method(AuthMethod::None), move |_| workload()),
            OAuth::enterprise(
                idp(),
                given("identity"),
                &issuer.url,
                client().secret(Secret::from(secret("desk"))),
            ),
        ] {
            let builder = builder.on_event(|event| say("an event", event));
            show("a builder", &builder);
            used(&builder.build().unwrap(), &place.url, "whoami").await;
        }
    }
    issuer.set(Fault::None);
    let panics = || async { panic!("there is no assertion") };
    let oauth = OAuth::workload(&issuer.url, client(), move |_| async move {
        let none: Result<Secret, String> = panics().await;
        none
    });
    assert!(!used(&oauth.build().unwrap(), &place.url, "whoami").await);
}
