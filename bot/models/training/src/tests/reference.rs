//! Tests that the trainer's gradients equal PEFT's, with files that `bot/scripts/reference-gradients.py` made.

use std::path::PathBuf;

use super::taught;
use crate::checkpoint::TensorFile;
use crate::lora::Lora;
use crate::{BaseModel, TokenizedExample};

fn file(name: String) -> PathBuf {
    // Tests run in the folder of their package. A path from the build could have moved.
    PathBuf::from("fixtures").join(name)
}

#[test]
fn gradients_agree_with_those_of_peft() {
    for architecture in ["llama", "qwen2", "qwen3"] {
        let base = BaseModel::open(&file(format!("{architecture}.gguf"))).unwrap();
        let lora = Lora::read(&file(format!("{architecture}-adapter.gguf")), &base).unwrap();
        let path = file(format!("{architecture}-gradients.gguf"));
        let theirs = Lora::read(&path, &base).unwrap();
        let notes = TensorFile::open(&path).unwrap().layout.texts;
        let tokens = notes["tokens"].split(' ').map(|token| token.parse().unwrap()).collect();
        let example = TokenizedExample::from_token(notes["first_learnt"].parse().unwrap(), tokens);
        let (loss, ours) = taught(&base, &lora, &[], &[example], 1000);
        let of_theirs: f64 = notes["loss"].parse().unwrap();
        assert!((loss - of_theirs).abs() < 1e-4 * of_theirs, "{architecture}: {loss} here, {of_theirs} there");
        for ((name, ours), theirs) in ours.names().zip(ours.matrices()).zip(theirs.matrices()) {
            let largest = theirs.values.iter().fold(0.0_f32, |largest, it| largest.max(it.abs()));
            assert!(largest > 1e-3, "{architecture}: {name} is taught nothing there");
            for (ours, theirs) in ours.values.iter().zip(&theirs.values) {
                let apart = (ours - theirs).abs() / largest;
                assert!(apart < 1e-3, "{architecture}, {name}: {ours} here, {theirs} there");
            }
        }
    }
}
