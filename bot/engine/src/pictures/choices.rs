//! Which models and samplers people may choose on the server that draws, and the check of those that they name.

use std::time::Duration;

use azera_model_image::ImageOffer;
use azera_pictures::Wish;
use tokio::time::{Instant, timeout};

use super::Pictures;

/// How long what the server offers counts as known.
const FRESH: Duration = Duration::from_secs(30);

/// The longest wait for the server while somebody types.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most names that an answer lists.
const MAX_LISTED: usize = 20;

/// The most models, and the most samplers, that can be chosen.
const MAX_OFFERED: usize = 1_000;

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 200;

/// What the server offers, as it said last.
pub(super) struct Known {
    offer: ImageOffer,
    at: Instant,
}

/// A choice that there is not.
pub(crate) struct Unknown {
    /// `model` or `sampler`.
    pub(crate) kind: &'static str,
    /// What there is instead, for the person who asked.
    pub(crate) why: String,
}

/// Something that can be chosen.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Sampler,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Sampler => "sampler",
        }
    }

    fn of(self, offer: &ImageOffer) -> &[String] {
        match self {
            Self::Model => &offer.models,
            Self::Sampler => &offer.samplers,
        }
    }

    /// Returns what a person is told who named something that is not there.
    fn refusal(self, offer: &ImageOffer, wanted: &str) -> String {
        let (kind, has) = (self.name(), self.of(offer));
        if has.is_empty() {
            return format!("The server that draws lets nobody choose a {kind}. Leave it out.");
        }
        let plain = |name: &str| name.replace('`', "'");
        let listed: Vec<String> = has.iter().take(MAX_LISTED).map(|name| format!("`{}`", plain(name))).collect();
        let more = match has.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("There is no {kind} `{}` here. There are {}{more}.", plain(wanted), listed.join(", "))
    }
}

/// Leaves out what nobody could name, and what is too much.
fn bounded(mut offer: ImageOffer) -> ImageOffer {
    for names in [&mut offer.models, &mut offer.samplers] {
        let is_name = |name: &String| name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
        names.retain(is_name);
        names.truncate(MAX_OFFERED);
    }
    offer
}

/// Returns a name as the server writes it.
fn found<'a>(names: &'a [String], wanted: &str) -> Option<&'a String> {
    let wanted = wanted.trim();
    let same = |name: &&String| name.to_lowercase() == wanted.to_lowercase();
    names.iter().find(|name| *name == wanted).or_else(|| names.iter().find(same))
}

impl Pictures {
    /// Returns what the server offers, asked anew unless it said so just now; what it said last while it is away. `None` if
    /// it never said.
    async fn offer(&self, must_ask: bool) -> Option<ImageOffer> {
        let settings = self.settings()?;
        // Held while the server is asked, so that many who type ask it once.
        let mut known = self.offered.lock().await;
        if let Some(known) = known.as_ref().filter(|known| !must_ask && known.at.elapsed() < FRESH) {
            return Some(known.offer.clone());
        }
        match settings.model.offer().await {
            Ok(offer) => *known = Some(Known { offer: bounded(offer), at: Instant::now() }),
            Err(error) => tracing::debug!(%error, "the server that draws does not say what it offers"),
        }
        known.as_ref().map(|known| known.offer.clone())
    }

    /// Returns the models and samplers to suggest; none if the server does not say soon.
    pub(crate) async fn choices(&self) -> ImageOffer {
        timeout(PATIENCE, self.offer(false)).await.ok().flatten().unwrap_or_default()
    }

    /// Writes the model and the sampler of a wish as the server does. The error says what there is instead.
    pub(super) async fn check_choices(&self, wish: &mut Wish) -> Result<(), Unknown> {
        // Without a sampler, or with that of the configuration, there is no choice.
        let usual = self.settings().and_then(|settings| settings.sampler.clone());
        if let Some(model) = &wish.model {
            wish.model = Some(self.chosen(Kind::Model, model).await?);
        }
        if let Some(sampler) = wish.sampler.as_ref().filter(|sampler| usual.as_ref() != Some(*sampler)) {
            wish.sampler = Some(self.chosen(Kind::Sampler, sampler).await?);
        }
        Ok(())
    }

    async fn chosen(&self, kind: Kind, wanted: &str) -> Result<String, Unknown> {
        let known = self.offer(false).await;
        if let Some(name) = known.as_ref().and_then(|offer| found(kind.of(offer), wanted)) {
            return Ok(name.clone());
        }
        // It may have come since the server was asked last.
        let Some(offer) = self.offer(true).await else {
            let kind = kind.name();
            let why = format!(
                "The server that draws does not say now which {kind}s it has. Leave the {kind} out, or ask again later."
            );
            return Err(Unknown { kind, why });
        };
        let unknown = || Unknown { kind: kind.name(), why: kind.refusal(&offer, wanted) };
        found(kind.of(&offer), wanted).cloned().ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_its_letters_are_written() {
        let names = ["Euler a", "euler", "Öl"].map(str::to_owned);
        for (wanted, name) in
            [("euler A", Some("Euler a")), ("euler", Some("euler")), ("öl ", Some("Öl")), ("eul", None)]
        {
            assert_eq!(found(&names, wanted).map(String::as_str), name, "{wanted}");
        }
    }

    #[test]
    fn names_that_nobody_could_type_are_left_out() {
        let models = ["good", "two\nlines", &"x".repeat(201)].map(str::to_owned).to_vec();
        let samplers = (0..2_000).map(|number| number.to_string()).collect();
        let offer = bounded(ImageOffer { models, samplers });
        assert_eq!((offer.models, offer.samplers.len()), (vec!["good".to_owned()], 1_000));
    }

    #[test]
    fn a_refusal_lists_what_there_is() {
        let many = (0..25).map(|number| format!("m{number}")).collect();
        let offer = ImageOffer { models: many, samplers: Vec::new() };
        let why = Kind::Model.refusal(&offer, "`x`");
        assert!(
            why.starts_with("There is no model `'x'` here. There are `m0`, `m1`") && why.ends_with(", and 5 more."),
            "{why}"
        );
        assert!(Kind::Sampler.refusal(&offer, "x").contains("lets nobody choose a sampler"));
    }
}
