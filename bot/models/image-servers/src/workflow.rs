//! ComfyUI's workflows: JSON in which placeholders stand for what a request says.

use std::collections::BTreeSet;

use azera_model_image::ImageRequest;
use serde_json::{Value, json};

/// The placeholders of a workflow. A text that is nothing but a placeholder of a number becomes a number.
pub const PLACEHOLDERS: [&str; 12] = [
    "{prompt}",
    "{negative}",
    "{width}",
    "{height}",
    "{steps}",
    "{seed}",
    "{guidance}",
    "{sampler}",
    "{scheduler}",
    "{model}",
    "{reference}",
    "{strength}",
];

/// The sampler of a request that names none.
const SAMPLER: &str = "euler";

/// Returns the workflow of a request. `reference` is the name of the uploaded picture to start from.
pub(crate) fn filled(workflow: &Value, request: &ImageRequest, model: &str, reference: Option<&str>) -> Value {
    let sampler = request.sampler.as_deref().unwrap_or(SAMPLER);
    let strength = request.reference.as_ref().map_or(1.0, |reference| reference.strength);
    let values: [(&str, Value); 12] = [
        ("{prompt}", json!(request.prompt)),
        ("{negative}", json!(request.negative)),
        ("{width}", json!(request.size.width)),
        ("{height}", json!(request.size.height)),
        ("{steps}", json!(request.steps)),
        ("{seed}", json!(request.seed)),
        ("{guidance}", json!(request.guidance)),
        ("{sampler}", json!(sampler)),
        ("{scheduler}", json!("normal")),
        ("{model}", json!(model)),
        ("{reference}", json!(reference.unwrap_or_default())),
        ("{strength}", json!(strength)),
    ];
    replaced(workflow, &values)
}

fn replaced(value: &Value, values: &[(&str, Value)]) -> Value {
    match value {
        Value::String(text) => text_of(text, values),
        Value::Array(all) => all.iter().map(|one| replaced(one, values)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, one)| (name.clone(), replaced(one, values)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Fills the placeholders of a text in one pass, so that a prompt that contains one changes nothing.
fn text_of(text: &str, values: &[(&str, Value)]) -> Value {
    if let Some((_, value)) = values.iter().find(|(placeholder, _)| *placeholder == text) {
        return value.clone();
    }
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        match values.iter().find_map(|(placeholder, value)| Some((value, from.strip_prefix(placeholder)?))) {
            Some((Value::String(value), behind)) => {
                filled.push_str(value);
                rest = behind;
            }
            Some((value, behind)) => {
                filled.push_str(&value.to_string());
                rest = behind;
            }
            None => {
                filled.push('{');
                rest = from.strip_prefix('{').unwrap_or_default();
            }
        }
    }
    filled.push_str(rest);
    Value::String(filled)
}

/// Returns the kinds of nodes, and their inputs, whose value is this placeholder and nothing else.
pub(crate) fn inputs_of(workflow: &Value, placeholder: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for node in workflow.as_object().into_iter().flat_map(|nodes| nodes.values()) {
        let class = node["class_type"].as_str().unwrap_or_default();
        for (input, value) in node["inputs"].as_object().into_iter().flatten() {
            if value == placeholder {
                found.insert((class.to_owned(), input.clone()));
            }
        }
    }
    found
}

/// Returns true if a workflow can start from a picture.
pub(crate) fn takes_reference(workflow: &Value) -> bool {
    match workflow {
        Value::String(text) => text.contains("{reference}"),
        Value::Array(all) => all.iter().any(takes_reference),
        Value::Object(fields) => fields.values().any(takes_reference),
        _ => false,
    }
}

/// Returns the plain workflow: a checkpoint, two texts, a sampler, a decoder. With `from_picture`, it starts from one.
pub(crate) fn plain(from_picture: bool) -> Value {
    let mut nodes = json!({
        "model": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "{model}"}},
        "positive": {"class_type": "CLIPTextEncode", "inputs": {"text": "{prompt}", "clip": ["model", 1]}},
        "negative": {"class_type": "CLIPTextEncode", "inputs": {"text": "{negative}", "clip": ["model", 1]}},
        "latent": {"class_type": "EmptyLatentImage", "inputs": {"width": "{width}", "height": "{height}", "batch_size": 1}},
        "sampler": {"class_type": "KSampler", "inputs": {
            "model": ["model", 0], "positive": ["positive", 0], "negative": ["negative", 0], "latent_image": ["latent", 0],
            "seed": "{seed}", "steps": "{steps}", "cfg": "{guidance}", "sampler_name": "{sampler}",
            "scheduler": "{scheduler}", "denoise": "{strength}"}},
        "decoded": {"class_type": "VAEDecode", "inputs": {"samples": ["sampler", 0], "vae": ["model", 2]}},
        "saved": {"class_type": "PreviewImage", "inputs": {"images": ["decoded", 0]}},
    });
    if from_picture {
        nodes["picture"] = json!({"class_type": "LoadImage", "inputs": {"image": "{reference}"}});
        nodes["latent"] = json!({"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["model", 2]}});
    }
    nodes
}

#[cfg(test)]
mod tests {
    use azera_model_image::{ImageSize, Reference};

    use super::*;

    fn request() -> ImageRequest {
        ImageRequest {
            prompt: "a {seed} of \"light\"".into(),
            negative: "fog".into(),
            size: ImageSize { width: 640, height: 512 },
            steps: 9,
            seed: 77,
            guidance: 5.5,
            model: None,
            sampler: None,
            reference: Some(Reference { png: vec![1], strength: 0.25 }),
        }
    }

    #[test]
    fn placeholders_become_texts_and_numbers_once() {
        let workflow =
            json!({"a": "{prompt}", "b": ["{width}", "x {height} {no} {", 3], "c": {"d": "{seed}-{negative}"}});
        let want = json!({"a": "a {seed} of \"light\"", "b": [640, "x 512 {no} {", 3], "c": {"d": "77-fog"}});
        assert_eq!(filled(&workflow, &request(), "m", None), want);
    }

    #[test]
    fn the_plain_workflow_uses_every_value_of_a_request() {
        let text = filled(&plain(true), &request(), "sdxl.safetensors", Some("up.png"));
        assert_eq!(text["sampler"]["inputs"]["denoise"], json!(0.25));
        assert_eq!(text["picture"]["inputs"]["image"], json!("up.png"));
        let text = text.to_string();
        assert!(
            PLACEHOLDERS.iter().all(|placeholder| *placeholder == "{seed}" || !text.contains(placeholder)),
            "{text}"
        );
        assert!(takes_reference(&plain(true)) && !takes_reference(&plain(false)));
    }
}
