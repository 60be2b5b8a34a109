//! Secrets that lead nowhere, or to a server that is not this installation's: the status says what to change, and once it is changed the
//! Tenant is served.

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::World;
use rowgate_tests::world::status::says;

use super::fixture::{self, Servers, secret, tenant};

#[tokio::test]
async fn a_secret_that_leads_nowhere_is_told_of_until_it_does() {
    let (other, url) = fixture::other().await;
    let home = Server::own().await;
    let there = tenant("there", "serverSecretRef: {name: other},");
    let mut world =
        World::on(&home, &[("here.yaml", &tenant("here", "")), ("there.yaml", &there)]).compared_every(1);
    world.spawn(|_| ());
    let message = says(&world, "Tenant", "there", "SecretUnavailable").await;
    assert!(message.contains("default/other") && message.contains("create it with the key url"), "{message}");

    let wrong_password = url.replace(":dba@", ":wrong@");
    for (entries, reason, part) in [
        (vec![("password", "x")], "SecretInvalid", "it has no key url"),
        (vec![("url", "mysql://a:b@c")], "SecretInvalid", "does not start with postgres://"),
        (vec![("url", "postgres://a:b@/x?host=/run")], "SecretInvalid", "names the folder of a socket"),
        (
            vec![("url", "postgres://a:b@c/?sslrootcert=/etc/passwd")],
            "SecretInvalid",
            "under ca.crt of the Secret",
        ),
        (
            vec![("url", "postgres://a:b@c/"), ("ca.crt", "no PEM")],
            "SecretInvalid",
            "ca.crt that holds no certificate",
        ),
        (vec![("url", &*wrong_password)], "LoginRefused", "password authentication failed"),
        (vec![("url", "postgres://a:b@127.0.0.1:1/?sslmode=disable")], "DatabaseUnavailable", "127.0.0.1:1"),
    ] {
        world.write("secret.yaml", &secret("other", &entries));
        loop {
            let message = says(&world, "Tenant", "there", reason).await;
            // the one before may have had the same reason
            if message.contains(part) {
                assert!(message.contains("the server of Secret default/other cannot be used"), "{message}");
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    world.write("secret.yaml", &secret("other", &[("url", &url)]));
    let servers = Servers { world, home, other };
    servers.is_served("there").await;
    servers.says("here", "Served").await;
}

#[tokio::test]
async fn the_server_of_another_installation_and_a_copied_one_are_refused() {
    let (other, url) = fixture::other().await;
    let servers = Servers::new(Server::own().await, other, &[("url", &url)]).await;

    // what another installation has is not ours
    let home = Server::own().await;
    let there = tenant("there", "serverSecretRef: {name: other},");
    let mut second =
        World::on(&home, &[("there.yaml", &there), ("secret.yaml", &secret("other", &[("url", &url)]))])
            .compared_every(1);
    second.spawn(|_| ());
    let message = says(&second, "Tenant", "there", "ServerRefused").await;
    assert!(message.contains("belongs to installation"), "{message}");

    // nor is a copy of the server of the control database
    let (copy, _) = Server::with_two_ways(&[]).await;
    execute(&mut copy.connect("postgres").await, fixture::DBA).await;
    let of_copy = format!("postgresql://dba:dba@127.0.0.1:{}/postgres?sslmode=disable", copy.port());
    let there = tenant("copied", "serverSecretRef: {name: copy},");
    servers.world.write("copied.yaml", &there);
    servers.world.write("copy.yaml", &secret("copy", &[("url", &of_copy)]));
    let message = servers.says("copied", "ServerRefused").await;
    assert!(message.contains("is a copy of the installation's own server"), "{message}");

    // a cluster that moved keeps its marker, and has another identity
    let mut conn = servers.other.connect("rowgate").await;
    execute(&mut conn, "update control.installation set system_identifier = '1'").await;
    let changed = url.replace("127.0.0.1", "localhost");
    servers.world.write("secret.yaml", &secret("other", &[("url", &changed)]));
    let message = servers.says("there", "ServerRefused").await;
    assert!(
        message.contains("was created in PostgreSQL cluster 1,")
            && message.contains("rowgate-dataplane rebind 1 --to "),
        "{message}"
    );
    servers.says("here", "Served").await;
}
