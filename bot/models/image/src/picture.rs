//! Pictures from elsewhere, decoded within limits and written anew. What a file holds besides its pixels is gone.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageError, ImageFormat, ImageReader, RgbImage};
use thiserror::Error;

use crate::{gif, palette};

/// Quality of small pictures, from 1 to 100.
const THUMBNAIL_QUALITY: u8 = 80;

/// Bytes that decoding may take for each pixel: four channels of four bytes, twice.
const BYTES_PER_PIXEL: u64 = 32;

/// Bytes that decoding may take at most.
const MAX_DECODING_BYTES: u64 = 384 << 20;

/// Limits of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureLimits {
    /// The most bytes of the file.
    pub max_bytes: usize,
    /// The longest side, in pixels.
    pub max_side: u32,
    /// The most pixels.
    pub max_pixels: u64,
}

impl Default for PictureLimits {
    /// Returns limits under which decoding takes at most 256 MB.
    fn default() -> Self {
        Self { max_bytes: 16 << 20, max_side: 4_096, max_pixels: 8 << 20 }
    }
}

/// The reasons why bytes are not used as a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PictureError {
    /// The file has too many bytes or pixels.
    #[error("the picture is too large")]
    TooLarge,
    /// It is neither PNG, JPEG, WebP nor GIF.
    #[error("it is neither a PNG, a JPEG, a WebP nor a GIF picture")]
    Unsupported,
    /// The file is damaged.
    #[error("the picture is damaged")]
    Damaged,
}

impl PictureLimits {
    /// Returns the limits of pictures that people show, as cameras take them. They are decoded to be made smaller at once,
    /// which takes at most some 350 MB: to be done within [`crate::decode`] alone.
    pub fn of_photos() -> Self {
        Self { max_bytes: 20 << 20, max_side: 16_384, max_pixels: 24_000_000 }
    }
}

/// A decoded picture: pixels without any metadata.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture(RgbImage);

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}x{})", self.0.width(), self.0.height())
    }
}

impl Picture {
    /// Returns the width and height in pixels of a PNG, JPEG, WebP or GIF file as it is shown, without decoding it.
    ///
    /// # Errors
    /// [`PictureError`] for other files, damaged ones, and those beyond the limits.
    pub fn size_of(bytes: &[u8], limits: &PictureLimits) -> Result<(u32, u32), PictureError> {
        if gif::is_gif(bytes) {
            return gif::size_of(bytes, limits);
        }
        let mut decoder = decoder(bytes, limits)?;
        let (width, height) = decoder.dimensions();
        let is_turned = matches!(
            decoder.orientation(),
            Ok(Orientation::Rotate90
                | Orientation::Rotate270
                | Orientation::Rotate90FlipH
                | Orientation::Rotate270FlipH)
        );
        Ok(if is_turned { (height, width) } else { (width, height) })
    }

    /// Decodes a PNG, JPEG, WebP or GIF file; of a moving picture, the first frame. Transparent parts become white, and the
    /// picture is turned as its metadata says. The size in pixels is checked before anything is decoded.
    ///
    /// # Errors
    /// [`PictureError`] for other files, damaged ones, and those beyond the limits.
    pub fn read(bytes: &[u8], limits: &PictureLimits) -> Result<Self, PictureError> {
        if gif::is_gif(bytes) {
            return gif::first_frame(bytes, limits).map(Self);
        }
        let mut decoder = decoder(bytes, limits)?;
        // Metadata that cannot be read says nothing about the pixels.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let mut decoded = DynamicImage::from_decoder(decoder).map_err(|_| PictureError::Damaged)?;
        decoded.apply_orientation(orientation);
        Ok(opaque(decoded))
    }

    /// Creates a picture from its pixels: three bytes each, row by row. `None` if their number is wrong.
    pub fn from_rgb(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        RgbImage::from_raw(width, height, pixels).map(Self)
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> u32 {
        self.0.width()
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> u32 {
        self.0.height()
    }

    /// Returns its pixels: three bytes each, row by row.
    pub fn pixels(&self) -> &[u8] {
        self.0.as_raw()
    }

    /// Returns the picture as a PNG file with these texts in it, by keyword. Keywords that PNG does not allow are left
    /// out.
    ///
    /// # Errors
    /// [`PictureError::Damaged`] if it cannot be encoded.
    pub fn to_png(&self, texts: &[(&str, &str)]) -> Result<Vec<u8>, PictureError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.0.width(), self.0.height());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        for (keyword, text) in texts {
            let is_keyword = (1..=79).contains(&keyword.len()) && keyword.bytes().all(|byte| byte.is_ascii_graphic());
            if is_keyword {
                let added = encoder.add_itxt_chunk((*keyword).to_owned(), text.replace('\0', ""));
                added.map_err(|_| PictureError::Damaged)?;
            }
        }
        let mut writer = encoder.write_header().map_err(|_| PictureError::Damaged)?;
        writer.write_image_data(self.0.as_raw()).map_err(|_| PictureError::Damaged)?;
        writer.finish().map_err(|_| PictureError::Damaged)?;
        Ok(file)
    }

