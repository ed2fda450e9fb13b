//! Rotation: a new master, new data keys, or both. It goes in steps, and each step leaves every vault open: the key file holds
//! the new and the old master before the first vault is sealed anew. An interrupted rotation is finished by the next one.

use crate::{Error, KeyFile, Masters, Owner, Vault};

/// What to replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// The master key. Data keys stay, and are sealed anew.
    Master,
    /// The data key of each vault. Every value is sealed anew.
    DataKeys,
    /// Both.
    All,
}

/// What a rotation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationReport {
    /// Vaults that were sealed anew.
    pub vaults: usize,
}

/// Returns a vault sealed anew, or `None` if it stays as it is.
pub type Reseal<'a> = dyn Fn(&[u8], Owner) -> Result<Option<Vec<u8>>, Error> + 'a;

/// A place with sealed vaults.
pub trait SealedVaults {
    /// Replaces each sealed vault by what `reseal` makes of it, one after the other, each as a whole and durably. Returns how
    /// many were replaced.
    ///
    /// # Errors
    /// The first error of `reseal` or of the place.
    fn reseal_all(&self, reseal: &Reseal<'_>) -> Result<usize, Error>;
}

fn reseal_all(places: &[&dyn SealedVaults], reseal: &Reseal<'_>) -> Result<usize, Error> {
    places.iter().try_fold(0, |done, place| Ok(done + place.reseal_all(reseal)?))
}

/// Opens a vault and seals it with the current master. Leaves one that is sealed so already, unless its data key is renewed.
fn resealed(bytes: &[u8], owner: Owner, masters: &Masters, new_data_key: bool) -> Result<Option<Vec<u8>>, Error> {
    let mut vault = Vault::open(bytes, owner, masters)?;
    if new_data_key {
        vault.renew_data_key()?;
    } else if vault.is_current(masters) {
        return Ok(None);
    }
    vault.seal(masters).map(Some)
}

/// Replaces keys of all vaults. Returns `None` if there is neither a vault nor a key.
///
/// # Errors
/// A vault does not open, or something cannot be written. Every vault opens as before, and the next rotation finishes this one.
pub fn rotate(keys: &KeyFile, places: &[&dyn SealedVaults], what: Rotation) -> Result<Option<RotationReport>, Error> {
    let Some(mut masters) = keys.read()? else {
        // Only a vault needs the key.
        reseal_all(places, &|_, _| Err(keys.missing()))?;
        return Ok(None);
    };
    if what != Rotation::DataKeys {
        // No vault may need a master that is retired for so long that it goes. So an interrupted rotation is finished first,
        // and this also shows that every vault opens.
        reseal_all(places, &|bytes, owner| resealed(bytes, owner, &masters, false))?;
        masters = keys.renew()?;
    }
    let new_data_keys = what != Rotation::Master;
    let vaults = reseal_all(places, &|bytes, owner| resealed(bytes, owner, &masters, new_data_keys))?;
    Ok(Some(RotationReport { vaults }))
}
