//! Prepares a Kokoro model for rten, which runs neither two operators of its file nor knows its voices.
//!
//! ONNX Runtime's `FusedMatMul` becomes a transposition and a product. `STFT` becomes a convolution with the waves of its
//! Fourier transform. The voices become a table in the model. So its input `style` is replaced by `style_row`, the row of
//! that table. All else stays as it is. The same input gives the same bytes on every machine.

use std::fs;
use std::path::Path;

use crate::{
    error::{Error, IoContext},
    onnx::{self, GRAPH},
    protobuf::{Field, fields, write_number, write_with_length},
};

/// The metadata key under which a model keeps the names of its voices, as a JSON list.
const VOICES: &str = "kokoro_voices";
/// Rows of a voice: one for each number of phonemes in a piece of speech.
const ROWS: usize = 510;
/// Numbers in a row.
const WIDTH: usize = 256;
/// Bytes of a voice's file: 32-bit floats.
pub(crate) const VOICE_BYTES: u64 = (ROWS * WIDTH * 4) as u64;
/// Samples of a frame of the Fourier transform.
const FRAME: usize = 20;
/// Waves of the transform: from 0 to half the sampling rate.
const WAVES: usize = FRAME / 2 + 1;
/// The cosines of 0, 18, 36, 54, 72 and 90 degrees. Library functions differ between machines.
const COSINES: [f32; 6] = [1.0, 0.951_056_54, 0.809_017, 0.587_785_24, 0.309_017, 0.0];

/// Fields of `GraphProto`.
const NODE: u64 = 1;
const INITIALIZER: u64 = 5;
const INPUT: u64 = 11;
/// Fields of `TensorProto`, and its data types.
const DIMENSION: u64 = 1;
const DATA_TYPE: u64 = 2;
const TENSOR_NAME: u64 = 8;
const RAW_DATA: u64 = 9;
const FLOAT: u64 = 1;
const INT64: u64 = 7;

/// Returns the name of a voice's file.
pub(crate) fn voice_file(voice: &str) -> String {
    format!("{voice}.bin")
}

/// Prepares the model, with voices whose files are in `folder`, and deletes the files.
pub(crate) fn convert(model: &Path, voices: &[String], folder: &Path, output: &Path) -> Result<(), Error> {
    onnx::inspect(model)?;
    let mut styles = Vec::new();
    for voice in voices {
        let path = folder.join(voice_file(voice));
        let length = fs::metadata(&path).at(&path)?.len();
        if length != VOICE_BYTES {
            return Err(Error::WrongSize { what: format!("the voice {voice}"), expected: VOICE_BYTES, actual: length });
        }
        styles.extend(fs::read(&path).at(&path)?);
    }
    let file = fs::read(model).at(model)?;
    fs::remove_file(model).at(model)?;
    let prepared = prepared(&file, voices, &styles).map_err(|reason| Error::Kokoro { reason })?;
    fs::write(output, prepared).at(output)?;
    fs::remove_dir_all(folder).at(folder)
}

/// Returns the prepared model. The error says what is wrong with it.
fn prepared(file: &[u8], voices: &[String], styles: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(file.len() + styles.len() + (1 << 16));
    for field in fields(file).ok_or("it is cut off")? {
        if field.number == GRAPH {
            write_with_length(&mut out, GRAPH, &graph(field.bytes, voices.len(), styles)?);
        } else {
            out.extend_from_slice(field.whole);
        }
    }
    let names = serde_json::to_string(voices).map_err(|error| error.to_string())?;
    out.extend(onnx::metadata_field(VOICES, &names));
    Ok(out)
}

/// Returns the graph with other nodes, the voices, and the input `style_row`.
fn graph(graph: &[u8], voices: usize, styles: &[u8]) -> Result<Vec<u8>, String> {
    let parts = fields(graph).ok_or("its graph is cut off")?;
    let mut out = Vec::with_capacity(graph.len() + styles.len() + (1 << 16));
    let mut has_style = false;
    // A node stands behind those that make its inputs.
    write_with_length(&mut out, NODE, &node("Gather", &["azera/styles", "style_row"], "style", &[]));
    write_with_length(&mut out, INITIALIZER, &tensor("azera/styles", &[voices * ROWS, WIDTH], FLOAT, styles));
    for part in &parts {
        match part.number {
            NODE => add_node(&mut out, part, &parts)?,
            INPUT if name_of(part.bytes, 1) == "style" => {
                has_style = true;
                write_with_length(&mut out, INPUT, &row_input());
            }
            _ => out.extend_from_slice(part.whole),
        }
    }
    if has_style { Ok(out) } else { Err("it has no input `style`".to_owned()) }
}

