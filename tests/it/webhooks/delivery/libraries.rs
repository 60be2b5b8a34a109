//! The public libraries that receivers verify with.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rowgate_tests::servers::receiver::{Receiver, Request};
use serde_json::{Value, json};

use super::{is_given_back, requests, subscribed};
use crate::keys::tokens::clients::{packages, tests};
use crate::webhooks::fixture::Mill;

/// What each library of Node.js and of Python says of each case.
fn verified(packages: &Path, cases: &[Value]) -> Vec<Value> {
    let mut node = Command::new("node");
    node.arg(tests().join("clients/webhooks/verify.mjs"));
    let mut python = Command::new("python3");
    let run = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])";
    python.args(["-I", "-B", "-c", run]);
    python.arg(packages.join("python")).arg(tests().join("clients/webhooks/verify.py"));
    let input = json!({"packages": packages, "cases": cases}).to_string();
    let asked = [node, python].map(|mut command| {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the client starts");
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it is read");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "the client failed");
        serde_json::from_slice::<Vec<Value>>(&output.stdout).expect("it prints JSON")
    });
    let [node, python] = asked;
    node.into_iter().zip(python).map(|(node, python)| json!({"node": node, "python": python})).collect()
}

fn case(request: &Request, secret: &str) -> Value {
    json!({"headers": request.headers, "body": request.body, "secret": secret})
}

fn all(is_accepted: bool) -> Value {
    let both = json!({"stripe": is_accepted, "standardwebhooks": is_accepted});
    json!({"node": both, "python": both})
}

/// Seen to fail with a signature over the body without its time.
#[tokio::test]
async fn stripe_and_standardwebhooks_verify_every_delivery_while_secrets_are_rotated() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let (id, first) = subscribed(&mill, &receiver, &json!({})).await;
    mill.sql("insert into mill.orders values (1, 'é \"quoted\" \\ and \u{1F600}')").await;
    let before = requests(&receiver, 1).await;
    let rotated = mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
    let second = rotated["secret"].as_str().expect("it is shown once");
    mill.sql("update mill.orders set note = 'x'").await;
    mill.sql("delete from mill.orders").await;
    let during: Vec<Request> = requests(&receiver, 2).await.split_off(1);

    let mut cases: Vec<(Value, bool)> = before.iter().map(|it| (case(it, &first), true)).collect();
    cases.extend(during.iter().flat_map(|it| [(case(it, &first), true), (case(it, second), true)]));
    cases.push((case(&before[0], second), false));
    for (name, change) in
        [("body", "x"), ("webhook-id", "x"), ("rowgate-signature", "t=1"), ("webhook-timestamp", "1")]
    {
        let mut forged = before[0].clone();
        match name {
            "body" => forged.body.push_str(change),
            name => {
                let header = forged.headers.get_mut(name).expect("it is sent");
                *header = format!("{change}{header}").replacen("t=1t=1", "t=11", 1);
            }
        }
        let of_stripe = matches!(name, "body" | "rowgate-signature");
        let answer = json!({"stripe": !of_stripe, "standardwebhooks": name == "rowgate-signature"});
        let given = verified(&packages(), &[case(&forged, &first)]);
        assert_eq!(given, [json!({"node": answer, "python": answer})], "{name}");
    }
    let (cases, expected): (Vec<Value>, Vec<bool>) = cases.into_iter().unzip();
    let given = verified(&packages(), &cases);
    assert_eq!(given, expected.into_iter().map(all).collect::<Vec<_>>());
}

/// Seen to fail where secrets sign for ever.
#[tokio::test]
async fn a_secret_that_was_rotated_out_signs_nothing_once_it_has_expired() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let (id, first) = subscribed(&mill, &receiver, &json!({})).await;
    let rotated = mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
    let second = rotated["secret"].as_str().expect("it is shown once");
    mill.sql("insert into mill.orders values (1)").await;
    requests(&receiver, 1).await;
    is_given_back(&mill).await;
    // as a day later
    mill.sql(
        "update dl.subscription_secrets set expires_at = now() - interval '1 second' where expires_at is not null",
    )
    .await;
    mill.sql("insert into mill.orders values (2)").await;
    let got = requests(&receiver, 2).await;
    let n_signatures = |request: &Request| request.headers["rowgate-signature"].matches("v1=").count();
    assert_eq!([n_signatures(&got[0]), n_signatures(&got[1])], [2, 1]);
    let given = verified(&packages(), &[case(&got[1], &first), case(&got[1], second)]);
    assert_eq!(given, [all(false), all(true)]);
}
