// Pictures as they are sent: not larger than what sees them takes.

/** The longest side of a picture that is sent, in pixels. */
const SIDE = 2048;

/** The kinds that are made smaller. Of a GIF, the movement would be lost. */
const KINDS = ["image/png", "image/jpeg", "image/webp"];

const written = (canvas: HTMLCanvasElement, type: string): Promise<Blob | null> =>
  new Promise((done) => canvas.toBlob(done, type, 0.9));

/** Makes a picture smaller if a side of it is too long: photos of phones are. What is no picture stays as it is. */
export async function shrunk(file: File, maxBytes: number): Promise<File> {
  if (!KINDS.includes(file.type)) return file;
  const picture = await createImageBitmap(file).catch(() => null);
  if (!picture) return file;
  const scale = SIDE / Math.max(picture.width, picture.height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  if (scale < 1) canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
  if (scale >= 1) return file;
  // A PNG keeps what is transparent, and may be too large.
  for (const type of file.type === "image/jpeg" ? ["image/jpeg"] : ["image/png", "image/jpeg"]) {
    const blob = await written(canvas, type);
    if (blob && blob.size <= maxBytes) return new File([blob], file.name, { type: blob.type });
  }
  return file;
}