/// Adds a node, or those that take its place.
fn add_node(out: &mut Vec<u8>, part: &Field<'_>, graph: &[Field<'_>]) -> Result<(), String> {
    let node = Node::read(part.bytes).ok_or("a node is cut off")?;
    match node.operator {
        "FusedMatMul" => fused_product(out, &node),
        "STFT" => transform(out, &node, graph),
        _ => {
            out.extend_from_slice(part.whole);
            Ok(())
        }
    }
}

/// What is needed of a `NodeProto`.
struct Node<'a> {
    operator: &'a str,
    inputs: Vec<&'a str>,
    output: &'a str,
    /// Attributes that are numbers.
    numbers: Vec<(&'a str, f32)>,
}

impl<'a> Node<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut node = Self { operator: "", inputs: Vec::new(), output: "", numbers: Vec::new() };
        for field in fields(bytes)? {
            match field.number {
                1 => node.inputs.push(field.text()),
                2 => node.output = field.text(),
                4 => node.operator = field.text(),
                5 => {
                    let name = name_of(field.bytes, 1);
                    let float = |field: &Field<'_>| field.bytes.try_into().map_or(0.0, f32::from_le_bytes);
                    let number = fields(field.bytes)?.iter().find_map(|field| match field.number {
                        2 => Some(float(field)),
                        3 => Some(field.value as f32),
                        _ => None,
                    });
                    node.numbers.extend(number.map(|number| (name, number)));
                }
                _ => {}
            }
        }
        Some(node)
    }
}

/// Writes a product whose first factor may be transposed.
fn fused_product(out: &mut Vec<u8>, fused: &Node<'_>) -> Result<(), String> {
    let [first, second] = fused.inputs.as_slice() else { return Err("a product without two factors".to_owned()) };
    let turned = format!("{}/turned", fused.output);
    let mut first = *first;
    for (name, number) in &fused.numbers {
        match (*name, *number) {
            ("alpha", 1.0) | ("transA" | "transB" | "transBatchA" | "transBatchB", 0.0) => {}
            ("transA", 1.0) => {
                write_with_length(out, NODE, &node("Transpose", &[first], &turned, &[("perm", &[0, 2, 1])]));
                first = &turned;
            }
            (name, number) => return Err(format!("a product with {name} = {number}")),
        }
    }
    write_with_length(out, NODE, &node("MatMul", &[first, second], fused.output, &[]));
    Ok(())
}

/// Writes a Fourier transform of overlapping frames as a convolution. Each wave has a real and an imaginary part.
fn transform(out: &mut Vec<u8>, stft: &Node<'_>, graph: &[Field<'_>]) -> Result<(), String> {
    let [signal, step, window, length] = stft.inputs.as_slice() else {
        return Err("a Fourier transform without four inputs".to_owned());
    };
    let constant = |name: &str| constant(graph, name).ok_or_else(|| format!("the constant {name} is missing"));
    let number = |name| constant(name).map(|bytes| bytes.try_into().map_or(0, i64::from_le_bytes));
    let (step, length) = (number(step)?, number(length)?);
    let window: Vec<f32> = constant(window)?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let is_onesided = stft.numbers.as_slice() == [("onesided", 1.0)];
    if !is_onesided || length != FRAME as i64 || window.len() != FRAME || step < 1 {
        return Err(format!("a Fourier transform of {length} samples with a window of {}", window.len()));
    }
    let shape = |sizes: &[i64]| sizes.iter().flat_map(|size| size.to_le_bytes()).collect::<Vec<u8>>();
    let waves: Vec<u8> = waves(&window).into_iter().flat_map(f32::to_le_bytes).collect();
    for constant in [
        tensor("azera/waves", &[2 * WAVES, 1, FRAME], FLOAT, &waves),
        tensor("azera/signal_shape", &[3], INT64, &shape(&[1, 1, -1])),
        tensor("azera/frames_shape", &[4], INT64, &shape(&[1, -1, WAVES as i64, 2])),
    ] {
        write_with_length(out, INITIALIZER, &constant);
    }
    // rten takes the number of dimensions from the kernel.
    let convolution = [("kernel_shape", &[FRAME as i64][..]), ("strides", &[step])];
    for node in [
        node("Reshape", &[signal, "azera/signal_shape"], "azera/signal", &[]),
        node("Conv", &["azera/signal", "azera/waves"], "azera/spectrum", &convolution),
        node("Transpose", &["azera/spectrum"], "azera/frames", &[("perm", &[0, 2, 1])]),
        node("Reshape", &["azera/frames", "azera/frames_shape"], stft.output, &[]),
    ] {
        write_with_length(out, NODE, &node);
    }
    Ok(())
}

/// Returns the waves of the transform, each as its real and its imaginary part over a frame with this window.
fn waves(window: &[f32]) -> Vec<f32> {
    let parts = (0..WAVES).flat_map(|wave| [(wave, 0), (wave, FRAME / 4)]);
    // The imaginary part is the negative sine, which is the cosine a quarter of a turn later.
    parts
        .flat_map(|(wave, turn)| window.iter().enumerate().map(move |(n, size)| size * cosine(wave * n + turn)))
        .collect()
}

