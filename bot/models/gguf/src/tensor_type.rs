//! The storage types of tensors, by ggml's numbers.

/// A tensor's storage type: ggml's number, and the block layout if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType(
    /// ggml's number.
    pub u32,
);

impl TensorType {
    /// 32-bit floats.
    pub const F32: Self = Self(0);
    /// 16-bit floats.
    pub const F16: Self = Self(1);
    /// Blocks of 32 numbers of 4 bits, with a 16-bit scale and a 16-bit minimum.
    pub const Q4_1: Self = Self(3);
    /// Blocks of 32 signed bytes with one 16-bit scale.
    pub const Q8_0: Self = Self(8);

    /// Returns the elements and bytes of one block, from the structs in ggml's `ggml-common.h`. `None` for a type that
    /// this table does not know; a newer llama.cpp may read it.
    fn block(self) -> Option<(u64, u64)> {
        Some(match self.0 {
            0 | 26 => (1, 4),
            1 | 25 | 30 => (1, 2),
            2 | 20 => (32, 18),
            3 => (32, 20),
            6 => (32, 22),
            7 => (32, 24),
            8 => (32, 34),
            9 => (32, 36),
            10 => (256, 84),
            11 | 21 => (256, 110),
            12 => (256, 144),
            13 => (256, 176),
            14 => (256, 210),
            15 => (256, 292),
            16 | 35 => (256, 66),
            17 => (256, 74),
            18 => (256, 98),
            19 => (256, 50),
            22 => (256, 82),
            23 => (256, 136),
            24 => (1, 1),
            27 | 28 => (1, 8),
            29 => (256, 56),
            34 => (256, 54),
            39 => (32, 17),
            _ => return None,
        })
    }

    /// Returns the size of `elements` in bytes, or `None` for an unknown type or a size that overflows.
    pub fn byte_size(self, elements: u64) -> Option<u64> {
        let (block_elements, block_bytes) = self.block()?;
        elements.div_ceil(block_elements).checked_mul(block_bytes)
    }
}

/// Returns the usual name of a file's quantization, from `general.file_type` (llama.cpp's `llama_ftype`).
pub(crate) fn file_type_name(file_type: u64) -> Option<&'static str> {
    Some(match file_type {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4",
        _ => return None,
    })
}
