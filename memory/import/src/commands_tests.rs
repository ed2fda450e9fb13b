//! Tests of the forms of commands.

use proptest::prelude::*;

use super::*;

fn form(line: &str) -> String {
    match normal(line, Some("/home/ann/gate")) {
        Some(normal) => format!("{}{}", normal.text, if normal.is_exact { "" } else { " (hidden)" }),
        None => "nothing".into(),
    }
}

#[test]
fn a_command_gets_one_form() {
    let cases = [
        ("cargo test --release -p azera-memory", "cargo test --release -p azera-memory"),
        ("cd /home/ann/gate && cargo test 2>&1", "cargo test"),
        ("cargo test 2>&1 | tail -20", "cargo test (hidden)"),
        ("cargo build && cargo test", "cargo build && cargo test"),
        ("cargo test; grep error log", "cargo test (hidden)"),
        ("make lint || true", "make lint (hidden)"),
        ("RUST_LOG=debug TOKEN=abc timeout 60 cargo run", "cargo run"),
        ("git add src/a.rs src/b.rs && git commit -m \"gate: mend\"", "git add && git commit -m"),
        ("git -C /x push --force origin main", "git push --force"),
        ("python scripts/build.py --out /tmp/x1", "python scripts/build.py --out …"),
        ("/usr/bin/python3 /home/ann/gate/run.py", "python3 run.py"),
        ("npm run build", "npm run build"),
        ("make VERSION=1.2 all", "make VERSION=… all"),
        ("ls -la; cat x | grep y", "nothing"),
        ("for f in *; do rm $f; done", "nothing"),
        ("sed -i s/a/b/ x.rs", "sed -i s/a/b/ x.rs"),
        ("sed -n 1,5p x.rs", "nothing"),
        ("python - <<'E'\nimport os\nE", "python -"),
        ("git -C gate status -s && git -C boat push", "git status -s && git push"),
        ("make &", "make (hidden)"),
        ("make | cat & wait", "make (hidden)"),
        ("npm test -- --run=a", "npm test -- --run=…"),
        ("cargo test -p azera-auth -p azera-memory", "cargo test -p azera-auth -p azera-memory"),
        ("pytest tests/auth.py tests/boat.py", "pytest tests/auth.py tests/boat.py"),
        ("docker build -t gate . && docker run gate", "docker build -t gate . && docker run gate"),
    ];
    for (line, want) in cases {
        assert_eq!(form(line), want, "{line}");
    }
}

#[test]
fn no_secret_is_kept() {
    let secret = "S3cr3tTokenValue";
    let lines = [
        format!("curl -H 'Authorization: Bearer {secret}' https://host"),
        format!("export KEY={secret}; make"),
        format!("KEY={secret} make"),
        format!("env KEY={secret} make"),
        format!("make KEY={secret}"),
        format!("deploy --token {secret}"),
        format!("deploy --token={secret}"),
        format!("deploy --password {secret} -v"),
        format!("deploy -p{secret}"),
        format!("deploy -p {secret}"),
        format!("deploy {secret}"),
        format!("mysql -u root -p{secret} db"),
        format!("sshpass -p {secret} ssh host"),
        format!("echo {secret} | docker login --password-stdin"),
        format!("docker login -u ann -p {secret}"),
        format!("git clone https://ann:{secret}@host/x.git"),
        format!("git push https://{secret}@host/x.git"),
        format!("tool <<EOF\n{secret}\nEOF"),
        format!("tool <<< {secret}"),
        format!("tool \"a {secret} b\""),
        format!("tool $(echo {secret})"),
        format!("tool `echo {secret}`"),
        format!("tool > {secret}"),
        format!("tool a={secret}"),
        format!("/{secret}/tool"),
        format!("{secret} x"),
        format!("tool # {secret}"),
        format!("tool --{secret}"),
        format!("tool -x={secret}"),
        format!("deploy --db-password tulip {secret}"),
    ];
    for line in lines {
        assert!(!form(&line).contains(secret), "{line}: {}", form(&line));
    }
    assert_eq!(form("deploy --db-password tulip now"), "deploy --db-password … now");
}

#[test]
fn no_plain_word_is_kept_where_a_secret_stands() {
    let lines = [
        "mysql -ptulip",
        "bin/mysql -ptulip",
        "docker exec db mysql -uroot -ptulip",
        "docker exec db mysql tulip",
        "docker exec db /usr/bin/mysql -p tulip",
        "docker login -u ann -p tulip",
        "docker login --username ann tulip",
        "cargo login tulip",
        "cargo run -p gate -- -p tulip",
        "twine upload -p tulip",
        "tool upload -p tulip",
        "tool -vp tulip",
        "tool -ptulip",
        "tool -P tulip -w tulip -u tulip",
        "valkey-cli -a tulip",
        "tool -a tulip",
        "gh secret set X --body tulip",
        "nmcli dev wifi connect gate password tulip",
        "tool password:tulip",
        "tool --user ann:tulip",
        "tool --user=ann:tulip",
        "tool --pw=tulip",
        "tool --pin=tulip",
        "tool --psk=tulip",
        "tool --dsn=tulip",
        "tool --pw tulip",
        "tool --pin tulip",
        "tool --psk tulip",
        "tool --dsn tulip",
        "tool --anything=tulip",
        "tool name=tulip",
        "tool -n=tulip",
        "tool \"$(cat <<'EOF'\n1) Use \"soft tulip\" here\nEOF\n)\"",
    ];
    for line in lines {
        assert!(!form(line).contains("tulip"), "{line}: {}", form(line));
    }
    assert!(!form("tool --pin=4711 --pin 4711").contains("4711"));
    assert_eq!(form("docker exec db mysql -uroot -ptulip"), "docker exec db mysql …");
}

#[test]
fn an_option_that_is_no_letter_is_left_out() {
    assert_eq!(form("tool -\"\n\" end"), "tool -… end");
    assert_eq!(form("tool -\"é\" end"), "tool -… end");
    assert_eq!(form("tool -\" \" end"), "tool -… end");
}

proptest! {
    #[test]
    fn any_line_gets_a_bounded_form_or_none(line in "[a-z \"'$()|&;<>=\\\\\\n`#-]{0,80}") {
        if let Some(normal) = normal(&line, None) {
            prop_assert!(!normal.text.is_empty() && normal.text.len() <= MAX_COMMAND_BYTES);
            prop_assert!(!normal.text.contains('\n'));
        }
    }

    /// Whatever stands around it, a drawn token is left out.
    #[test]
    fn a_drawn_token_is_never_kept(
        token in "[A-Za-z]{4}[0-9]{2}[A-Za-z0-9]{10,20}",
        before in "[a-z =:/.-]{0,12}",
        after in "[a-z =:/.-]{0,12}",
    ) {
        if let Some(normal) = normal(&format!("tool {before}{token}{after} end"), None) {
            prop_assert!(!normal.text.contains(&token), "{}", normal.text);
        }
    }
}
