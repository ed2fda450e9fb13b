mod code;
mod files;
mod manifests;

pub(crate) use code::code;
pub(crate) use files::files;
pub(crate) use manifests::manifests;

/// Returns true if a path lies in a folder.
fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns true if a path lies in one of these folders.
fn lies_in_any(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| lies_in(path, folder))
}
