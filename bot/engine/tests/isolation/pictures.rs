//! Pictures: who asked for them, who may be shown them, and that none is lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_adapter::{CommandAnswer, CommandLine, Host, Platform};
use azera_engine::PictureSettings;
use azera_model_api::ScriptedModel;
use azera_model_image::{
    DrawnImage, ImageError, ImageLimits, ImageModel, ImageOffer, ImageProgress, ImageRequest, ImageSize, Outage,
    Picture, ProgressSender, UpscaleRequest,
};
use azera_types::Text;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, Scene};
use crate::shown_pictures::Eye;
use crate::test_engine::{TestEngine, chat, person};
use crate::world::PEOPLE;

/// Draws one grey picture after another, and remembers what it was asked for.
#[derive(Default)]
pub struct Painter {
    limits: ImageLimits,
    pub asked: Mutex<Vec<ImageRequest>>,
    /// The pictures that it was to draw larger.
    pub enlarged: Mutex<Vec<UpscaleRequest>>,
    /// Requests that fail for a passing reason before one succeeds.
    pub failures: AtomicUsize,
    /// Waits until it is cancelled.
    pub hangs: AtomicBool,
    /// The shade of its pictures; one after another if it is 0.
    pub shade: AtomicU8,
    /// How its pictures look before they are finished.
    pub preview: Mutex<Option<Vec<u8>>>,
    /// Cannot be reached.
    pub is_away: AtomicBool,
    /// The models and samplers that it offers.
    pub offered: Mutex<ImageOffer>,
    /// How often it told them.
    pub offers: AtomicUsize,
    /// How often it was asked for them.
    pub questions: AtomicUsize,
    /// Never says what it offers.
    pub is_silent: AtomicBool,
    /// Told when it begins a picture.
    pub begun: Notify,
}

#[async_trait]
impl ImageModel for Painter {
    fn name(&self) -> &str {
        "the painter at http://10.0.0.7"
    }

    fn title(&self) -> &str {
        "the painter"
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    async fn offer(&self) -> Result<ImageOffer, ImageError> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        if self.is_silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.is_away.load(Ordering::SeqCst) {
            return Err(ImageError::outage(Outage::Away, "nobody is there"));
        }
        self.offers.fetch_add(1, Ordering::SeqCst);
        Ok(self.offered.lock().unwrap().clone())
    }

    async fn generate(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let preview = self.preview.lock().unwrap().clone();
        progress.send_replace(ImageProgress { step: 1, steps: 2, preview, ..ImageProgress::default() });
        tokio::task::yield_now().await;
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.clone());
            asked.len()
        };
        self.begun.notify_one();
        if self.hangs.load(Ordering::SeqCst) {
            cancelled.cancelled().await;
            return Err(ImageError::Cancelled);
        }
        if self.is_away.load(Ordering::SeqCst) {
            return Err(ImageError::outage(Outage::Away, "nobody is there"));
        }
        if self.failures.load(Ordering::SeqCst) > 0 {
            self.failures.fetch_sub(1, Ordering::SeqCst);
            return Err(ImageError::unavailable("it rests"));
        }
        if request.prompt.contains("unwanted") {
            return Err(ImageError::Refused(format!("{} refused the request", self.name())));
        }
        let shade = match self.shade.load(Ordering::SeqCst) {
            0 => (number % 200) as u8,
            shade => shade,
        };
        let pixels = vec![shade; 8 * 8 * 3];
        let bytes = Picture::from_rgb(8, 8, pixels).unwrap().to_png(&[]).unwrap();
        Ok(DrawnImage { bytes, seed: None, model: "grey".into() })
    }

    async fn upscale(
        &self,
        request: &UpscaleRequest,
        _progress: &ProgressSender,
        _cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.enlarged.lock().unwrap().push(request.clone());
        let ImageSize { width, height } = request.size;
        let picture = Picture::from_rgb(width, height, vec![9; (width * height * 3) as usize]).unwrap();
        Ok(DrawnImage { bytes: picture.to_png(&[]).unwrap(), seed: None, model: "larger".into() })
    }

    async fn check(&self) -> Result<String, ImageError> {
        Ok("grey".into())
    }
}

/// Lets everybody draw as much as they like.
pub fn settings(painter: Arc<Painter>) -> PictureSettings {
    PictureSettings {
        model: painter,
        size: ImageSize { width: 64, height: 64 },
        steps: 2,
        guidance: 7.0,
        negative: String::new(),
        sampler: None,
        per_person: 10_000,
        per_place: 10_000,
        queue: 1_000,
        queue_per_person: 1_000,
        kept: 1_000,
        in_replies: true,
        previews: false,
        tells_every_model: false,
    }
}

