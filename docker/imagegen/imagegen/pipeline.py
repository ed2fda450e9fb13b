"""The model: one diffusers pipeline in memory, from text or from a picture."""

import base64
import gc
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from diffusers import (
    AutoPipelineForImage2Image,
    AutoPipelineForText2Image,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    StableDiffusionPipeline,
    StableDiffusionXLPipeline,
)
from huggingface_hub import constants
from PIL import Image, ImageChops

from .settings import Settings

SAMPLERS = {
    "euler": EulerDiscreteScheduler,
    "euler_a": EulerAncestralDiscreteScheduler,
    "dpmpp_2m": DPMSolverMultistepScheduler,
}

# The share of red, green and blue in each channel of a latent, for a rough preview without the decoder. Latents of Stable
# Diffusion XL mean other colours than those before.
LATENT_RGB = torch.tensor(
    [[0.3512, 0.2297, 0.3227], [0.3250, 0.4974, 0.2350], [-0.2829, 0.1762, 0.2721], [-0.2120, -0.2616, -0.7177]]
)
XL_LATENT_RGB = torch.tensor(
    [[0.3920, 0.4054, 0.4549], [-0.2634, -0.0196, 0.0653], [0.0568, 0.1687, -0.0755], [-0.3112, -0.2359, -0.2076]]
)

# The largest header of a safetensors file, as its format has it.
MAX_HEADER_BYTES = 100_000_000

# How many times longer the sides of an enlarged picture are.
UPSCALE_FACTOR = 2

# The longest side of a tile of an enlarged picture, and how far tiles overlap, in pixels.
TILE, OVERLAP = 1024, 128


class Cancelled(Exception):
    """Somebody cancelled the picture."""


class Flagged(Exception):
    """The safety check withheld the picture."""


@dataclass(frozen=True)
class Request:
    """What to draw, within the limits already."""

    prompt: str
    negative_prompt: str
    width: int
    height: int
    steps: int
    seed: int
    guidance: float
    sampler: str | None
    model: str
    image: bytes | None
    strength: float
    # True to draw `image` larger: `width` and `height` are the size to reach.
    enlarges: bool = False


def is_single_file(source: str) -> bool:
    """True for a checkpoint in one safetensors file."""
    return source.endswith(".safetensors")


