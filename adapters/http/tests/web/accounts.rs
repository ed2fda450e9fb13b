//! Accounts that are damaged, names that look alike, and what a proxy says about a client.

use serde_json::json;

use crate::World;

#[tokio::test]
async fn one_damaged_account_is_refused_and_the_others_go_on() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let bob = world.guest(&mut owner, "Bob").await;
    let accounts = world.accounts.clone();
    world.stop().await;
    for damage in [b"{\"id\": ".to_vec(), b"{\"id\": 7}".to_vec(), b"[]".to_vec()] {
        accounts.damage("Bob", &damage);
        let world = World::with(accounts.clone()).await;
        assert!(world.setup.is_none(), "the owner is still there");
        let mut owner = owner.at(world.web.address());
        assert_eq!(owner.send("GET", "/api/accounts", None).await.json()["total"], 1);
        let mut bob = bob.at(world.web.address());
        assert_eq!(bob.send("GET", "/api/chats", None).await.status, 401);
        let login = json!({"name": "Bob", "password": "another long password"});
        world.client().send("POST", "/api/login", Some(login)).await.is(401, "wrong_password");
        world.stop().await;
    }
}

#[tokio::test]
async fn a_name_holds_nothing_that_nobody_sees() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let invited = owner.send("POST", "/api/invitations", Some(json!({}))).await.json();
    for hidden in
        ["\u{200b}", "\u{202e}", "\u{ad}", "\u{2060}", "\u{3164}", "\u{2800}", "\u{e0041}", "\u{fe0f}", "\u{a0}", "\n"]
    {
        let body =
            json!({"code": invited["code"], "name": format!("A{hidden}nn"), "password": "another long password"});
        let answer = world.client().send("POST", "/api/join", Some(body)).await;
        answer.is(400, "invalid");
        assert!(answer.body.contains("U+"), "it says which: {}", answer.body);
    }
    for name in ["Jos\u{e9} \u{c9}vora", "\u{5965}\u{5c14}\u{52a0}", "\u{645}\u{631}\u{64a}\u{645}", "O'Neil-7"] {
        let invited = owner.send("POST", "/api/invitations", Some(json!({}))).await.json();
        let body = json!({"code": invited["code"], "name": name, "password": "another long password"});
        assert_eq!(world.client().send("POST", "/api/join", Some(body)).await.status, 200, "{name}");
    }
    world.stop().await;
}

#[tokio::test]
async fn over_tls_the_cookie_is_bound_to_this_host() {
    let world = World::listening("127.0.0.1:0", &["127.0.0.1"], std::sync::Arc::default()).await;
    world.owner().await;
    let json_type = ("Content-Type", "application/json");
    let login = json!({"name": "Ann", "password": "correct horse battery"}).to_string();
    let tls = [json_type, ("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "198.51.100.1:4711")];
    let answer = world.client().send_with("POST", "/api/login", &tls, &login).await;
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with("__Host-azera_session=") && cookie.contains("; Secure"), "{cookie}");
    assert!(cookie.contains("Path=/;") && !cookie.contains("Domain"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let reads = async |cookie: &str, proto: &str| {
        let headers = [("Cookie", cookie), ("X-Forwarded-Proto", proto), ("X-Forwarded-For", "198.51.100.1")];
        world.client().send_with("GET", "/api/chats", &headers, "").await.status
    };
    assert_eq!(reads(pair, "https").await, 200);
    // Another host of the same site can set the plain name, so it does not count over TLS.
    let plain = pair.trim_start_matches("__Host-").to_owned();
    assert_eq!(reads(&plain, "https").await, 401);
    assert_eq!(reads(&format!("{plain}; {pair}"), "https").await, 200);
    assert_eq!(reads(pair, "http").await, 401);
    world.stop().await;
}

#[tokio::test]
async fn a_proxy_may_name_the_port_of_a_client() {
    let world = World::listening("127.0.0.1:0", &["127.0.0.1"], std::sync::Arc::default()).await;
    world.owner().await;
    let guess = json!({"name": "Ann", "password": "a wrong password"}).to_string();
    let tries = async |address: &str| {
        let headers = [("Content-Type", "application/json"), ("X-Forwarded-For", address)];
        world.client().send_with("POST", "/api/login", &headers, &guess).await.status
    };
    for port in 0..10 {
        assert_eq!(tries(&format!("198.51.100.1:{}", 4_000 + port)).await, 401);
    }
    assert_eq!(tries("198.51.100.1:5000").await, 429, "another port is no other client");
    assert_eq!(tries("198.51.100.2:5000").await, 401);
    world.stop().await;
}

#[tokio::test]
async fn a_thousand_chats_hide_none_and_all_titles_go_with_the_account() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let person = world.accounts.person("Bob");
    world.engine.open_many(&person, 1_200);
    let all = bob.send("GET", "/api/chats", None).await.json();
    assert_eq!((&all["total"], all["items"].as_array().unwrap().len()), (&json!(1_200), 1_200));
    let page = bob.send("GET", "/api/chats?offset=1190&limit=100", None).await.json();
    assert_eq!((&page["total"], page["items"].as_array().unwrap().len()), (&json!(1_200), 10));
    let gone = bob.send("DELETE", "/api/account", Some(json!({"password": "another long password"}))).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    assert_eq!(world.engine.titles(), 0, "no title outlives the account");
    world.stop().await;
}
