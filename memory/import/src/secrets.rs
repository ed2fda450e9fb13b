//! Recognises what may be a secret in the words of a command: tokens, keys, passwords, and names that go with them.

/// Beginnings of tokens that services give out.
const TOKENS: &[&str] = &[
    "sk-",
    "pk_",
    "rk_",
    "sk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "akia",
    "asia",
    "aiza",
    "ya29.",
    "eyj",
    "azk_",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "sg.",
    "-----begin",
];

/// Parts of the names of options and variables whose value is a secret.
const NAMES: &[&str] = &[
    "token",
    "key",
    "secret",
    "pass",
    "pwd",
    "auth",
    "cred",
    "cookie",
    "bearer",
    "header",
    "session",
    "login",
    "signature",
];

/// Words of such names that are too short to be looked for within others.
const SHORT_NAMES: &[&str] = &["dsn", "otp", "pin", "psk", "pw", "totp"];

/// Programs whose arguments often are secrets. Only their name is kept.
const PROGRAMS: &[&str] = &[
    "age",
    "ansible-vault",
    "aws",
    "az",
    "borg",
    "bw",
    "chpasswd",
    "cqlsh",
    "cryptsetup",
    "curl",
    "doctl",
    "expect",
    "fly",
    "flyctl",
    "ftp",
    "gcloud",
    "gpg",
    "heroku",
    "htpasswd",
    "http",
    "https",
    "keytool",
    "kinit",
    "ldapmodify",
    "ldapsearch",
    "lftp",
    "mariadb",
    "mariadb-admin",
    "mariadb-dump",
    "mongo",
    "mongodump",
    "mongorestore",
    "mongosh",
    "mosquitto_pub",
    "mosquitto_sub",
    "mycli",
    "mysql",
    "mysqladmin",
    "mysqldump",
    "op",
    "openssl",
    "pass",
    "passwd",
    "pg_dump",
    "pg_restore",
    "pgcli",
    "psql",
    "rclone",
    "redis-cli",
    "restic",
    "s3cmd",
    "scp",
    "security",
    "sftp",
    "smbclient",
    "snowsql",
    "sqlcmd",
    "sqlplus",
    "ssh",
    "ssh-keygen",
    "sshpass",
    "twine",
    "useradd",
    "usermod",
    "valkey-cli",
    "vault",
    "wget",
    "wpa_passphrase",
    "wrangler",
    "xfreerdp",
    "xh",
];

/// Shortest part of a word that counts as drawn by lot, if it mixes letters with digits.
const MIXED_CHARS: usize = 6;

/// The same, if it mixes upper and lower case only.
const CASED_CHARS: usize = 12;

/// Changes between upper and lower case in such a part.
const CASE_CHANGES: usize = 4;

/// Digits in a row that count as a secret, such as a number of a card.
const DIGITS: usize = 6;

/// Returns true if only the name of this program is kept.
pub(crate) fn is_secretive(program: &str) -> bool {
    PROGRAMS.contains(&program)
}

/// Returns true if the value of an option or a variable of this name is a secret.
pub(crate) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| SHORT_NAMES.contains(&word))
}

/// Returns true if an option of this name takes a user, maybe with a password.
pub(crate) fn names_user(name: &str) -> bool {
    name.to_ascii_lowercase().split(['-', '_']).any(|word| word.starts_with("user"))
}

/// Returns true if a word may be a secret.
pub(crate) fn may_be_secret(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    TOKENS.iter().any(|begins| lower.starts_with(begins))
        || word.split(|c: char| !c.is_ascii_alphanumeric()).any(is_drawn)
}

/// Returns true if a part of a word looks as if it was drawn by lot.
fn is_drawn(part: &str) -> bool {
    let letters = part.chars().filter(char::is_ascii_alphabetic).count();
    let digits = part.len() - letters;
    if letters == 0 {
        return digits >= DIGITS;
    }
    if digits > 0 {
        return part.len() >= MIXED_CHARS;
    }
    let cases: Vec<bool> = part.chars().map(|c| c.is_ascii_uppercase()).collect();
    let changes = cases.windows(2).filter(|pair| pair.first() != pair.last()).count();
    part.len() >= CASED_CHARS && changes >= CASE_CHANGES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_passwords_are_told_from_plain_words() {
        for secret in [
            "hunter2",
            "sk-ant-api03-abc",
            "ghp_abcdef",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMIbPxRfiCYEXAMPLEKEY",
            "4111111111111111",
            "550e8400-e29b-41d4-a716-446655440000",
            "deadbeef01",
            "eyJhbGciOi.x",
            "123456",
        ] {
            assert!(may_be_secret(secret), "{secret}");
        }
        for plain in [
            "test",
            "azera-memory",
            "bot/docs/import.md",
            "--release",
            "0063-mcp.md",
            "8080",
            "tests/v2.py",
            "MyTestCase",
        ] {
            assert!(!may_be_secret(plain), "{plain}");
        }
        assert!(names_secret("--api-key") && names_secret("DB_PASSWORD") && !names_secret("--features"));
    }
}
