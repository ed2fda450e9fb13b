//! Which models and samplers people may choose on the server that draws, and the check of those that they name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_model_image::{ImageModel, ImageOffer};
use azera_pictures::Wish;
use tokio::time::{Instant, timeout};

use super::{PictureSettings, Pictures};

/// How long what the server offers counts as known, and how long it is not asked again after it did not say.
const FRESH: Duration = Duration::from_secs(30);

/// The longest wait for the server while somebody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most names that an answer lists.
const MAX_LISTED: usize = 20;

/// The most models, and the most samplers, that can be chosen.
const MAX_OFFERED: usize = 1_000;

/// What the server offers, as it said last.
#[derive(Default)]
pub(super) struct Offered {
    known: Mutex<Known>,
    /// Held while the server is asked, so that many who type ask it once.
    asking: tokio::sync::Mutex<()>,
}

/// What is known of it.
#[derive(Default)]
struct Known {
    /// `None` if the server never said.
    offer: Option<ImageOffer>,
    /// When it was asked last.
    asked: Option<Instant>,
    /// Whether it did not say then.
    failed: bool,
}

impl Offered {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self) -> Option<ImageOffer> {
        self.known().offer.clone()
    }

    /// Returns whether the server said what it offers when it was asked just now; `None` if it was not.
    fn said_just_now(&self) -> Option<bool> {
        let known = self.known();
        known.asked.filter(|asked| asked.elapsed() < FRESH).map(|_| !known.failed)
    }

    /// Asks the server, unless somebody else asked it after `since`.
    async fn ask(&self, model: &dyn ImageModel, since: Instant) {
        let _asking = self.asking.lock().await;
        if self.known().asked.is_some_and(|asked| asked >= since) {
            return;
        }
        let said = model.offer().await;
        let mut known = self.known();
        (known.asked, known.failed) = (Some(Instant::now()), said.is_err());
        match said {
            Ok(offer) => known.offer = Some(bounded(offer)),
            Err(error) => tracing::debug!(%error, "the server that draws does not say what it offers"),
        }
    }

    /// Asks the server, and waits a short time for what it says. A slow server is heard out for the next time.
    async fn refresh(self: &Arc<Self>, model: &Arc<dyn ImageModel>) {
        let (offered, model, since) = (self.clone(), model.clone(), Instant::now());
        let asking = tokio::spawn(async move { offered.ask(model.as_ref(), since).await });
        if timeout(PATIENCE, asking).await.is_err() {
            tracing::debug!("the server that draws is slow to say what it offers");
        }
    }
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

    /// Returns a name as the server writes it; `None` if nothing of that name can be chosen.
    fn found(self, offer: &ImageOffer, wanted: &str) -> Option<String> {
        let (aliases, takes_any): (&[String], bool) = match self {
            Self::Model => (&[], offer.takes_any_model),
            Self::Sampler => (&offer.sampler_aliases, offer.takes_any_sampler),
        };
        let known = found(self.of(offer), wanted).or_else(|| found(aliases, wanted)).cloned();
        known.or_else(|| takes_any.then(|| wanted.trim().to_owned()))
    }

    fn field(self, wish: &mut Wish) -> &mut Option<String> {
        match self {
            Self::Model => &mut wish.model,
            Self::Sampler => &mut wish.sampler,
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
    for names in [&mut offer.models, &mut offer.samplers, &mut offer.sampler_aliases] {
        names.retain(|name| Wish::can_name(name) && !name.chars().any(char::is_control));
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
    /// Returns the models and samplers to suggest, as the server said last; none if it never said.
    pub(crate) async fn choices(&self) -> ImageOffer {
        let Some(settings) = self.settings() else { return ImageOffer::default() };
        if self.offered.said_just_now().is_none() {
            self.offered.refresh(&settings.model).await;
        }
        self.offered.last().unwrap_or_default()
    }

    /// Settles the model and the sampler of a wish, written as the server does. What the person names must be there; the
    /// error says what there is instead. What only an earlier picture had is left out where it is there no more. While the
    /// server has not said what it has, everything is taken: it refuses what it does not know.
    pub(super) async fn check_choices(&self, settings: &PictureSettings, wish: &mut Wish) -> Result<(), Unknown> {
        let (earlier_model, earlier_sampler) = (wish.earlier_model.take(), wish.earlier_sampler.take());
        // Without a sampler, or with that of the configuration, there is no choice.
        let usual = settings.sampler.as_ref();
        let named_sampler = wish.sampler.clone().filter(|sampler| usual != Some(sampler));
        let earlier_sampler = earlier_sampler.filter(|sampler| wish.sampler.is_none() && usual != Some(sampler));
        let earlier_model = earlier_model.filter(|_| wish.model.is_none());
        let named = [(Kind::Model, wish.model.clone()), (Kind::Sampler, named_sampler)];
        let earlier = [(Kind::Model, earlier_model), (Kind::Sampler, earlier_sampler)];
        if named.iter().chain(&earlier).all(|(_, name)| name.is_none()) {
            return Ok(());
        }
        let mut offer = self.offered.last();
        let said = self.offered.said_just_now();
        let lacks = |offer: &ImageOffer| {
            let mut names = named.iter().filter_map(|(kind, name)| Some((kind, name.as_ref()?)));
            names.any(|(kind, name)| kind.found(offer, name).is_none())
        };
        // What is named may have come since the server was asked last.
        if said.is_none() || (said == Some(true) && offer.as_ref().is_some_and(lacks)) {
            self.offered.refresh(&settings.model).await;
            offer = self.offered.last();
        }
        for (kind, name) in named {
            let (Some(wanted), Some(offer)) = (name, &offer) else { continue };
            let unknown = || Unknown { kind: kind.name(), why: kind.refusal(offer, &wanted) };
            *kind.field(wish) = Some(kind.found(offer, &wanted).ok_or_else(unknown)?);
        }
        for (kind, name) in earlier {
            let Some(name) = name else { continue };
            *kind.field(wish) = match &offer {
                Some(offer) => kind.found(offer, &name),
                None => Some(name),
            };
        }
        Ok(())
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
        let models = ["good", "two\nlines", "two  spaces", "a --turbo", &"x".repeat(201)].map(str::to_owned).to_vec();
        let samplers = (0..2_000).map(|number| number.to_string()).collect();
        let offer = bounded(ImageOffer { models, samplers, ..ImageOffer::default() });
        assert_eq!((offer.models, offer.samplers.len()), (vec!["good".to_owned()], 1_000));
    }

    #[test]
    fn a_refusal_lists_what_there_is() {
        let many = (0..25).map(|number| format!("m{number}")).collect();
        let offer = ImageOffer { models: many, ..ImageOffer::default() };
        let why = Kind::Model.refusal(&offer, "`x`");
        assert!(
            why.starts_with("There is no model `'x'` here. There are `m0`, `m1`") && why.ends_with(", and 5 more."),
            "{why}"
        );
        let offer = ImageOffer { sampler_aliases: vec!["k_euler_a".to_owned()], takes_any_model: true, ..offer };
        assert_eq!(Kind::Sampler.found(&offer, "K_Euler_a").as_deref(), Some("k_euler_a"));
        assert_eq!(Kind::Model.found(&offer, "own").as_deref(), Some("own"));
        assert!(Kind::Sampler.refusal(&offer, "x").contains("lets nobody choose a sampler"));
    }
}
