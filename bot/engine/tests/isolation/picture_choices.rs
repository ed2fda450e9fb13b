//! The choice of a model and a sampler: from what the server offers, and nothing else.

use std::sync::atomic::Ordering;

use azera_adapter::{AutocompleteRequest, Host, OptionKind, PictureHost, Platform};
use azera_model_image::ImageOffer;

use crate::findings::{ANN, COMMONS, Scene};
use crate::pictures::number;
use crate::test_engine::{chat, person};
use crate::world::PEOPLE;

/// The kinds of options for which values are suggested.
pub const SUGGESTED: [OptionKind; 8] = [
    OptionKind::Persona,
    OptionKind::Model,
    OptionKind::Branch,
    OptionKind::Memory,
    OptionKind::Theme,
    OptionKind::PictureModel,
    OptionKind::Sampler,
    OptionKind::Voice,
];

fn offer() -> ImageOffer {
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    ImageOffer { models: names(["anime.safetensors", "photo.safetensors"]), samplers: names(["Euler a", "heun"]) }
}

impl Scene {
    async fn suggested(&self, kind: OptionKind, typed: &str) -> Vec<String> {
        let (name, typed) = (PEOPLE[ANN].1.to_owned(), typed.to_owned());
        let request = AutocompleteRequest { chat: chat(COMMONS), person: person(ANN), name, kind, typed };
        let options = self.engine.azera.autocomplete(self.engine.platform.sim.id(), request).await.unwrap();
        options.into_iter().map(|option| option.value).collect()
    }
}

#[tokio::test]
async fn a_model_and_a_sampler_are_chosen_and_kept_for_what_is_made_from_the_picture() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    *painter.offered.lock().unwrap() = offer();
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine a boat --model Photo.SAFETENSORS --sampler euler a").await);
    scene.settled().await;
    scene.ask(ANN, COMMONS, &format!("/picture again {drawn}")).await;
    scene.settled().await;
    scene.ask(ANN, COMMONS, &format!("/picture vary {drawn} --model anime.safetensors")).await;
    scene.ask(ANN, COMMONS, "/imagine a ship").await;
    scene.settled().await;
    let asked = painter.asked.lock().unwrap().clone();
    let chosen: Vec<_> = asked.iter().map(|request| (request.model.as_deref(), request.sampler.as_deref())).collect();
    let (photo, anime, euler) = (Some("photo.safetensors"), Some("anime.safetensors"), Some("Euler a"));
    assert_eq!(chosen, [(photo, euler), (photo, euler), (anime, euler), (None, None)]);
}

#[tokio::test]
async fn a_name_that_is_not_there_is_refused_before_the_queue_with_those_that_are() {
    let (scene, painter) = Scene::with_painter(|settings| settings.sampler = Some("its own".into())).await;
    let ask = async |options: &str| scene.ask(ANN, COMMONS, &format!("/imagine a boat {options}")).await;
    let answer = ask("--model photo").await;
    assert!(!answer.ok && answer.text.contains("lets nobody choose a model"), "{}", answer.text);
    *painter.offered.lock().unwrap() = offer();
    for (options, part) in [
        ("--model photo", "no model `photo` here. There are `anime.safetensors`, `photo.safetensors`."),
        ("--sampler eular", "no sampler `eular` here. There are `Euler a`, `heun`."),
    ] {
        let answer = ask(options).await;
        assert!(!answer.ok && answer.text.contains(part), "{options}: {}", answer.text);
    }
    assert!(ask("--sampler its own").await.ok, "the operator chose it");
    scene.settled().await;
    // While the server is away, what it said last counts.
    painter.is_away.store(true, Ordering::SeqCst);
    assert!(!ask("--model photo").await.ok);
    assert_eq!(scene.posts().len(), 1, "nothing else was queued");
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.is_away.store(true, Ordering::SeqCst);
    let answer = scene.ask(ANN, COMMONS, "/imagine a boat --model photo.safetensors").await;
    assert!(!answer.ok && answer.text.contains("does not say now which models it has"), "{}", answer.text);
}

#[tokio::test]
async fn what_the_server_offers_is_suggested_and_it_is_not_asked_at_each_letter() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    *painter.offered.lock().unwrap() = offer();
    assert_eq!(scene.suggested(OptionKind::PictureModel, "PHO").await, ["photo.safetensors"]);
    assert_eq!(scene.suggested(OptionKind::Sampler, "").await, ["Euler a", "heun"]);
    let choices = scene.engine.azera.picture_choices().await;
    assert_eq!((choices.models, choices.samplers), (offer().models, offer().samplers));
    assert_eq!(painter.offers.load(Ordering::SeqCst), 1);
    painter.is_away.store(true, Ordering::SeqCst);
    assert_eq!(scene.suggested(OptionKind::PictureModel, "").await.len(), 2);
}