impl Scene {
    /// Opens a scene with a painter of its own.
    pub async fn with_painter(limit: impl FnOnce(&mut PictureSettings)) -> (Self, Arc<Painter>) {
        let mut scene = Self::open(false, false).await;
        let limits = ImageLimits { upscales: true, ..ImageLimits::default() };
        let painter = Arc::new(Painter { limits, ..Painter::default() });
        let mut settings = settings(painter.clone());
        limit(&mut settings);
        scene.engine.pictures = Some(settings);
        scene.engine.reopen().await;
        (scene, painter)
    }

    pub async fn ask(&self, who: usize, place: usize, text: &str) -> CommandAnswer {
        self.pass(90);
        let name = PEOPLE[who].1.to_owned();
        let line = CommandLine {
            chat: chat(place),
            person: person(who),
            name,
            text: Text::new(text),
            about: None,
            picture: None,
        };
        self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap()
    }

    pub async fn settled(&self) {
        self.engine.azera.settle().await.unwrap();
    }

    /// Returns the texts and numbers of files of the posts so far.
    pub fn posts(&self) -> Vec<(String, usize)> {
        let delivered = self.engine.platform.delivered.lock().unwrap();
        let pictures = delivered.iter().filter(|outbound| outbound.text.contains('🎨'));
        pictures.map(|outbound| (outbound.text.as_str().to_owned(), outbound.files.len())).collect()
    }

    fn stored_pictures(&self) -> usize {
        self.engine.layers.blobs.list().unwrap().len()
    }
}

/// Returns the number in the answer to a request for a picture.
pub fn number(answer: &CommandAnswer) -> String {
    assert!(answer.ok, "{}", answer.text);
    answer.choices[0].line.rsplit(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_picture_is_shown_only_where_its_place_may_be_read() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    let drawn = number(&scene.ask(ANN, DM_ANN, "/imagine a heliotrope lighthouse").await);
    scene.settled().await;
    assert_eq!(scene.posts().len(), 1);
    assert!(scene.posts()[0].0.contains("heliotrope") && scene.posts()[0].1 == 1);
    let shown = scene.ask(ANN, DM_ANN, &format!("/gallery show {drawn}")).await;
    assert!(shown.files[0].content.0.starts_with(b"\x89PNG"));
    assert!(scene.ask(ANN, DM_ANN, "/gallery search heliotrope").await.text.contains("yours"));
    for (who, place) in [(AN, DM_AN), (BOB, DM_BOB), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        for command in ["/gallery show", "/picture again", "/picture vary", "/picture delete"] {
            let answer = scene.ask(who, place, &format!("{command} {drawn}")).await;
            // Nothing tells whether the picture exists.
            assert_eq!(answer, scene.ask(who, place, &format!("{command} 987654")).await, "{command} in {place}");
        }
        for command in ["/gallery", "/gallery search heliotrope", "/memory files", "/memory export"] {
            let answer = scene.ask(who, place, command).await;
            let is_own = who == ANN && command == "/memory export";
            assert!(is_own || !answer.text.contains("heliotrope"), "{command} in {place}: {}", answer.text);
        }
    }
    assert!(scene.ask(ANN, DM_ANN, "/memory export").await.text.contains("heliotrope"));
}

#[tokio::test]
async fn a_deleted_picture_is_gone_and_so_are_those_of_a_forgotten_person() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    let one = number(&scene.ask(ANN, COMMONS, "/imagine one").await);
    scene.settled().await;
    number(&scene.ask(AN, COMMONS, "/imagine two").await);
    scene.settled().await;
    assert_eq!(scene.stored_pictures(), 2);
    let refused = scene.ask(AN, COMMONS, &format!("/picture delete {one}")).await;
    assert!(refused.text.contains("admin"), "{}", refused.text);
    assert!(scene.ask(ANN, COMMONS, &format!("/picture delete {one}")).await.ok);
    scene.settled().await;
    assert_eq!(scene.stored_pictures(), 1);
    assert!(!scene.ask(ANN, COMMONS, "/gallery").await.text.contains("one"));
    scene.ask(AN, COMMONS, "/imagine three").await;
    scene.settled().await;
    scene.ask(AN, DM_AN, "/forget me").await;
    scene.settled().await;
    assert_eq!(scene.stored_pictures(), 0);
    assert!(scene.ask(ANN, COMMONS, "/gallery").await.text.contains("no pictures"));
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_variation_starts_from_the_picture_and_needs_its_place() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine a lighthouse --seed 7 --size 128x64").await);
    scene.settled().await;
    scene.ask(ANN, COMMONS, "/picture vary in fog").await;
    scene.ask(ANN, COMMONS, &format!("/picture again {drawn}")).await;
    scene.settled().await;
    let asked = painter.asked.lock().unwrap().clone();
    assert_eq!((asked[0].seed, asked[0].size.width), (7, 128));
    assert_eq!(asked[1].prompt, "a lighthouse, in fog");
    assert!(asked[1].reference.as_ref().is_some_and(|reference| reference.png.starts_with(b"\x89PNG")));
    assert_eq!(
        (asked[2].prompt.as_str(), asked[2].size.width, asked[2].reference.is_none()),
        ("a lighthouse", 128, true)
    );
    // Whatever takes over the prompt of a picture is built on it: with the picture, it goes.
    scene.ask(ANN, COMMONS, &format!("/picture delete {drawn}")).await;
    scene.settled().await;
    let left = scene.ask(ANN, COMMONS, "/gallery").await.text;
    assert_eq!(left.matches("lighthouse").count(), 0, "{left}");
}

