//! Servers with OpenAI's interface for pictures. They report no progress, and cannot be told to stop.

use async_trait::async_trait;
use azera_model_image::{
    DrawnImage, ImageError, ImageLimits, ImageModel, ImageOffer, ImageRequest, ImageSize, ProgressSender,
};
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::config::ImageServerConfig;
use crate::server::Server;

/// The sizes that OpenAI's own models accept, by a part of their names.
const SIZES: [(&str, &[(u32, u32)]); 3] = [
    ("gpt-image", &[(1024, 1024), (1536, 1024), (1024, 1536)]),
    ("dall-e-3", &[(1024, 1024), (1792, 1024), (1024, 1792)]),
    ("dall-e-2", &[(1024, 1024)]),
];

/// A part of the names of models that start from a picture.
const EDITING: &str = "gpt-image";

/// Returns true if a model starts from a picture.
fn is_editing(model: &str) -> bool {
    model.to_lowercase().contains(EDITING)
}

/// A server of this kind.
pub(crate) struct OpenAi {
    server: Server,
    limits: ImageLimits,
    /// The path of the interface, without a slash at its end; empty if the address contains it.
    path: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    b64_json: Option<String>,
    /// Where the picture is, from servers that keep it.
    url: Option<String>,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

impl OpenAi {
    pub(crate) fn new(config: ImageServerConfig) -> Result<Self, ImageError> {
        if config.model.trim().is_empty() {
            return Err(ImageError::Configuration("images.model must name the model of an OpenAI-style server".into()));
        }
        // The interface has neither seeds nor steps. A picture to start from goes to another path, which few servers have
        // besides OpenAI's own for these models.
        let takes_reference = std::iter::once(&config.model).chain(&config.models).any(|model| is_editing(model));
        let limits = ImageLimits { takes_reference, takes_seed: false, ..config.limits.clone() };
        let server = Server::new(config)?;
        let path = if server.base().path() == "/" { "v1/" } else { "" };
        Ok(Self { server, limits, path })
    }

    /// Asks for a picture that starts from another one. How much of it is redrawn is up to the model.
    async fn edit(&self, request: &ImageRequest, png: &[u8]) -> Result<Answer, ImageError> {
        let prompt = prompt_of(request);
        let file = Part::bytes(png.to_vec()).file_name("picture.png").mime_str("image/png");
        let form = Form::new()
            .part("image", file.map_err(|error| self.server.network(error))?)
            .text("model", self.server.model_of(request).to_owned())
            .text("prompt", prompt.clone())
            .text("n", "1")
            .text("size", format!("{}x{}", request.size.width, request.size.height));
        let post = self.server.request(reqwest::Method::POST, &format!("{}images/edits", self.path)).multipart(form);
        self.server.ask(post, self.server.timeouts().picture, &prompt).await
    }

    async fn ask(&self, request: &ImageRequest, with_format: bool) -> Result<Answer, ImageError> {
        let prompt = prompt_of(request);
        let mut body = json!({
            "model": self.server.model_of(request),
            "prompt": prompt,
            "n": 1,
            "size": format!("{}x{}", request.size.width, request.size.height),
        });
        if with_format {
            body["response_format"] = json!("b64_json");
        }
        let post = self.server.post(&format!("{}images/generations", self.path), &body);
        self.server.ask(post, self.server.timeouts().picture, &prompt).await
    }

    async fn draw(&self, request: &ImageRequest) -> Result<DrawnImage, ImageError> {
        let answer = match &request.reference {
            Some(reference) => self.edit(request, &reference.png).await?,
            None => match self.ask(request, true).await {
                // Newer models always answer in base64, and refuse to be asked for it.
                Err(ImageError::Refused(why)) if why.contains("response_format") => self.ask(request, false).await?,
                answer => answer?,
            },
        };
        let bytes = match answer.data.first() {
            Some(Item { b64_json: Some(picture), .. }) => self.server.base64(picture)?,
            Some(Item { url: Some(url), .. }) if url.starts_with("data:") => self.server.base64(url)?,
            Some(Item { url: Some(url), .. }) => self.server.own_file(url).await?,
            _ => return Err(self.server.protocol("there is no picture in it")),
        };
        Ok(DrawnImage { bytes, seed: None, model: self.server.model_of(request).to_owned() })
    }
}

#[async_trait]
impl ImageModel for OpenAi {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn title(&self) -> &str {
        self.server.config().kind.title()
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    /// Such servers list models of every kind, so only those that the configuration names can be chosen.
    async fn offer(&self) -> Result<ImageOffer, ImageError> {
        Ok(ImageOffer { models: self.server.allowed(), ..ImageOffer::default() })
    }

    fn can_edit(&self, model: Option<&str>) -> bool {
        is_editing(self.server.model_named(model))
    }

    async fn generate(
        &self,
        request: &ImageRequest,
        _progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.server.check_choice(request)?;
        let fitted = self.limits.fit(request);
        let size = accepted_size(self.server.model_of(request), fitted.size);
        let request = ImageRequest { size, ..fitted };
        tokio::select! {
            biased;
            drawn = self.server.guarded(self.draw(&request)) => drawn,
            () = cancelled.cancelled() => Err(ImageError::Cancelled),
        }
    }

    async fn check(&self) -> Result<String, ImageError> {
        let models = self.server.get(&format!("{}models", self.path));
        let models: Models = self.server.ask(models, self.server.timeouts().about, "").await?;
        let wanted = &self.server.config().model;
        match models.data.iter().any(|model| model.id == *wanted) {
            true => Ok(wanted.clone()),
            false => Err(ImageError::Configuration(format!("{} has no model {wanted}", self.server.name()))),
        }
    }
}

/// Returns the prompt with what is not to be drawn, for which the interface has no field.
fn prompt_of(request: &ImageRequest) -> String {
    match request.negative.as_str() {
        "" => request.prompt.clone(),
        negative => format!("{}\nWithout: {negative}", request.prompt),
    }
}

/// Returns the size that a model accepts and whose proportions are nearest. OpenAI's own models take a few; others take any.
fn accepted_size(model: &str, size: ImageSize) -> ImageSize {
    let model = model.to_lowercase();
    let accepted = SIZES.iter().find(|(name, _)| model.contains(name)).map(|(_, sizes)| *sizes).unwrap_or_default();
    let proportions = |width: u32, height: u32| (f64::from(width.max(1)) / f64::from(height.max(1))).ln();
    let wanted = proportions(size.width, size.height);
    let distance = |(width, height): &(u32, u32)| (proportions(*width, *height) - wanted).abs();
    let nearest = accepted.iter().copied().min_by(|one, other| distance(one).total_cmp(&distance(other)));
    nearest.map_or(size, |(width, height)| ImageSize { width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_becomes_one_that_the_model_accepts() {
        #[track_caller]
        fn check(model: &str, (width, height): (u32, u32), want: (u32, u32)) {
            let size = accepted_size(model, ImageSize { width, height });
            assert_eq!((size.width, size.height), want, "{model} {width}x{height}");
        }
        check("gpt-image-1", (832, 1216), (1024, 1536));
        check("gpt-image-1-mini", (1344, 768), (1536, 1024));
        check("GPT-Image-1", (1000, 1024), (1024, 1024));
        check("dall-e-3", (1344, 768), (1792, 1024));
        check("dall-e-2", (1344, 768), (1024, 1024));
        check("stablediffusion", (832, 1216), (832, 1216));
    }
}
