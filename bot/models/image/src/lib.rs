//! The contracts of models that draw pictures ([`ImageModel`]) and of models that see them ([`Viewer`]), and pictures
//! read and written within limits ([`Picture`]).
//!
//! This crate holds no model: `azera-model-image-servers` has the clients of servers. Nothing here knows memory,
//! platforms or personas. Start with [`ImageModel`] and [`ImageRequest`].
//!
//! Invariants:
//! - `Debug` of a type that holds a prompt or a picture shows sizes, never content.
//! - No picture is decoded before its format and its size in pixels are known to be within the limits.
//! - What decodes pictures of others does it through [`decode`], which bounds the memory of all of it together.

mod decoding;
mod error;
mod gif;
mod model;
mod palette;
mod picture;
mod request;
mod viewer;

pub use decoding::decode;
pub use error::{ImageError, Outage};
pub use model::{DrawnImage, ImageModel, ImageOffer, ImageProgress, ProgressSender};
pub use picture::{Picture, PictureError, PictureLimits};
pub use request::{
    ImageLimits, ImageRequest, ImageSize, MAX_PROMPT_CHARS, MIN_SIDE, Reference, UPSCALE_FACTOR, UpscaleRequest,
};
pub use viewer::{MAX_DESCRIPTION_CHARS, SeeError, Verdict, Viewer};