def pipeline_of(source: str) -> type:
    """Returns the kind of pipeline that a checkpoint in one file needs. The names of its tensors say it, not its own."""
    with open(source, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"{os.path.basename(source)} is no safetensors file")
        names = json.loads(file.read(length)).keys()
    if any(name.startswith("conditioner.embedders.") for name in names):
        return StableDiffusionXLPipeline
    if any(name.startswith("cond_stage_model.") for name in names):
        return StableDiffusionPipeline
    raise ValueError(f"{os.path.basename(source)} is no whole checkpoint of Stable Diffusion 1, 2 or XL")


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def tiles(width: int, height: int, side: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Returns boxes of at most `side` pixels that cover a picture and overlap their neighbours."""

    def begins(length: int) -> list[int]:
        if length <= side:
            return [0]
        count = -(-(length - overlap) // (side - overlap))
        # The last one ends at the edge. All begin at multiples of 8, as models want it.
        return [min((length - side) * number // (count - 1) // 8 * 8, length - side) for number in range(count)]

    across, down = min(width, side), min(height, side)
    return [(x, y, x + across, y + down) for y in begins(height) for x in begins(width)]


def seam(size: tuple[int, int], left: bool, above: bool, overlap: int) -> Image.Image:
    """Returns a mask that fades a tile in where it overlaps the tiles before it."""
    mask = Image.new("L", size, 255)
    ramp = Image.linear_gradient("L")
    if left:
        fade = ramp.rotate(90).resize((overlap, size[1]))
        mask.paste(fade, (0, 0))
    if above:
        fade = ramp.resize((size[0], overlap))
        mask.paste(ImageChops.darker(mask.crop((0, 0, size[0], overlap)), fade), (0, 0))
    return mask


def preview(latents: torch.Tensor, side: int, is_xl: bool) -> bytes | None:
    """Returns a small JPEG of unfinished latents; None if they have another number of channels than most models."""
    if side == 0 or latents.shape[1] != LATENT_RGB.shape[0]:
        return None
    colours = XL_LATENT_RGB if is_xl else LATENT_RGB
    pixels = torch.einsum("chw,cr->hwr", latents[0].detach().float().cpu(), colours)
    pixels = ((pixels + 1) / 2).clamp(0, 1).mul(255).to(torch.uint8)
    image = Image.fromarray(pixels.numpy(), mode="RGB")
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, format="JPEG", quality=70)
    return file.getvalue()


class Drawer:
    """Holds one model at a time and draws with it. Only one thread at a time may load or draw."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.device = settings.device
        if self.device == "auto":
            self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.dtype = torch.float16 if self.device == "cuda" else torch.float32
        self.loaded: str | None = None
        self.text = None
        self.image = None
        self.scheduler = None
        self.checker = None

    def load(self, name: str) -> None:
        """Loads a model, and lets go of the one before."""
        if self.loaded == name:
            return
        self.text = self.image = self.scheduler = self.loaded = None
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()
        source = self.settings.models[name]
        if is_single_file(source):
            pipe = pipeline_of(source).from_single_file(source, torch_dtype=self.dtype, use_safetensors=True)
        else:
            # Without safetensors in the folder this fails: nothing pickled is ever loaded.
            pipe = AutoPipelineForText2Image.from_pretrained(source, torch_dtype=self.dtype, use_safetensors=True)
        # The switch of the settings decides about checks, not what a checkpoint brings along.
        if getattr(pipe, "safety_checker", None) is not None:
            pipe.safety_checker = None
        pipe.set_progress_bar_config(disable=True)
        self._place(pipe)
        self.text, self.image = pipe, AutoPipelineForImage2Image.from_pipe(pipe)
        self.image.set_progress_bar_config(disable=True)
        self.scheduler, self.loaded = pipe.scheduler, name

    @staticmethod
    def stored_bytes() -> int:
        """Returns how much the cache of downloaded models holds. It grows while a model is downloaded."""
        total = 0
        for folder, _, files in os.walk(constants.HF_HUB_CACHE):
            for name in files:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size
                except OSError:
                    # A part that was just moved to its place.
                    continue
        return total

    def _place(self, pipe) -> None:
        if self.device != "cuda" or self.settings.offload == "none":
            pipe.to(self.device)
        elif self.settings.offload == "sequential":
            pipe.enable_sequential_cpu_offload()
        else:
            pipe.enable_model_cpu_offload()
        # Newer diffusers have these on the decoder alone.
        pipe.vae.enable_slicing()
        pipe.vae.enable_tiling()

    def draw(self, request: Request, step: Callable[[int, int, str | None], None]) -> bytes:
        """Draws a picture with the loaded model and returns it as PNG. Calls `step` after each step; what it raises ends
        the picture."""
        if request.enlarges:
            drawn = self._enlarge(request, step)
        elif request.image is None:
            drawn = self._run(self.text, request, request.steps, step, width=request.width, height=request.height)
        else:
            start = Image.open(io.BytesIO(request.image)).convert("RGB").resize((request.width, request.height))
            drawn = self._redraw(start, request, step)
        self._check(drawn)
        return _png(drawn)

    def _enlarge(self, request: Request, step: Callable[[int, int, str | None], None]) -> Image.Image:
        """Enlarges a picture by Lanczos, and redraws it lightly tile by tile. So it takes no more memory than one tile."""
        whole = Image.open(io.BytesIO(request.image)).convert("RGB")
        whole = whole.resize((request.width, request.height), Image.Resampling.LANCZOS)
        side = max(64, min(TILE, int(self.settings.max_pixels**0.5)) // 8 * 8)
        overlap = min(OVERLAP, side // 4)
        boxes, drawn = tiles(request.width, request.height, side, overlap), whole.copy()
        for number, box in enumerate(boxes):

            def of_all(done: int, total: int, small: str | None, before: int = number) -> None:
                step(before * total + done, len(boxes) * total, small)

            tile = self._redraw(whole.crop(box), request, of_all)
            drawn.paste(tile, box[:2], seam(tile.size, box[0] > 0, box[1] > 0, overlap))
        return drawn

    def _redraw(self, start: Image.Image, request: Request, step: Callable[[int, int, str | None], None]) -> Image.Image:
        total = max(1, min(request.steps, int(request.steps * request.strength)))
        return self._run(self.image, request, total, step, image=start, strength=request.strength)

    def _run(self, pipe, request: Request, total: int, step: Callable[[int, int, str | None], None], **options) -> Image.Image:
        sampler = SAMPLERS.get(request.sampler or "")
        pipe.scheduler = sampler.from_config(self.scheduler.config) if sampler else self.scheduler

        # Nothing unchecked leaves the sidecar while its check is on.
        side = self.settings.preview_side if self.settings.safety == "off" else 0

        is_xl = "StableDiffusionXL" in type(pipe).__name__

        def after(_pipe, index, _timestep, values):
            small = preview(values["latents"], side, is_xl)
            step(min(index + 1, total), total, base64.b64encode(small).decode() if small else None)
            return values

        with torch.inference_mode():
            return pipe(
                prompt=request.prompt,
                negative_prompt=request.negative_prompt or None,
                num_inference_steps=request.steps,
                guidance_scale=request.guidance,
                generator=torch.Generator("cpu").manual_seed(request.seed),
                callback_on_step_end=after,
                **options,
            ).images[0]

    def _check(self, image: Image.Image) -> None:
        """Raises Flagged if the safety check is on and flags the picture."""
        if self.settings.safety == "off":
            return
        if self.checker is None:
            from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
            from transformers import CLIPImageProcessor

            source = self.settings.safety
            checker = StableDiffusionSafetyChecker.from_pretrained(source, use_safetensors=True)
            self.checker = (checker, CLIPImageProcessor.from_pretrained(source))
        checker, processor = self.checker
        inputs = processor(image, return_tensors="pt").pixel_values
        import numpy

        with torch.inference_mode():
            _, flagged = checker(images=numpy.asarray(image)[None].copy(), clip_input=inputs)
        if any(flagged):
            raise Flagged