    /// Returns a copy whose longer side has at most `side` pixels.
    pub fn thumbnail(&self, side: u32) -> Self {
        let (width, height) = (self.0.width(), self.0.height());
        let longest = width.max(height).max(1);
        if longest <= side {
            return self.clone();
        }
        // Both are smaller than before, so they fit.
        let scaled = |one: u32| (u64::from(one) * u64::from(side) / u64::from(longest)).max(1) as u32;
        Self(image::imageops::resize(&self.0, scaled(width), scaled(height), FilterType::Triangle))
    }

    /// Returns the picture as a small JPEG file.
    ///
    /// # Errors
    /// [`PictureError::Damaged`] if it cannot be encoded.
    pub fn to_jpeg(&self) -> Result<Vec<u8>, PictureError> {
        let mut file = Vec::new();
        let mut encoder = JpegEncoder::new_with_quality(&mut file, THUMBNAIL_QUALITY);
        let encoded = encoder.encode(self.0.as_raw(), self.0.width(), self.0.height(), ExtendedColorType::Rgb8);
        encoded.map_err(|_| PictureError::Damaged)?;
        Ok(file)
    }

    /// Returns thumbnails of pictures beside each other, `columns` in a row, each in a square of `side` pixels.
    pub fn contact_sheet(pictures: &[Self], columns: u32, side: u32) -> Self {
        let columns = columns.max(1);
        let count = u32::try_from(pictures.len()).unwrap_or(u32::MAX).max(1);
        let (width, height) = (columns.min(count) * side, count.div_ceil(columns) * side);
        let mut sheet = RgbImage::from_pixel(width.max(1), height.max(1), image::Rgb([24, 24, 27]));
        for (number, picture) in (0_u32..).zip(pictures) {
            let small = picture.thumbnail(side);
            let margin = |one: u32| (side.saturating_sub(one)) / 2;
            let x = number % columns * side + margin(small.width());
            let y = number / columns * side + margin(small.height());
            image::imageops::replace(&mut sheet, &small.0, i64::from(x), i64::from(y));
        }
        Self(sheet)
    }
}

/// Returns the decoder of a file whose format and size are within the limits.
fn decoder<'a>(bytes: &'a [u8], limits: &PictureLimits) -> Result<impl ImageDecoder + 'a, PictureError> {
    if bytes.len() > limits.max_bytes {
        return Err(PictureError::TooLarge);
    }
    let format = match image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP)) => format,
        _ => return Err(PictureError::Unsupported),
    };
    if format == ImageFormat::Png && !palette::is_list_of_colours(bytes) {
        return Err(PictureError::Damaged);
    }
    let most = limits.max_pixels.saturating_mul(BYTES_PER_PIXEL).min(MAX_DECODING_BYTES);
    let mut decoding = image::Limits::default();
    decoding.max_image_width = Some(limits.max_side);
    decoding.max_image_height = Some(limits.max_side);
    decoding.max_alloc = Some(most);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(decoding);
    let decoder = reader.into_decoder().map_err(|error| match error {
        ImageError::Limits(_) => PictureError::TooLarge,
        _ => PictureError::Damaged,
    })?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(PictureError::Damaged);
    }
    let pixels = u64::from(width) * u64::from(height);
    if width.max(height) > limits.max_side || pixels > limits.max_pixels || decoder.total_bytes() > most {
        return Err(PictureError::TooLarge);
    }
    Ok(decoder)
}

