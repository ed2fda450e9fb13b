//! Tests that the operations for a GPU compute the same as the processor's.

use super::{base, examples, keeping, of_rank, perturbed, questions, taught};
use crate::device::FORCE_DEVICE_PATH;
use crate::lora::Lora;

/// Returns the largest difference between two LoRAs' numbers, as a share of the largest number.
fn apart(one: &Lora, other: &Lora) -> f32 {
    let pairs = one.matrices().zip(other.matrices());
    let shares = pairs.map(|(one, other)| {
        assert!(one.values.iter().chain(&other.values).all(|value| value.is_finite()));
        let largest = one.values.iter().fold(0.0_f32, |largest, it| largest.max(it.abs()));
        assert!(largest > 0.0);
        let differences = one.values.iter().zip(&other.values).map(|(one, other)| (one - other).abs());
        differences.fold(0.0, f32::max) / largest
    });
    shares.fold(0.0, f32::max)
}

#[test]
fn device_operations_match_those_of_the_processor() {
    for (architecture, others) in [("llama", 0), ("qwen2", 0), ("qwen3", 0), ("llama", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let (_, base) = base(&folder, architecture);
        let lora = perturbed(&base);
        let others: Vec<Lora> = (0..others).map(|index| of_rank(&base, 3, 20 + index)).collect();
        for examples in [examples(6), keeping(6), questions()] {
            let (loss, grads) = taught(&base, &lora, &others, &examples, 1000);
            FORCE_DEVICE_PATH.set(true);
            let (on_device_path, grads_on_device_path) = taught(&base, &lora, &others, &examples, 1000);
            FORCE_DEVICE_PATH.set(false);
            assert!(
                (loss - on_device_path).abs() < 1e-5 * loss,
                "{architecture}: a loss of {loss} and {on_device_path}"
            );
            let apart = apart(&grads, &grads_on_device_path);
            assert!(apart < 1e-4, "{architecture}: gradients {apart} apart");
        }
    }
}

/// Runs only in a build for GPUs, and on one.
#[cfg(feature = "cuda")]
#[test]
fn a_gpu_computes_what_the_processor_does() {
    for (architecture, others) in [("llama", 0), ("qwen2", 0), ("qwen3", 0), ("llama", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let (path, base) = base(&folder, architecture);
        let others: Vec<Lora> = (0..others).map(|index| of_rank(&base, 3, 20 + index)).collect();
        let there = crate::BaseModel::open_at(&path, &crate::ComputeDevice::best().expect("a GPU")).unwrap();
        let lora = perturbed(&base);
        for examples in [examples(6), keeping(6), questions()] {
            let (loss, grads) = taught(&base, &lora, &others, &examples, 1000);
            // With all bits, only the order of sums differs; with TF32, numbers are rounded to eleven bits.
            for (rounds, of_loss, of_grads) in [(false, 1e-4, 1e-3), (true, 2e-3, 2e-2)] {
                candle_core::cuda::set_gemm_reduced_precision_f32(rounds);
                let (loss_there, grads_there) = taught(&there, &lora, &others, &examples, 1000);
                let apart = apart(&grads, &grads_there);
                println!("{architecture}, rounding {rounds}: losses {loss} and {loss_there}, gradients {apart} apart");
                assert!(
                    (loss - loss_there).abs() < of_loss * loss,
                    "{architecture}: a loss of {loss} and {loss_there}"
                );
                assert!(apart < of_grads, "{architecture}: gradients {apart} apart");
            }
        }
    }
}
