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

#[test]
fn what_ends_soon_is_renewed_and_nothing_else() {
    let dir = made();
    let read_it = || read(&files(dir.path(), NODE).certificate).expect("read");
    let first = read_it();
    ensure(dir.path(), NODE, NOW.plus(300 * Millis::DAY)).expect("in time");
    assert_eq!(read_it(), first);
    let soon = NOW.plus(340 * Millis::DAY);
    let described = &list(dir.path()).expect("list")[2];
    assert_eq!((described.subject, described.life(soon)), (Some(NODE), Life::Ending));
    ensure(dir.path(), NODE, soon).expect("renewed");
    assert_ne!(read_it(), first);
    let renewed = load(&files(dir.path(), NODE), Role::Node, soon).expect("fits");
    assert!(renewed.expires_at > soon.plus(364 * Millis::DAY));
    let other = Subject { id: 2, ..NODE };
    ensure(dir.path(), other, soon).expect("made");
    assert_eq!(
        load(&files(dir.path(), other), Role::Node, soon).expect("fits").subject,
        other
    );
}

#[cfg(unix)]
#[test]
fn a_renewed_key_is_as_private_as_the_old_one_and_a_cut_renewal_can_be_repeated() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = made();
    let node = files(dir.path(), NODE);
    fs::set_permissions(&node.key, fs::Permissions::from_mode(0o640)).expect("chmod");
    let old_key = read(&node.key).expect("read");
    renew(dir.path(), NODE, NOW).expect("renew");
    let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&node.key), 0o640);
    assert_eq!(mode(&dir.path().join("node-1.key.previous")), 0o640);

    // As if the second rename had not happened: the pair does not fit, and must not replace the one that did.
    fs::copy(files(dir.path(), GATEWAY).key, &node.key).expect("copy");
    assert!(load(&node, Role::Node, NOW).is_err());
    renew(dir.path(), NODE, NOW).expect("renew again");
    load(&node, Role::Node, NOW).expect("fits");
    assert_eq!(read(&dir.path().join("node-1.key.previous")).expect("read"), old_key);
}