/// Returns the cosine of so many twentieths of a turn.
fn cosine(twentieths: usize) -> f32 {
    let place = twentieths % FRAME;
    let place = place.min(FRAME - place);
    let half = FRAME / 2;
    let found = if place <= half / 2 { COSINES.get(place) } else { COSINES.get(half - place) };
    found.map_or(0.0, |cosine| if place <= half / 2 { *cosine } else { -cosine })
}

/// Returns the bytes of a constant of the graph.
fn constant<'a>(graph: &[Field<'a>], name: &str) -> Option<&'a [u8]> {
    let tensors = graph.iter().filter(|field| field.number == INITIALIZER);
    let found = tensors.map(|tensor| tensor.bytes).find(|tensor| name_of(tensor, TENSOR_NAME) == name)?;
    fields(found)?.iter().find(|field| field.number == RAW_DATA).map(|field| field.bytes)
}

/// Returns the name of a message, which is the text of this field.
fn name_of(message: &[u8], number: u64) -> &str {
    let name = fields(message).and_then(|fields| fields.into_iter().find(|field| field.number == number));
    name.map_or("", |field| field.text())
}

/// Returns a `NodeProto` with attributes that are lists of numbers.
fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, &[i64])]) -> Vec<u8> {
    /// `AttributeProto.type` of a list of numbers.
    const INTS: u64 = 7;
    let mut out = Vec::new();
    inputs.iter().for_each(|input| write_with_length(&mut out, 1, input.as_bytes()));
    write_with_length(&mut out, 2, output.as_bytes());
    write_with_length(&mut out, 4, operator.as_bytes());
    for (name, numbers) in attributes {
        let mut attribute = Vec::new();
        write_with_length(&mut attribute, 1, name.as_bytes());
        numbers.iter().for_each(|number| write_number(&mut attribute, 8, number.cast_unsigned()));
        write_number(&mut attribute, 20, INTS);
        write_with_length(&mut out, 5, &attribute);
    }
    out
}

/// Returns a `TensorProto`.
fn tensor(name: &str, shape: &[usize], data_type: u64, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 64);
    shape.iter().for_each(|size| write_number(&mut out, DIMENSION, *size as u64));
    write_number(&mut out, DATA_TYPE, data_type);
    write_with_length(&mut out, TENSOR_NAME, name.as_bytes());
    write_with_length(&mut out, RAW_DATA, data);
    out
}

