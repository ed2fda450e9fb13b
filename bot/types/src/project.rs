//! The names of projects.

/// Returns the form in which a project's name is stored and compared: without space around it, in lower case, and with `-`
/// for each colon. The id of a project's realm ends with this form behind a colon, so a colon in it could lead to the realm
/// of another person.
pub fn folded_project_name(name: &str) -> String {
    name.trim().to_lowercase().replace(':', "-")
}
