//! Which of several settings counts.

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::of(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn profile(url: &str, key: &str) -> Profile {
    let key = Key::parse(key).expect("a key");
    Profile { url: url.to_owned(), tenant: None, ca: None, key }
}

fn profiles() -> Profiles {
    let all = [("shop", profile("http://shop", "shop:dlk_1")), ("lab", profile("http://lab", "lab:dlk_2"))];
    Profiles {
        current: Some("shop".to_owned()),
        profiles: all.map(|(name, profile)| (name.to_owned(), profile)).into(),
    }
}

/// `URL tenant key`, or why there is none.
fn resolved(flags: &ConnectionFlags, variables: &[(&str, &str)]) -> String {
    match Connection::resolve(flags, &environment(variables), || Ok(profiles())) {
        Ok(found) => {
            format!("{} {} {}", found.base, found.tenant().expect("a tenant"), found.key.reveal())
        }
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn a_named_profile_comes_before_the_environment_and_that_before_the_current_one() {
    let (none, named) = (
        ConnectionFlags::default(),
        ConnectionFlags { profile: Some("lab".into()), ..ConnectionFlags::default() },
    );
    let variables = [("ROWGATE_URL", "http://env"), ("ROWGATE_KEY", "e:dlk_3")];
    assert_eq!(resolved(&none, &[]), "http://shop shop shop:dlk_1");
    assert_eq!(resolved(&none, &variables), "http://env e e:dlk_3");
    assert_eq!(resolved(&named, &variables), "http://lab lab lab:dlk_2");
    assert_eq!(resolved(&none, &[("ROWGATE_PROFILE", "lab")]), "http://lab lab lab:dlk_2");
    assert_eq!(resolved(&none, &[("ROWGATE_KEY", ""), ("ROWGATE_URL", "")]), "http://shop shop shop:dlk_1");
}

#[test]
fn the_key_of_a_profile_does_not_go_to_the_url_of_the_environment() {
    let why = resolved(&ConnectionFlags::default(), &[("ROWGATE_URL", "http://other")]);
    assert!(why.contains("ROWGATE_KEY is not"), "{why}");
    let why = resolved(&ConnectionFlags::default(), &[("ROWGATE_KEY", "e:dlk_3")]);
    assert!(why.contains("ROWGATE_URL is not set"), "{why}");
}

#[test]
fn flags_replace_single_settings() {
    let flags = ConnectionFlags {
        url: Some("https://flag/".into()),
        tenant: Some("other".into()),
        ..ConnectionFlags::default()
    };
    assert_eq!(resolved(&flags, &[]), "https://flag other shop:dlk_1");
    let variables = [("ROWGATE_URL", "http://env"), ("ROWGATE_TENANT", "t"), ("ROWGATE_KEY", "e:dlk_3")];
    assert_eq!(resolved(&flags, &variables), "https://flag other e:dlk_3");
    assert_eq!(resolved(&ConnectionFlags::default(), &variables), "http://env t e:dlk_3");
}

#[test]
fn a_profile_that_is_not_there_names_those_that_are() {
    let flags = ConnectionFlags { profile: Some("sohp".into()), ..ConnectionFlags::default() };
    assert_eq!(resolved(&flags, &[]), "there is no profile \"sohp\"; there are lab, shop");
}

#[test]
fn a_token_needs_a_tenant() {
    let variables = environment(&[("ROWGATE_URL", "http://env"), ("ROWGATE_KEY", "a.b.c")]);
    let connection = Connection::resolve(&ConnectionFlags::default(), &variables, || Ok(profiles()));
    assert!(connection.expect("a connection").tenant().is_err());
}