/// Puts a picture on white.
fn opaque(picture: DynamicImage) -> Picture {
    if !picture.color().has_alpha() {
        return Picture(picture.into_rgb8());
    }
    let pixels = picture.into_rgba8();
    let blend = |channel: u8, alpha: u8| {
        let (channel, alpha) = (u32::from(channel), u32::from(alpha));
        // The sum is at most 255.
        ((channel * alpha + 255 * (255 - alpha)) / 255) as u8
    };
    let mut flat = RgbImage::new(pixels.width(), pixels.height());
    for (to, from) in flat.pixels_mut().zip(pixels.pixels()) {
        let [red, green, blue, alpha] = from.0;
        to.0 = [red, green, blue].map(|channel| blend(channel, alpha));
    }
    Picture(flat)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn picture(width: u32, height: u32) -> Picture {
        let pixels = (0..width * height).flat_map(|at| [(at % 251) as u8, (at % 7) as u8, 9]).collect();
        Picture::from_rgb(width, height, pixels).unwrap()
    }

    fn encoded(format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        DynamicImage::ImageRgb8(picture(40, 30).0).write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    /// Returns a PNG file of one pixel with a palette of so many bytes.
    fn with_palette(bytes: usize) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 1, 1);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(vec![9; bytes]);
        encoder.write_header().unwrap().write_image_data(&[0]).unwrap();
        file
    }

    #[test]
    fn a_palette_that_is_no_list_of_colours_is_damage() {
        for bytes in [3, 6, 768] {
            assert!(Picture::read(&with_palette(bytes), &PictureLimits::default()).is_ok(), "{bytes}");
        }
        for bytes in [1, 7, 769, 771, 3_000] {
            let damaged = Err(PictureError::Damaged);
            assert_eq!(Picture::read(&with_palette(bytes), &PictureLimits::default()), damaged, "{bytes}");
        }
    }

    #[test]
    fn a_picture_is_written_with_its_texts_and_read_without_them() {
        let texts = [("prompt", "a lighthouse at dusk, ölbaum"), ("seed", "7"), ("bad keyword", "x"), ("", "y")];
        let file = picture(40, 30).to_png(&texts).unwrap();
        assert!(file.windows(12).any(|part| part == b"a lighthouse"));
        let decoder = png::Decoder::new(Cursor::new(file.as_slice())).read_info().unwrap();
        let kept: Vec<String> = decoder
            .info()
            .utf8_text
            .iter()
            .map(|text| format!("{} {}", text.keyword, text.get_text().unwrap()))
            .collect();
        assert_eq!(kept, ["prompt a lighthouse at dusk, ölbaum", "seed 7"]);
        let read = Picture::read(&file, &PictureLimits::default()).unwrap();
        assert_eq!(read, picture(40, 30));
        let again = read.to_png(&[]).unwrap();
        assert!(!again.windows(12).any(|part| part == b"a lighthouse"));
    }

    #[test]
    fn the_formats_of_the_web_are_read_and_no_others() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let read = Picture::read(&encoded(format), &PictureLimits::default()).unwrap();
            assert_eq!((read.width(), read.height()), (40, 30), "{format:?}");
        }
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".as_slice();
        for other in [b"GIF89a\x01\0".as_slice(), b"GIF", b"BM", svg, b"", b"\x89PNG"] {
            assert_eq!(Picture::read(other, &PictureLimits::default()), Err(PictureError::Unsupported));
        }
        let cut = &encoded(ImageFormat::Png)[..60];
        assert_eq!(Picture::read(cut, &PictureLimits::default()), Err(PictureError::Damaged));
    }

    #[test]
    fn a_picture_beyond_the_limits_is_not_decoded() {
        let limits = PictureLimits { max_pixels: 1_000, ..PictureLimits::default() };
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            assert_eq!(Picture::read(&encoded(format), &limits), Err(PictureError::TooLarge), "{format:?}");
        }
        let limits = PictureLimits { max_bytes: 10, ..PictureLimits::default() };
        assert_eq!(Picture::read(&encoded(ImageFormat::Png), &limits), Err(PictureError::TooLarge));
        // A bomb says that it has more pixels than it has bytes.
        let mut bomb = encoded(ImageFormat::Png);
        bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let crc = crc(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(Picture::read(&bomb, &PictureLimits::default()), Err(PictureError::TooLarge));
    }

    /// CRC-32 as PNG uses it.
    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
        })
    }

    #[test]
    fn a_photo_is_turned_as_the_camera_says() {
        // A block of Exif that holds the orientation alone: a quarter to the right.
        let exif = b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let mut photo = encoded(ImageFormat::Jpeg);
        photo.splice(2..2, exif.iter().copied());
        assert_eq!(Picture::size_of(&photo, &PictureLimits::default()), Ok((30, 40)));
        let read = Picture::read(&photo, &PictureLimits::default()).unwrap();
        assert_eq!((read.width(), read.height()), (30, 40));
    }

    #[test]
    fn transparent_parts_become_white() {
        let mut file = Cursor::new(Vec::new());
        let clear = image::RgbaImage::from_pixel(2, 2, image::Rgba([10, 20, 30, 0]));
        DynamicImage::ImageRgba8(clear).write_to(&mut file, ImageFormat::Png).unwrap();
        let read = Picture::read(&file.into_inner(), &PictureLimits::default()).unwrap();
        assert!(read.0.pixels().all(|pixel| pixel.0 == [255; 3]));
    }

    #[test]
    fn a_contact_sheet_has_a_square_for_each_picture() {
        let sheet = Picture::contact_sheet(&[picture(40, 30), picture(10, 90), picture(5, 5)], 2, 64);
        assert_eq!((sheet.width(), sheet.height()), (128, 128));
        assert_eq!((picture(400, 100).thumbnail(64).width(), picture(400, 100).thumbnail(64).height()), (64, 16));
        assert!(sheet.to_jpeg().unwrap().starts_with(&[0xff, 0xd8]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read_within_the_limits(
            kind in 0_usize..3,
            at in 0_usize..2_000,
            byte in any::<u8>(),
            cut in 0_usize..2_000,
        ) {
            let format = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP][kind];
            let mut bytes = encoded(format);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len().saturating_sub(cut % 200));
            let limits = PictureLimits::default();
            if let Ok(read) = Picture::read(&bytes, &limits) {
                prop_assert!(u64::from(read.width()) * u64::from(read.height()) <= limits.max_pixels);
            }
        }
    }
}
