use azera_memory::{Error, Working};

/// Working memory far away, in which a house's values stand in a space of their own.
///
/// Another space is begun in no time and without asking anybody: what stood in the one before is not found any more, and
/// is removed when there is time for it.
pub trait RemoteWorking: Working + 'static {
    /// Where the values are, in words, without secrets: another place holds other values.
    fn place(&self) -> String;

    /// Means the values of this space alone from now on. `secret` is the house's, and makes names that nobody can guess.
    fn begin(&self, secret: &str, space: &str);

    /// Removes the house's values in all other spaces.
    fn remove_older(&self) -> Result<(), Error>;

    /// Removes these keys of the present space, in one request.
    fn remove_all(&self, keys: &[String]) -> Result<(), Error>;

    /// Ends all calls under way, and refuses further ones.
    fn stop(&self);
}
