//! Converts Q4_1 to Q8_0. llama.cpp multiplies Q8_0 by many vectors at once, and Q4_1 by one at a time. So a Q8_0 model
//! reads prompts twice as fast on a processor, and serves several chats for little more than the cost of one. The
//! weights keep their values except for rounding to 1/127 of the largest in each block.

use half::f16;

use crate::{ALIGNMENT, GgufError, Layout, TensorAt, TensorType, align, quantize_q8_0};

/// The weights in a block.
const BLOCK: usize = 32;

/// The bytes of a Q4_1 block: scale and minimum as 16-bit floats, then 32 numbers of 4 bits. The low halves of the
/// bytes hold the first half of the block.
const BLOCK_BYTES: usize = 20;

/// The value of `general.file_type` for a file that is mostly Q8_0.
const FILE_TYPE_Q8_0: u32 = 7;

/// Returns the same file with its Q4_1 tensors as Q8_0. The other content stays the same, byte for byte.
pub fn q4_1_to_q8_0(file: &[u8]) -> Result<Vec<u8>, GgufError> {
    let layout = Layout::read(file)?;
    let cut = |from: usize, length: usize| {
        from.checked_add(length).and_then(|end| file.get(from..end)).ok_or(GgufError::Truncated)
    };
    let place = |number: u64| usize::try_from(number).map_err(|_| GgufError::Invalid("tensor offset"));
    let mut header = cut(0, place(layout.tensors_at)?)?.to_vec();
    if let Some(at) = layout.file_type_at {
        let at = place(at)?;
        header.get_mut(at..at + 4).ok_or(GgufError::Truncated)?.copy_from_slice(&FILE_TYPE_Q8_0.to_le_bytes());
    }
    let mut data = Vec::with_capacity(file.len() * 2);
    for tensor in &layout.tensors {
        let TensorAt { name, dimensions, tensor_type, offset } = tensor;
        let bytes = tensor.byte_size();
        let bytes = cut(place(layout.data_at + offset)?, place(bytes.ok_or(GgufError::Invalid("tensor type"))?)?)?;
        header.extend_from_slice(&(name.len() as u64).to_le_bytes());
        header.extend_from_slice(name);
        header.extend_from_slice(&(dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|count| header.extend_from_slice(&count.to_le_bytes()));
        let widened = (*tensor_type == TensorType::Q4_1).then(|| quantize_q8_0(&weights(bytes)));
        let stored = if widened.is_some() { TensorType::Q8_0 } else { *tensor_type };
        header.extend_from_slice(&stored.0.to_le_bytes());
        header.extend_from_slice(&(data.len() as u64).to_le_bytes());
        data.extend_from_slice(widened.as_deref().unwrap_or(bytes));
        pad(&mut data);
    }
    pad(&mut header);
    header.append(&mut data);
    Ok(header)
}

/// Returns the weights of Q4_1 blocks.
fn weights(bytes: &[u8]) -> Vec<f32> {
    let mut weights = Vec::with_capacity(bytes.len() / BLOCK_BYTES * BLOCK);
    for block in bytes.chunks_exact(BLOCK_BYTES) {
        let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        let (scale, minimum) = (half(0), half(2));
        let weight = |number: u8| f32::from(number) * scale + minimum;
        weights.extend(block[4..].iter().map(|byte| weight(byte & 0x0f)));
        weights.extend(block[4..].iter().map(|byte| weight(byte >> 4)));
    }
    weights
}

fn pad(bytes: &mut Vec<u8>) {
    let padded = align(bytes.len() as u64, ALIGNMENT).and_then(|end| usize::try_from(end).ok());
    bytes.resize(padded.unwrap_or(bytes.len()), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GgufFile, GgufHeader, Tensor, Value};

    #[test]
    fn widened_weights_keep_their_values() {
        let block = [f16::from_f32(0.25).to_le_bytes(), f16::from_f32(-1.5).to_le_bytes()].concat();
        let numbers: Vec<u8> = (0..16).map(|number| number | (15 - number) << 4).collect();
        let mut file = GgufFile::default();
        file.set("general.architecture", Value::String("llama".into()));
        file.set("general.file_type", Value::U32(3));
        file.tensors.push(Tensor {
            name: "kept".into(),
            dimensions: vec![1],
            tensor_type: TensorType::F32,
            data: 0.5_f32.to_le_bytes().to_vec(),
        });
        file.tensors.push(Tensor {
            name: "widened".into(),
            dimensions: vec![32],
            tensor_type: TensorType::Q4_1,
            data: [block, numbers].concat(),
        });
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        let wide = q4_1_to_q8_0(&bytes).unwrap();
        assert_eq!(GgufHeader::read(wide.as_slice()).unwrap().quantization, Some("Q8_0"));
        let layout = Layout::read(wide.as_slice()).unwrap();
        let stored: Vec<_> = layout.tensors.iter().map(|tensor| (tensor.tensor_type, tensor.offset)).collect();
        assert_eq!(stored, [(TensorType::F32, 0), (TensorType::Q8_0, 32)]);
        let at = usize::try_from(layout.data_at).unwrap();
        assert_eq!(wide[at..at + 4], 0.5_f32.to_le_bytes());
        let scale = f16::from_le_bytes([wide[at + 32], wide[at + 33]]).to_f32();
        for (number, byte) in wide[at + 34..at + 66].iter().enumerate() {
            let said = if number < 16 { number } else { 31 - number };
            let (was, is) = (said as f32 * 0.25 - 1.5, f32::from(byte.cast_signed()) * scale);
            assert!((was - is).abs() <= 2.25 / 127.0, "weight {number} was {was} and is {is}");
        }
        assert!(matches!(q4_1_to_q8_0(&bytes[..bytes.len() - 30]), Err(GgufError::Truncated)));
    }
}