/// Returns the `ValueInfoProto` of the input `style_row`: one number.
fn row_input() -> Vec<u8> {
    let message = |field: u64, bytes: &[u8]| {
        let mut out = Vec::new();
        write_with_length(&mut out, field, bytes);
        out
    };
    let (mut size, mut kind) = (Vec::new(), Vec::new());
    write_number(&mut size, 1, 1);
    write_number(&mut kind, 1, INT64);
    // A shape is a list of dimensions.
    write_with_length(&mut kind, 2, &message(1, &size));
    let mut input = message(1, b"style_row");
    write_with_length(&mut input, 2, &message(1, &kind));
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waves_are_those_of_a_fourier_transform() {
        let window: Vec<f32> = (0..FRAME).map(|n| 1.0 + n as f32 / 8.0).collect();
        let found = waves(&window);
        assert_eq!(found.len(), 2 * WAVES * FRAME);
        for wave in 0..WAVES {
            for (n, size) in window.iter().enumerate() {
                let angle = std::f32::consts::TAU * (wave * n) as f32 / FRAME as f32;
                let at = |part: usize| found[(2 * wave + part) * FRAME + n];
                assert!((at(0) - size * angle.cos()).abs() < 1e-4, "{wave} {n}");
                assert!((at(1) + size * angle.sin()).abs() < 1e-4, "{wave} {n}");
            }
        }
    }

    /// Returns a node with attributes that are whole numbers.
    fn with_numbers(operator: &str, inputs: &[&str], output: &str, numbers: &[(&str, u64)]) -> Vec<u8> {
        let mut out = node(operator, inputs, output, &[]);
        for (name, number) in numbers {
            let mut attribute = Vec::new();
            write_with_length(&mut attribute, 1, name.as_bytes());
            write_number(&mut attribute, 3, *number);
            write_with_length(&mut out, 5, &attribute);
        }
        out
    }

    /// Returns a model with these nodes, the constants of a transform, and an input.
    fn model(nodes: &[Vec<u8>], input: &str) -> Vec<u8> {
        let window: Vec<u8> = [0.5_f32; FRAME].into_iter().flat_map(f32::to_le_bytes).collect();
        let (mut graph, mut named, mut file) = (Vec::new(), Vec::new(), Vec::new());
        nodes.iter().for_each(|node| write_with_length(&mut graph, NODE, node));
        for constant in [
            tensor("step", &[], INT64, &5_i64.to_le_bytes()),
            tensor("window", &[FRAME], FLOAT, &window),
            tensor("length", &[], INT64, &(FRAME as i64).to_le_bytes()),
        ] {
            write_with_length(&mut graph, INITIALIZER, &constant);
        }
        write_with_length(&mut named, 1, input.as_bytes());
        write_with_length(&mut graph, INPUT, &named);
        write_number(&mut file, 1, 8);
        write_with_length(&mut file, GRAPH, &graph);
        file
    }

    fn nodes() -> Vec<Vec<u8>> {
        vec![
            node("Sin", &["style"], "a", &[]),
            with_numbers("FusedMatMul", &["a", "b"], "c", &[("transA", 1), ("transB", 0)]),
            with_numbers("STFT", &["c", "step", "window", "length"], "audio", &[("onesided", 1)]),
        ]
    }

    #[test]
    fn a_model_gets_its_voices_and_nodes_that_rten_runs() {
        let names = ["a", "b"].map(str::to_owned);
        let styles: Vec<u8> = (0..2 * VOICE_BYTES).map(|n| n as u8).collect();
        let file = prepared(&model(&nodes(), "style"), &names, &styles).unwrap();
        let parts = fields(&file).unwrap();
        assert!(parts.iter().any(|part| part.whole == onnx::metadata_field(VOICES, "[\"a\",\"b\"]")));
        let graph = fields(parts.iter().find(|part| part.number == GRAPH).unwrap().bytes).unwrap();
        let nodes = graph.iter().filter(|part| part.number == NODE).map(|part| Node::read(part.bytes).unwrap());
        let told: Vec<_> =
            nodes.map(|node| format!("{} {} -> {}", node.operator, node.inputs.join(" "), node.output)).collect();
        assert_eq!(
            told,
            [
                "Gather azera/styles style_row -> style",
                "Sin style -> a",
                "Transpose a -> c/turned",
                "MatMul c/turned b -> c",
                "Reshape c azera/signal_shape -> azera/signal",
                "Conv azera/signal azera/waves -> azera/spectrum",
                "Transpose azera/spectrum -> azera/frames",
                "Reshape azera/frames azera/frames_shape -> audio",
            ]
        );
        let inputs = graph.iter().filter(|part| part.number == INPUT).map(|part| name_of(part.bytes, 1));
        assert_eq!(inputs.collect::<Vec<_>>(), ["style_row"]);
        assert_eq!(constant(&graph, "azera/styles").unwrap(), styles);
        assert_eq!(constant(&graph, "azera/waves").unwrap().len(), 2 * WAVES * FRAME * 4);
    }

    #[test]
    fn what_is_no_kokoro_model_is_refused() {
        let reason = |nodes: &[Vec<u8>], input| prepared(&model(nodes, input), &[], &[]).unwrap_err();
        assert!(reason(&nodes(), "text").contains("no input `style`"));
        let changed = |changed: Vec<u8>| reason(&[changed], "style");
        assert!(changed(with_numbers("FusedMatMul", &["a", "b"], "c", &[("transB", 1)])).contains("transB = 1"));
        assert!(changed(with_numbers("FusedMatMul", &["a"], "c", &[])).contains("two factors"));
        let stft = |inputs: &[&str], onesided| changed(with_numbers("STFT", inputs, "c", &[("onesided", onesided)]));
        assert!(stft(&["c", "step", "none", "length"], 1).contains("constant none is missing"));
        assert!(stft(&["c", "step", "window", "step"], 1).contains("of 5 samples"));
        assert!(stft(&["c", "step", "window", "length"], 0).contains("Fourier"));
        let whole = model(&nodes(), "style");
        assert!(prepared(&whole[..whole.len() - 1], &[], &[]).unwrap_err().contains("cut off"));
    }

    #[test]
    fn a_voice_of_another_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [file, voices, output] = ["m.onnx", "voices", "model"].map(|name| folder.path().join(name));
        fs::create_dir(&voices).unwrap();
        fs::write(&file, model(&nodes(), "style")).unwrap();
        fs::write(voices.join("a.bin"), vec![0; 100]).unwrap();
        let names = ["a".to_owned()];
        let error = convert(&file, &names, &voices, &output).unwrap_err().to_string();
        assert!(error.contains("the voice a has 100 bytes"), "{error}");
        fs::write(voices.join("a.bin"), vec![0; VOICE_BYTES as usize]).unwrap();
        convert(&file, &names, &voices, &output).unwrap();
        onnx::inspect(&output).unwrap();
        assert!(!file.exists() && !voices.exists());
    }
}
