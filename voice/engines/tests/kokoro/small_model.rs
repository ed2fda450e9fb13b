//! Writes a small ONNX model with the inputs, outputs and metadata of a Kokoro model.

use std::f32::consts::TAU;
use std::path::{Path, PathBuf};

/// The tones that the voices hum, in Hz.
pub const TONES: [f32; 3] = [150.0, 220.0, 330.0];
/// The rows of each voice, one for each number of phonemes.
const ROWS: usize = 510;
/// The types of values.
const FLOAT: u64 = 1;
const INT64: u64 = 7;

/// Writes a model with these voices, and returns its path.
pub fn write(folder: &Path, voices: &[&str]) -> PathBuf {
    let path = folder.join("model.onnx");
    std::fs::write(&path, model(voices)).expect("it is written");
    path
}

fn model(voices: &[&str]) -> Vec<u8> {
    let radians = TONES.map(|tone| TAU * tone / 24_000.0);
    let styles: Vec<u8> = radians.iter().flat_map(|tone| [*tone; ROWS]).flat_map(f32::to_le_bytes).collect();
    let float = |name: &str, number: f32| tensor(name, &[1], FLOAT, &number.to_le_bytes());
    let int = |name: &str, number: i64| tensor(name, &[], INT64, &number.to_le_bytes());
    let to = |kind: u64| [("to", kind)];
    let nodes = [
        node("Gather", &["styles", "style_row"], "tone", &[]),
        // Each id lasts four frames of 600 samples at the usual pace.
        node("Cast", &["tokens"], "ids", &to(FLOAT)),
        node("Mul", &["ids", "none"], "zeros", &[]),
        node("Div", &["four", "speed"], "frames", &[]),
        node("Add", &["zeros", "frames"], "/encoder/Clip_output_0", &[]),
        node("ReduceSum", &["/encoder/Clip_output_0"], "all", &[("keepdims", 0)]),
        node("Mul", &["all", "frame"], "length", &[]),
        node("Cast", &["length"], "lengths", &to(INT64)),
        node("Squeeze", &["lengths"], "samples", &[]),
        node("Range", &["begin", "samples", "step"], "places", &[]),
        node("Cast", &["places"], "times", &to(FLOAT)),
        node("Mul", &["times", "tone"], "angles", &[]),
        node("Sin", &["angles"], "wave", &[]),
        node("Mul", &["wave", "level"], "audio", &[]),
    ];
    let constants = [
        tensor("styles", &[TONES.len() * ROWS], FLOAT, &styles),
        float("none", 0.0),
        float("four", 4.0),
        float("frame", 600.0),
        float("level", 0.3),
        int("begin", 0),
        int("step", 1),
    ];
    let mut graph = Vec::new();
    nodes.iter().for_each(|node| field(&mut graph, 1, node));
    constants.iter().for_each(|constant| field(&mut graph, 5, constant));
    for (name, kind) in [("tokens", INT64), ("style_row", INT64), ("speed", FLOAT)] {
        field(&mut graph, 11, &value(name, kind));
    }
    field(&mut graph, 12, &value("audio", FLOAT));
    let (mut opset, mut metadata, mut model) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut opset, 2, 17);
    field(&mut metadata, 1, b"kokoro_voices");
    field(&mut metadata, 2, format!("{voices:?}").as_bytes());
    number(&mut model, 1, 8);
    field(&mut model, 7, &graph);
    field(&mut model, 8, &opset);
    field(&mut model, 14, &metadata);
    model
}

fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    inputs.iter().for_each(|input| field(&mut out, 1, input.as_bytes()));
    field(&mut out, 2, output.as_bytes());
    field(&mut out, 4, operator.as_bytes());
    for (name, value) in attributes {
        let mut attribute = Vec::new();
        field(&mut attribute, 1, name.as_bytes());
        number(&mut attribute, 3, *value);
        // A whole number.
        number(&mut attribute, 20, 2);
        field(&mut out, 5, &attribute);
    }
    out
}

fn tensor(name: &str, shape: &[usize], kind: u64, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    shape.iter().for_each(|size| number(&mut out, 1, *size as u64));
    number(&mut out, 2, kind);
    field(&mut out, 8, name.as_bytes());
    field(&mut out, 9, data);
    out
}

/// Returns the description of an input or output of unknown shape.
fn value(name: &str, kind: u64) -> Vec<u8> {
    let (mut tensor, mut of_type, mut out) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut tensor, 1, kind);
    field(&mut of_type, 1, &tensor);
    field(&mut out, 1, name.as_bytes());
    field(&mut out, 2, &of_type);
    out
}

/// Writes a field with a length.
fn field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field * 8 + 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a field that is a number.
fn number(out: &mut Vec<u8>, field: u64, number: u64) {
    varint(out, field * 8);
    varint(out, number);
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number % 0x80) as u8 | 0x80);
        number /= 0x80;
    }
    out.push(number as u8);
}
