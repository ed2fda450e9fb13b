//! The clients against strict fakes. Each fake is written from the description of its server's interface: it refuses
//! fields that the real one does not have, keeps its own queue and fails on demand.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod automatic1111;
mod comfyui;
mod fake;
mod openai;
mod sidecar;
mod vision;
