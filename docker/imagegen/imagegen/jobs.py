"""The queue: one worker draws one picture at a time, in the order in which they were asked for.

A model is loaded in a thread of its own. So a picture that waits for it says so, and can be cancelled at once.
"""

import logging
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from .pipeline import Cancelled, Drawer, Flagged, Request

LOG = logging.getLogger("imagegen")

# Between two looks at a model that is being loaded.
LOOK_SECONDS = 0.05
# Between two events about it. A client that hears nothing for long gives up.
TELL_SECONDS = 5.0


class QueueFull(Exception):
    """Too many pictures wait."""


class Job:
    """A picture that was asked for, and the events about it."""

    def __init__(self, request: Request):
        self.id = secrets.token_hex(8)
        self.request = request
        self.events: queue.SimpleQueue = queue.SimpleQueue()
        self.cancelled = threading.Event()
        self.is_over = False
        self.over_at = 0.0
        self.png: bytes | None = None
        self.ahead: int | None = None

    def tell(self, kind: str, **fields) -> None:
        """Adds an event. Nothing follows the last one."""
        if not self.is_over:
            self.events.put({"type": kind, **fields})

    def tell_place(self, ahead: int) -> None:
        """Adds an event about the place in the queue, if it changed."""
        if ahead != self.ahead:
            self.ahead = ahead
            self.tell("queued", job=self.id, ahead=ahead)

    def end(self, kind: str, **fields) -> None:
        """Adds the last event."""
        self.tell(kind, **fields)
        self.is_over, self.over_at = True, time.monotonic()


class Loading:
    """A model on its way into memory. Whoever waits for it may stop waiting; it is loaded to its end."""

    def __init__(self, drawer: Drawer, model: str):
        self.drawer, self.model = drawer, model
        self.error: Exception | None = None
        self.done = threading.Event()
        self.before = drawer.stored_bytes()
        threading.Thread(target=self._load, name="loader", daemon=True).start()

    def downloaded(self) -> int:
        """Returns how many bytes were downloaded for it so far."""
        return max(0, self.drawer.stored_bytes() - self.before)

    def _load(self) -> None:
        try:
            self.drawer.load(self.model)
        except Exception as error:  # noqa: BLE001 Whoever waits is told, whatever it is.
            LOG.error("cannot load the model %s: %s", self.model, error)
            self.error = error
        finally:
            self.done.set()


class Jobs:
    """All pictures that wait, are being drawn, or can still be fetched."""

    def __init__(self, drawer: Drawer, limit: int, keep_seconds: int):
        self.drawer, self.limit, self.keep_seconds = drawer, limit, keep_seconds
        self.lock = threading.Condition()
        self.waiting: OrderedDict[str, Job] = OrderedDict()
        self.known: dict[str, Job] = {}
        self.running: Job | None = None
        self.loading: Loading | None = None
        self.is_closed = False
        self.worker = threading.Thread(target=self._work, name="drawer", daemon=True)
        self.worker.start()

    def ask(self, request: Request) -> Job:
        """Queues a picture, or raises QueueFull."""
        job = Job(request)
        with self.lock:
            self._sweep()
            if len(self.waiting) >= self.limit:
                raise QueueFull
            job.tell_place(len(self.waiting) + (self.running is not None))
            self.waiting[job.id] = self.known[job.id] = job
            self.lock.notify_all()
        return job

    def cancel(self, job_id: str) -> bool:
        """Ends a picture; True if it is known."""
        with self.lock:
            job = self.known.get(job_id)
            if job is None:
                return False
            job.cancelled.set()
            if self.waiting.pop(job_id, None) is not None:
                job.end("cancelled")
                self._tell_places()
            job.png = None
            return True

    def picture(self, job_id: str) -> bytes | None:
        """Returns a finished picture, while it is kept."""
        with self.lock:
            self._sweep()
            job = self.known.get(job_id)
            return job.png if job else None

    def counts(self) -> dict[str, int]:
        """Returns how many pictures wait and are being drawn."""
        with self.lock:
            return {"waiting": len(self.waiting), "running": int(self.running is not None)}

    def loads(self) -> str | None:
        """Returns the model that is being loaded."""
        loading = self.loading
        return loading.model if loading is not None and not loading.done.is_set() else None

    def close(self) -> None:
        """Ends everything."""
        with self.lock:
            self.is_closed = True
            for job_id in list(self.waiting):
                self.cancel(job_id)
            if self.running is not None:
                self.running.cancelled.set()
            self.lock.notify_all()

    def _sweep(self) -> None:
        old = time.monotonic() - self.keep_seconds
        for job_id in [key for key, job in self.known.items() if job.is_over and job.over_at < old]:
            del self.known[job_id]

    def _tell_places(self) -> None:
        for place, job in enumerate(self.waiting.values()):
            job.tell_place(place + (self.running is not None))

    def _next(self) -> Job | None:
        with self.lock:
            while not self.waiting and not self.is_closed:
                self.lock.wait()
            if self.is_closed:
                return None
            _, job = self.waiting.popitem(last=False)
            self.running = job
            job.tell_place(0)
            self._tell_places()
            return job

    def _work(self) -> None:
        # The default model is there before the first picture is asked for. If it fails, that picture tries again.
        self.loading = Loading(self.drawer, self.drawer.settings.default_model)
        while (job := self._next()) is not None:
            self._draw(job, self._step_of(job))
            with self.lock:
                self.running = None

    @staticmethod
    def _step_of(job: Job) -> Callable[[int, int, str | None], None]:
        def step(done: int, total: int, preview: str | None) -> None:
            if job.cancelled.is_set():
                raise Cancelled
            job.tell("progress", step=done, steps=total, preview=preview)

        return step

    def _load(self, job: Job) -> None:
        """Waits until the model of a picture is loaded."""
        wanted = job.request.model
        while self.loading is not None or self.drawer.loaded != wanted:
            is_own = self.loading is None
            if is_own:
                self.loading = Loading(self.drawer, wanted)
            loading = self.loading
            self._wait(job, loading)
            self.loading = None
            # What failed before this picture came is tried again for it.
            if is_own and loading.error is not None:
                raise loading.error
            if loading.error is None:
                job.tell("loaded", model=loading.model)

    @staticmethod
    def _wait(job: Job, loading: Loading) -> None:
        """Waits for the end of a loading, and tells how far it is. Raises Cancelled once nobody wants the picture."""
        told_at = None
        while not loading.done.is_set():
            now = time.monotonic()
            if told_at is None or now - told_at >= TELL_SECONDS:
                told_at = now
                job.tell("loading", model=loading.model, downloaded=loading.downloaded())
            if job.cancelled.wait(LOOK_SECONDS):
                raise Cancelled

    def _draw(self, job: Job, step: Callable[[int, int, str | None], None]) -> None:
        # Prompts are never logged.
        try:
            if job.cancelled.is_set():
                raise Cancelled
            self._load(job)
            png = self.drawer.draw(job.request, step)
            with self.lock:
                if job.cancelled.is_set():
                    raise Cancelled
                job.png = png
            job.end("done", seed=job.request.seed, model=job.request.model)
        except Cancelled:
            job.end("cancelled")
        except Flagged:
            job.end("error", code="flagged", message="the safety check withheld the picture")
        except Exception as error:  # noqa: BLE001 The worker must live on, whatever a model does.
            LOG.error("a picture failed: %s", type(error).__name__)
            job.end("error", code="failed", message=f"the model failed ({type(error).__name__})")