#[tokio::test]
async fn each_rule_is_named_and_no_admin_can_lift_the_first() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    scene.ask(ANN, COMMONS, "/picture adult on").await;
    for (prompt, part) in
        [("a nude schoolgirl", "under 18"), ("a nude woman", "marks for adults"), ("", "Say what to draw")]
    {
        let answer = scene.ask(ANN, COMMONS, &format!("/imagine {prompt}")).await;
        assert!(!answer.ok && answer.text.contains(part), "{prompt}: {}", answer.text);
    }
    assert!(!scene.ask(AN, COMMONS, "/picture forbid spiders").await.ok, "An is no admin");
    assert!(scene.ask(ANN, COMMONS, "/picture forbid spiders").await.ok);
    let answer = scene.ask(AN, COMMONS, "/imagine big Spiders").await;
    assert!(!answer.ok && answer.text.contains("`spiders`"), "{}", answer.text);
    assert!(scene.ask(AN, DM_AN, "/imagine big spiders").await.ok, "another place has another list");
    scene.ask(ANN, COMMONS, "/picture permit spiders").await;
    assert!(scene.ask(AN, COMMONS, "/imagine big spiders").await.ok);
    scene.settled().await;
    assert_eq!(painter.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_person_and_a_place_have_limits() {
    let (scene, _) = Scene::with_painter(|settings| (settings.per_person, settings.per_place) = (2, 3)).await;
    for _ in 0..2 {
        assert!(scene.ask(ANN, COMMONS, "/imagine a boat").await.ok);
        scene.settled().await;
    }
    let third = scene.ask(ANN, DM_ANN, "/imagine a boat").await;
    assert!(third.text.contains("2 pictures today"), "{}", third.text);
    assert!(scene.ask(AN, COMMONS, "/imagine a boat").await.ok);
    let fourth = scene.ask(AN, COMMONS, "/imagine a boat").await;
    assert!(fourth.text.contains("This place has had 3"), "{}", fourth.text);
    assert!(scene.ask(AN, DM_AN, "/imagine a boat").await.ok);
    scene.pass(86_400);
    assert!(scene.ask(ANN, COMMONS, "/imagine a boat").await.ok, "it is another day");
}

#[tokio::test]
async fn a_drawn_picture_costs_its_persona_energy_and_one_that_fails_costs_none() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    for line in ["/tune energy_per_picture 1", "/tune energy_recovery_per_s 0", "/tune energy_per_exchange 0"] {
        assert!(scene.ask(ANN, COMMONS, line).await.ok, "{line}");
    }
    scene.say(ANN, COMMONS, "Luna, hello, quiet").await;
    let energy = async || {
        let status = scene.ask(ANN, COMMONS, "/status").await.text;
        status.lines().find(|line| line.contains("energy")).unwrap_or_default().to_owned()
    };
    let before = energy().await;
    assert!(!before.is_empty() && !before.ends_with(" 0.00"), "{before}");
    scene.ask(ANN, COMMONS, "/imagine something unwanted").await;
    scene.settled().await;
    assert_eq!(energy().await, before, "the server refused it");
    scene.ask(ANN, COMMONS, "/imagine a boat").await;
    scene.settled().await;
    assert_eq!(painter.asked.lock().unwrap().len(), 2);
    let after = energy().await;
    assert!(after.ends_with(" 0.00"), "{before} became {after}");
}

#[tokio::test]
async fn without_a_server_the_bot_says_how_to_get_one() {
    let mut scene = Scene::open(false, false).await;
    scene.engine.pictures = None;
    scene.engine.reopen().await;
    let answer = scene.ask(ANN, COMMONS, "/imagine a boat").await;
    assert!(!answer.ok && answer.text.contains("[images]"), "{}", answer.text);
}

