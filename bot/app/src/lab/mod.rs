//! The laboratory: evaluations, benchmarks and replays of the product. It calls the product through the same interfaces
//! as everybody else. The product does not use it, except that `azera tour` plays its days with [`replay`].
//!
//! Begin with [`eval`] for how well something works, and with [`bench`] for how fast.

pub mod bench;
pub mod eval;
pub mod measure;
pub mod replay;
