//! Settings: where they come from, and how their mistakes are reported.

use rowgate_pg::connect::tls::Tls;

use super::*;

#[test]
fn all_mistakes_are_reported_at_once_each_with_its_flag() {
    let flags = ServeFlags {
        server: ServerFlags {
            listen: Some("nowhere".into()),
            connections_per_tenant: Some("0".into()),
            connections_per_server: Some("3".into()),
            trusted_proxies: Some("10.0.0.0/8,proxy".into()),
            surfaces: Some("rest".into()),
            drain_seconds: Some("-1".into()),
            ..ServerFlags::default()
        },
        control: ControlFlags {
            root_file: Some("/does/not/exist".into()),
            database_tls: Some("prefer".into()),
            ..ControlFlags::default()
        },
        ..ServeFlags::default()
    };
    let Mistakes(lines) = flags.settings().expect_err("nine mistakes");
    let flags: Vec<_> = lines.iter().map(|line| line.split(':').next().expect("a flag")).collect();
    assert_eq!(
        flags,
        [
            "--listen",
            "--connections-per-tenant",
            "--connections-per-server",
            "--trusted-proxies",
            "--surfaces",
            "--drain-seconds",
            "--database-tls",
            "--control",
            "--root-file"
        ]
    );
}

#[test]
fn a_file_gives_what_no_flag_gives_and_its_unknown_names_are_mistakes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, root) = (folder.path().join("rowgate.yaml"), folder.path().join("root"));
    std::fs::write(&root, Root::new([1; 32]).reveal_hex()).expect("a root file");
    let text = format!(
        "listen: 127.0.0.1:9\ndrain-seconds: 7\ntrusted-proxies: [10.0.0.0/8, '::1']\ncontrol: db\nroot-file: {}\n",
        root.display()
    );
    std::fs::write(&file, &text).expect("a file");
    let mut flags = ServeFlags { config: Some(file.clone()), ..ServeFlags::default() };
    flags.server.listen = Some("127.0.0.1:10".into());
    let settings = flags.settings().expect("all is given");
    assert_eq!(settings.server.listen.port(), 10);
    assert_eq!(settings.server.drain, Duration::from_secs(7));
    assert_eq!(Ok(settings.server.trusted_proxies), TrustedProxies::parse("10.0.0.0/8,::1"));
    assert_eq!(
        settings.control.endpoint,
        Endpoint::Tcp { host: "db".into(), port: 5432, tls: Tls::default() }
    );

    std::fs::write(&file, text + "lisen: x\n").expect("a file");
    assert_eq!(
        flags.settings().expect_err("one mistake").0,
        ["--config: unknown setting \"lisen\"; --help lists all settings"]
    );
}

#[test]
fn a_control_place_is_a_host_or_a_folder() {
    let unix = |folder: &str, port| Endpoint::Unix { directory: folder.into(), port };
    let tcp = |host: &str, port| Endpoint::Tcp { host: host.into(), port, tls: Tls::default() };
    assert_eq!(endpoint("/run/pg"), Ok(unix("/run/pg", 5432)));
    assert_eq!(endpoint("/run/pg:6"), Ok(unix("/run/pg", 6)));
    assert_eq!(endpoint("db:6"), Ok(tcp("db", 6)));
    assert_eq!(endpoint("[::1]:6"), Ok(tcp("::1", 6)));
    assert_eq!(endpoint("[::1]"), Ok(tcp("::1", 5432)));
    for wrong in ["", ":5", "db:x", "::1", "a/b:5", "postgres://u@h/db"] {
        assert!(endpoint(wrong).is_err(), "{wrong}");
    }
}