#[tokio::test]
async fn fifty_people_are_served_in_turn_and_a_restart_loses_none() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    for round in 0..25 {
        for who in [ANN, AN] {
            assert!(scene.ask(who, COMMONS, &format!("/imagine picture {round} of {}", PEOPLE[who].0)).await.ok);
        }
    }
    scene.engine.azera.stop().await;
    painter.hangs.store(false, Ordering::SeqCst);
    painter.asked.lock().unwrap().clear();
    scene.engine.reopen().await;
    scene.settled().await;
    let asked: Vec<String> = painter.asked.lock().unwrap().iter().map(|request| request.prompt.clone()).collect();
    assert_eq!(asked.len(), 50);
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), 50, "each once");
    for pair in asked.chunks(2) {
        let by = |name: &str| pair.iter().filter(|prompt| prompt.ends_with(name)).count();
        assert_eq!((by(PEOPLE[ANN].0), by(PEOPLE[AN].0)), (1, 1), "they take turns: {pair:?}");
    }
    assert_eq!(scene.posts().len(), 50);
}

#[tokio::test]
async fn a_cancelled_picture_is_not_drawn() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine a boat").await);
    let other = scene.ask(AN, COMMONS, &format!("/picture cancel {drawn}")).await;
    assert!(!other.ok, "{}", other.text);
    assert!(scene.ask(ANN, COMMONS, "/picture queue").await.text.contains(&format!("picture {drawn}")));
    assert!(scene.ask(ANN, COMMONS, "/picture cancel").await.ok);
    scene.settled().await;
    assert!(scene.posts().is_empty());
    assert!(scene.ask(ANN, COMMONS, "/picture queue").await.text.contains("No pictures"));
}

#[tokio::test]
async fn a_tag_in_a_reply_draws_a_picture_and_is_not_shown() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    let reply = "Look at this. [IMAGE_GEN: prompt=\"a violet tower\", name=\"Tower\"]";
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(reply))).await;
    scene.say(ANN, COMMONS, "show me a tower").await;
    let delivered: Vec<String> = scene
        .engine
        .platform
        .delivered
        .lock()
        .unwrap()
        .iter()
        .map(|outbound| outbound.text.as_str().to_owned())
        .collect();
    assert!(delivered.iter().any(|text| text.trim() == "Look at this."), "{delivered:?}");
    assert!(delivered.iter().all(|text| !text.contains("IMAGE_GEN")));
    assert_eq!(painter.asked.lock().unwrap()[0].prompt, "a violet tower");
    assert!(scene.posts()[0].0.contains("**Tower**"), "{:?}", scene.posts());
}

#[tokio::test]
async fn forgetting_stops_the_drawing_that_is_built_on_it() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying("Look. [IMAGE_GEN: prompt=\"a violet tower\"]"))).await;
    painter.hangs.store(true, Ordering::SeqCst);
    let asked = scene.message(ANN, COMMONS, "show me a tower");
    scene.submit(asked).await.unwrap();
    let forget = async {
        painter.begun.notified().await;
        scene.ask(ANN, COMMONS, "/forget last quotes").await
    };
    let (settled, forgotten) = tokio::join!(scene.engine.azera.settle(), forget);
    settled.unwrap();
    assert!(forgotten.ok, "{}", forgotten.text);
    assert!(scene.posts().is_empty());
    assert!(scene.ask(ANN, COMMONS, "/picture queue").await.text.contains("No pictures"));
}

#[tokio::test]
async fn a_server_that_fails_is_tried_again_and_then_the_person_is_told() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.failures.store(1, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a boat").await;
    for _ in 0..3 {
        scene.settled().await;
    }
    assert_eq!(scene.posts().iter().filter(|(_, files)| *files == 1).count(), 1);
    painter.failures.store(100, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a ship").await;
    for _ in 0..4 {
        scene.settled().await;
    }
    let (text, files) = scene.posts().pop().unwrap();
    assert!(text.contains("I could not draw that") && files == 0, "{text}");
    assert!(!scene.ask(ANN, COMMONS, "/gallery").await.text.contains("a ship"));
}

#[tokio::test]
async fn nobody_is_told_where_the_server_is() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    scene.ask(ANN, COMMONS, "/imagine something unwanted").await;
    scene.settled().await;
    let (text, _) = scene.posts().pop().unwrap();
    assert!(text.contains("the painter refused") && !text.contains("10.0.0.7"), "{text}");
}

impl TestEngine {
    /// Lets the engine see and draw, if it is to.
    pub fn give_paint(&self) {
        if !self.is_blind {
            self.azera.give_sight(Arc::new(Eye));
        }
        if let Some(settings) = &self.pictures {
            self.azera.draw_with(settings.clone());
        } else if self.are_pictures_set_aside {
            self.azera.set_pictures_aside();
        }
    }
}
