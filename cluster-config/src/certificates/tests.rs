use super::*;

const NOW: Millis = Millis(1_796_000_000_000);
const NODE: Subject = Subject {
    role: Role::Node,
    id: 1,
};
const GATEWAY: Subject = Subject {
    role: Role::Gateway,
    id: 1,
};

fn made() -> tempfile::TempDir {
    let temp = tempfile::tempdir().expect("temporary directory");
    create_ca(temp.path(), NOW).expect("authority");
    create(temp.path(), NODE, NOW).expect("node");
    create(temp.path(), GATEWAY, NOW).expect("gateway");
    temp
}

#[test]
fn what_was_made_can_be_loaded_by_its_role_only() {
    let dir = made();
    let node = load(&files(dir.path(), NODE), Role::Node, NOW).expect("node");
    assert_eq!(node.subject, NODE);
    assert!(node.expires_at > NOW.plus(364 * Millis::DAY));
    let error = load(&files(dir.path(), NODE), Role::Gateway, NOW).expect_err("wrong role");
    assert!(
        error
            .to_string()
            .ends_with("this certificate is for node 1, but a gateway needs one of its own role"),
        "{error}"
    );
    let other = Subject {
        role: Role::Node,
        id: 2,
    };
    assert!(node.is_for(&files(dir.path(), NODE), other).is_err());
}

#[test]
fn a_certificate_has_a_beginning_and_an_end() {
    let dir = made();
    let files = files(dir.path(), NODE);
    let load_at = |now| load(&files, Role::Node, now);
    assert!(matches!(
        load_at(NOW.plus(-2 * 3_600_000)),
        Err(CertificateError::NotYet { .. })
    ));
    assert!(matches!(
        load_at(NOW.plus(366 * Millis::DAY)),
        Err(CertificateError::Expired { .. })
    ));
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let (dir, stranger) = (made(), made());
    let mine = files(dir.path(), NODE);
    let theirs = files(stranger.path(), NODE);
    let mixed = TlsFiles {
        ca: theirs.ca,
        ..mine.clone()
    };
    assert!(matches!(
        load(&mixed, Role::Node, NOW),
        Err(CertificateError::OtherAuthority { .. })
    ));
    let mixed = TlsFiles {
        key: theirs.key,
        ..mine.clone()
    };
    assert!(matches!(
        load(&mixed, Role::Node, NOW),
        Err(CertificateError::OtherKey { .. })
    ));
    let gone = TlsFiles {
        certificate: dir.path().join("gone.pem"),
        ..mine
    };
    let error = load(&gone, Role::Node, NOW).expect_err("missing");
    assert!(error.to_string().contains("gone.pem"), "{error}");
}

#[test]
fn a_peer_is_let_in_by_its_role() {
    let dir = made();
    let chain = |subject| {
        let path = files(dir.path(), subject).certificate;
        certificates_in(&path, &read(&path).expect("read")).expect("certificate")
    };
    assert_eq!(peer(&chain(GATEWAY), &[Role::Gateway, Role::Node]), Ok(GATEWAY));
    assert_eq!(
        peer(&chain(GATEWAY), &[Role::Node]),
        Err(PeerError::NotAllowed(GATEWAY))
    );
    assert_eq!(peer(&[], &[Role::Node]), Err(PeerError::Absent));
    let ca = dir.path().join("ca.pem");
    let ca = certificates_in(&ca, &read(&ca).expect("read")).expect("certificate");
    assert_eq!(peer(&ca, &[Role::Node]), Err(PeerError::Unnamed));
}

#[test]
fn nothing_is_replaced_by_accident() {
    let dir = made();
    assert!(matches!(create_ca(dir.path(), NOW), Err(CertificateError::Exists(_))));
    assert!(matches!(
        create(dir.path(), NODE, NOW),
        Err(CertificateError::Exists(_))
    ));
    let names: Vec<_> = list(dir.path())
        .expect("list")
        .into_iter()
        .map(|one| one.subject)
        .collect();
    assert_eq!(names, [None, Some(GATEWAY), Some(NODE)]);
}
