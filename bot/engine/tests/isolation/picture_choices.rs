//! The choice of a model and a sampler: from what the server offers, and nothing else.

use std::sync::atomic::Ordering;
use std::time::Duration;

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
    let (models, samplers) = (names(["anime.safetensors", "photo.safetensors"]), names(["Euler a", "heun"]));
    ImageOffer { models, samplers, sampler_aliases: vec!["k_heun".to_owned()], ..ImageOffer::default() }
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
    let answer = scene.ask(ANN, COMMONS, "/imagine --model photo.safetensors a boat").await;
    assert!(!answer.ok && answer.text.contains("before the options"), "{}", answer.text);
    assert!(ask("--sampler its own").await.ok, "the operator chose it");
    scene.settled().await;
    // While the server is away, what it said last counts.
    painter.is_away.store(true, Ordering::SeqCst);
    assert!(!ask("--model photo").await.ok);
    assert_eq!(scene.posts().len(), 1, "nothing else was queued");
}

#[tokio::test]
async fn a_picture_is_queued_while_its_server_never_said_what_it_has() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.is_away.store(true, Ordering::SeqCst);
    for options in ["--model photo.safetensors", "--sampler heun"] {
        assert!(scene.ask(ANN, COMMONS, &format!("/imagine a boat {options}")).await.ok, "{options}");
    }
    let looks = scene.engine.memory.pictures().waiting().unwrap();
    let model = looks.iter().find_map(|row| row.settings["model"].as_str().map(str::to_owned));
    assert_eq!((looks.len(), model.as_deref()), (2, Some("photo.safetensors")));
    assert_eq!(painter.questions.load(Ordering::SeqCst), 1, "a server that did not say is not asked again at once");
}

#[tokio::test]
async fn what_a_picture_had_is_left_out_where_it_is_there_no_more() {
    let (mut scene, painter) = Scene::with_painter(|settings| settings.sampler = Some("its own".into())).await;
    *painter.offered.lock().unwrap() = offer();
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine a boat --model photo.safetensors --sampler K_HEUN").await);
    let usual = number(&scene.ask(ANN, COMMONS, "/imagine a ship").await);
    scene.settled().await;
    // Another server, with other names.
    *painter.offered.lock().unwrap() = ImageOffer { samplers: vec!["ddim".to_owned()], ..ImageOffer::default() };
    if let Some(settings) = &mut scene.engine.pictures {
        settings.sampler = None;
    }
    scene.engine.reopen().await;
    painter.asked.lock().unwrap().clear();
    for line in [
        format!("/picture again {drawn}"),
        format!("/picture again {usual}"),
        format!("/picture vary {drawn}"),
        format!("/picture upscale {drawn}"),
    ] {
        let answer = scene.ask(ANN, COMMONS, &line).await;
        assert!(answer.ok, "{line}: {}", answer.text);
        scene.settled().await;
    }
    let asked = painter.asked.lock().unwrap().clone();
    assert!(asked.len() == 3 && asked.iter().all(|request| request.model.is_none() && request.sampler.is_none()));
    assert_eq!(painter.enlarged.lock().unwrap().len(), 1);
    let answer = scene.ask(ANN, COMMONS, &format!("/picture again {drawn} --sampler heun")).await;
    assert!(!answer.ok && answer.text.contains("There are `ddim`"), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_holds_nobody_up_and_what_it_said_last_counts() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    *painter.offered.lock().unwrap() = offer();
    assert_eq!(scene.suggested(OptionKind::Sampler, "").await, ["Euler a", "heun"]);
    painter.is_silent.store(true, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(31)).await;
    let (one, other) = tokio::join!(
        scene.suggested(OptionKind::Sampler, "eul"),
        scene.ask(ANN, COMMONS, "/imagine a boat --model photo.safetensors --sampler heun")
    );
    assert!(one == ["Euler a"] && other.ok, "{one:?} {}", other.text);
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
