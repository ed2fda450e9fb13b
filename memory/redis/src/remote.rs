use azera_memory::{Error, Working};

/// Remote working memory in which an installation's values have a space of their own.
///
/// Beginning a new space takes no time and no request. Values in the space before are not found any more, and are
/// removed later.
pub trait RemoteWorking: Working + 'static {
    /// Returns where the values are, in words and without secrets. Another place holds other values.
    fn place(&self) -> String;

    /// Uses only values of this space from now on. `secret` belongs to the installation and makes key names that nobody
    /// can guess.
    fn begin(&self, secret: &str, space: &str);

    /// Removes the installation's values in all other spaces.
    fn remove_older(&self) -> Result<(), Error>;

    /// Removes these keys of the current space in one request.
    fn remove_all(&self, keys: &[String]) -> Result<(), Error>;

    /// Ends all calls in progress and refuses further ones.
    fn stop(&self);
}
