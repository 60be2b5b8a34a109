//! What is stored is read again, and what a status says names the change.

use super::*;

#[test]
fn what_is_stored_is_read_again_and_anything_else_is_read_as_something() {
    let ip: IpAddr = "10.0.0.7".parse().expect("an address");
    let routes = [
        Route::Socket,
        Route::Pooler,
        Route::Tcp(None),
        Route::Tcp(Some(ip)),
        Route::Tls(None),
        Route::Tls(Some("::1".parse().expect("an address"))),
    ];
    for cause in LoginCause::ALL {
        for route in routes {
            for detail in ["", "two words"] {
                let failure = LoginFailure::new(*cause, route, detail);
                assert_eq!(LoginFailure::parse(&failure.to_string()), failure);
            }
        }
    }
    let newer = LoginFailure::parse("another_word satellite what it means");
    assert_eq!((newer.cause, newer.detail.as_str()), (LoginCause::Refused, "what it means"));
    assert!(!newer.needs_a_change(), "nobody is called for what is not understood");
    assert_eq!(LoginFailure::parse("").cause, LoginCause::Refused);
}

#[test]
fn what_a_server_says_is_cut_and_stays_in_one_line() {
    let said = format!("no\nsuch\u{1b}[31m {}", "x".repeat(5_000));
    let failure = LoginFailure::new(LoginCause::Refused, Route::Socket, &said);
    assert!(failure.detail.starts_with("no such [31m x"), "{failure}");
    assert_eq!(failure.detail.chars().count(), MAX_DETAIL);
    let stored = format!("refused socket {said}");
    assert_eq!(LoginFailure::parse(&stored).detail.chars().count(), MAX_DETAIL, "whoever wrote it");
}

#[test]
fn an_error_before_the_greeting_has_a_cause() {
    use LoginCause::{Certificate, Rejected, TooManyConnections, WrongPassword};
    for (sqlstate, routine, message, expected) in [
        ("28P01", "auth_failed", "password authentication failed", Some(WrongPassword)),
        ("28000", "ClientAuthentication", "no pg_hba.conf entry for host \"::1\"", Some(Rejected)),
        ("28000", "auth_failed", "Peer authentication failed for user \"x\"", Some(Rejected)),
        (
            "28000",
            "ClientAuthentication",
            "connection requires a valid client certificate",
            Some(Certificate),
        ),
        ("28000", "InitializeSessionUserId", "role \"x\" is not permitted to log in", None),
        ("53300", "InitProcess", "sorry, too many clients already", Some(TooManyConnections)),
        ("08P01", "", "SASL authentication failed", Some(WrongPassword)),
        ("08P01", "", "no more connections allowed (max_client_conn)", Some(TooManyConnections)),
        ("08P01", "", "server login has been failing, try again later (server_login_retry)", None),
        ("57P03", "", "the database system is starting up", None),
    ] {
        assert_eq!(LoginCause::of_server(sqlstate, routine, message), expected, "{message}");
    }
}

#[test]
fn a_sentence_names_the_exact_change() {
    let ip = Some("10.0.0.7".parse().expect("an address"));
    let roles = "\"/^(rowgate_|key_|t[0-9a-z]{26}_)\"";
    let line = |kind: &str, from: &str| format!("put the line `{kind} all {roles}{from} scram-sha-256`");
    for (cause, route, part) in [
        (LoginCause::NoPassword, Route::Socket, line("local", "")),
        (LoginCause::ClearText, Route::Tcp(ip), line("host", " 10.0.0.7/32")),
        (LoginCause::Md5, Route::Tls(None), line("hostssl", " all")),
        (LoginCause::Rejected, Route::Tls(ip), line("hostssl", " 10.0.0.7/32")),
        (LoginCause::Certificate, Route::Tls(ip), line("hostssl", " 10.0.0.7/32")),
        (LoginCause::NoPassword, Route::Pooler, "auth_type = scram-sha-256 in pgbouncer.ini".to_owned()),
        (LoginCause::WrongPassword, Route::Pooler, "auth_query".to_owned()),
        (LoginCause::TooManyConnections, Route::Socket, "raise max_connections".to_owned()),
    ] {
        let sentence = LoginFailure::new(cause, route, "said").sentence();
        assert!(sentence.contains(&part), "{part} in {sentence}");
    }
}
