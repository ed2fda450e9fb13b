"""The routes."""

import asyncio
import base64
import binascii
import contextlib
import hmac
import io
import json
import queue
import random

from fastapi import Depends, FastAPI, HTTPException, Request as HttpRequest, Response
from fastapi.responses import StreamingResponse
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field

from .jobs import Job, Jobs, QueueFull
from .pipeline import SAMPLERS, UPSCALE_FACTOR, Drawer, Request
from .settings import Settings

# A comment keeps a silent stream alive.
ALIVE_SECONDS = 10.0
POLL_SECONDS = 0.02
MAX_IMAGE_BYTES = 24 << 20


class Wanted(BaseModel):
    """The body of a request for a picture."""

    model_config = ConfigDict(extra="forbid")

    prompt: str = Field(min_length=1, max_length=4000)
    negative_prompt: str = Field(default="", max_length=4000)
    width: int = Field(default=1024, ge=64)
    height: int = Field(default=1024, ge=64)
    steps: int = Field(default=28, ge=1)
    seed: int | None = Field(default=None, ge=0, le=2**32 - 1)
    guidance: float = Field(default=7.0, ge=0, le=30)
    sampler: str | None = None
    model: str | None = None
    image: str | None = Field(default=None, max_length=MAX_IMAGE_BYTES * 4 // 3 + 4)
    strength: float = Field(default=0.6, ge=0.05, le=1)


class Larger(BaseModel):
    """The body of a request to draw a picture larger."""

    model_config = ConfigDict(extra="forbid")

    image: str = Field(max_length=MAX_IMAGE_BYTES * 4 // 3 + 4)
    prompt: str = Field(default="", max_length=4000)
    negative_prompt: str = Field(default="", max_length=4000)
    steps: int = Field(default=28, ge=1)
    seed: int | None = Field(default=None, ge=0, le=2**32 - 1)
    guidance: float = Field(default=7.0, ge=0, le=30)
    sampler: str | None = None
    model: str | None = None
    strength: float = Field(default=0.25, ge=0.05, le=1)


def _reference(text: str | None, settings: Settings) -> bytes | None:
    """Decodes the picture to start from, within the limits."""
    if text is None:
        return None
    try:
        data = base64.b64decode(text, validate=True)
        with Image.open(io.BytesIO(data), formats=["PNG", "JPEG", "WEBP"]) as image:
            width, height = image.size
            if max(width, height) > 4096 or width * height > 4 * settings.max_pixels:
                raise HTTPException(422, "the picture to start from is too large")
            image.verify()
    except (binascii.Error, OSError, SyntaxError, ValueError) as error:
        raise HTTPException(422, "the picture to start from cannot be read") from error
    return data


def _checked(wanted: Wanted | Larger, settings: Settings) -> dict:
    """Returns what all requests have in common, within the limits."""
    model = wanted.model or settings.default_model
    if model not in settings.models:
        raise HTTPException(422, f"there is no model {model!r}; there are {', '.join(settings.models)}")
    if wanted.sampler is not None and wanted.sampler not in SAMPLERS:
        raise HTTPException(422, f"there is no sampler {wanted.sampler!r}; there are {', '.join(SAMPLERS)}")
    if wanted.steps > settings.max_steps:
        raise HTTPException(422, f"a picture has at most {settings.max_steps} steps")
    return {
        "prompt": wanted.prompt,
        "negative_prompt": wanted.negative_prompt,
        "steps": wanted.steps,
        "seed": wanted.seed if wanted.seed is not None else random.SystemRandom().randrange(2**32),
        "guidance": wanted.guidance,
        "sampler": wanted.sampler,
        "model": model,
        "strength": wanted.strength,
    }


def _request(wanted: Wanted, settings: Settings) -> Request:
    width, height = wanted.width // 8 * 8, wanted.height // 8 * 8
    if max(width, height) > settings.max_side or width * height > settings.max_pixels:
        raise HTTPException(422, f"a picture has at most {settings.max_side} pixels on a side and {settings.max_pixels} in all")
    common = _checked(wanted, settings)
    return Request(width=width, height=height, image=_reference(wanted.image, settings), **common)


def _larger(wanted: Larger, settings: Settings) -> Request:
    common, image = _checked(wanted, settings), _reference(wanted.image, settings)
    with Image.open(io.BytesIO(image)) as opened:
        width, height = (max(side * UPSCALE_FACTOR // 8 * 8, 64) for side in opened.size)
    if width * height > settings.max_upscaled_pixels:
        raise HTTPException(422, f"an enlarged picture has at most {settings.max_upscaled_pixels} pixels")
    return Request(width=width, height=height, image=image, enlarges=True, **common)


async def _events(job: Job, http: HttpRequest):
    """Yields the events of a picture."""
    silent = 0.0
    while True:
        try:
            event = job.events.get_nowait()
        except queue.Empty:
            if await http.is_disconnected():
                return
            await asyncio.sleep(POLL_SECONDS)
            silent += POLL_SECONDS
            if silent >= ALIVE_SECONDS:
                silent = 0.0
                yield ": alive\n\n"
            continue
        silent = 0.0
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if event["type"] in ("done", "cancelled", "error"):
            return


class EventResponse(StreamingResponse):
    """Sends the events of a picture. A client that goes away cancels it, even before the first event is sent."""

    def __init__(self, job: Job, jobs: Jobs, http: HttpRequest):
        super().__init__(_events(job, http), media_type="text/event-stream")
        self.job, self.jobs = job, jobs

    async def __call__(self, scope, receive, send) -> None:
        # The generator may never run, so it cannot do this itself.
        try:
            await super().__call__(scope, receive, send)
        finally:
            if not self.job.is_over:
                self.jobs.cancel(self.job.id)


def build(settings: Settings) -> FastAPI:
    """Makes the application."""
    drawer = Drawer(settings)
    jobs = Jobs(drawer, settings.queue, settings.keep_seconds)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI):
        yield
        jobs.close()

    app = FastAPI(title="imagegen", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    def allowed(http: HttpRequest) -> None:
        given = http.headers.get("authorization", "")
        if settings.key and not hmac.compare_digest(given.encode(), f"Bearer {settings.key}".encode()):
            raise HTTPException(401, "a key is needed: Authorization: Bearer KEY")

    @app.get("/v1/health")
    def health() -> dict:
        return {
            "status": "ok",
            "model": drawer.loaded or settings.default_model,
            "loaded": drawer.loaded is not None,
            "loading": jobs.loads(),
            "device": drawer.device,
            "safety": settings.safety != "off",
            **jobs.counts(),
        }

    @app.get("/v1/models", dependencies=[Depends(allowed)])
    def models() -> dict:
        names = list(settings.models)
        return {
            "models": names,
            "default": settings.default_model,
            "loaded": drawer.loaded,
            "samplers": list(SAMPLERS),
            "max_side": settings.max_side,
            "max_pixels": settings.max_pixels,
            "max_steps": settings.max_steps,
        }

    def begun(request: Request, http: HttpRequest) -> StreamingResponse:
        try:
            job = jobs.ask(request)
        except QueueFull as error:
            raise HTTPException(429, "too many pictures wait", headers={"Retry-After": "30"}) from error
        return EventResponse(job, jobs, http)

    @app.post("/v1/pictures", dependencies=[Depends(allowed)])
    async def draw(wanted: Wanted, http: HttpRequest) -> StreamingResponse:
        return begun(_request(wanted, settings), http)

    @app.post("/v1/upscales", dependencies=[Depends(allowed)])
    async def enlarge(wanted: Larger, http: HttpRequest) -> StreamingResponse:
        return begun(_larger(wanted, settings), http)

    @app.get("/v1/pictures/{job_id}", dependencies=[Depends(allowed)])
    def picture(job_id: str) -> Response:
        png = jobs.picture(job_id)
        if png is None:
            raise HTTPException(404, "there is no such picture, or it is kept no more")
        return Response(png, media_type="image/png")

    @app.delete("/v1/pictures/{job_id}", status_code=204, dependencies=[Depends(allowed)])
    def cancel(job_id: str) -> Response:
        if not jobs.cancel(job_id):
            raise HTTPException(404, "there is no such picture")
        return Response(status_code=204)

    return app
