"""The real sidecar on the processor, with a tiny random pipeline: every route and every event.

    python -m unittest discover -s docker/imagegen/tests -t docker/imagegen
"""

import base64
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from PIL import Image

from imagegen import settings

ROOT = Path(__file__).resolve().parent.parent
KEY = "hush"
PROMPT = "a lighthouse at dusk"
# `cpu` or `cuda`: what the sidecar of the tests draws on.
DEVICE = os.environ.get("IMAGEGEN_TEST_DEVICE", "cpu")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Sidecar:
    """A running sidecar."""

    def __init__(self, models: str, **extra: str):
        self.port = free_port()
        env = {**os.environ, "IMAGEGEN_MODELS": models, "IMAGEGEN_PORT": str(self.port), "IMAGEGEN_KEY": KEY,
               "IMAGEGEN_DEVICE": DEVICE, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **extra}
        # A pipe that nobody reads would fill, and stop the sidecar.
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, "-m", "imagegen"], cwd=ROOT, env=env, stderr=self.log)
        end = time.monotonic() + 120
        while True:
            try:
                self.call("GET", "/v1/health")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(self.logged()) from None
                time.sleep(0.1)

    def connect(self, method: str, path: str, body=None, key: str = KEY):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        return connection, connection.getresponse()

    def call(self, method: str, path: str, body=None, key: str = KEY):
        connection, response = self.connect(method, path, body, key)
        data = response.read()
        connection.close()
        return response.status, data

    def begin(self, **fields):
        return self.connect("POST", "/v1/pictures", {"prompt": PROMPT, "width": 64, "height": 64, "steps": 4, **fields})

    def leave_at_once(self, **fields) -> None:
        """Asks for a picture, and hangs up before the first byte of the answer."""
        body = json.dumps({"prompt": PROMPT, "width": 64, "height": 64, **fields})
        head = (
            f"POST /v1/pictures HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall((head + body).encode())

    def draw(self, **fields) -> list:
        connection, response = self.begin(**fields)
        assert response.status == 200, response.read()
        events = list(events_of(response))
        connection.close()
        return events

    def stop(self) -> str:
        self.process.terminate()
        self.process.wait(timeout=30)
        log = self.logged()
        self.log.close()
        return log

    def logged(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()


def events_of(response):
    """Yields the events of a stream as they come."""
    while line := response.readline():
        if line.startswith(b"data:"):
            yield json.loads(line[5:])


def png(side: int = 64) -> str:
    file = io.BytesIO()
    Image.new("RGB", (side, side), (120, 30, 200)).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


class Drawing(unittest.TestCase):
    """Routes and events."""

    @classmethod
    def setUpClass(cls):
        from tests import tiny

        cls.folder = tempfile.TemporaryDirectory()
        root = Path(cls.folder.name)
        model = tiny.pipeline(root)
        cls.strict, cls.mild = tiny.checker(root, True), tiny.checker(root, False)
        cls.models = f"tiny={model},again={model}"
        cls.sidecar = Sidecar(cls.models, IMAGEGEN_QUEUE="2", IMAGEGEN_MAX_STEPS="1000")
        cls.sidecar.draw()

    @classmethod
    def tearDownClass(cls):
        log = cls.sidecar.stop()
        cls.folder.cleanup()
        assert "lighthouse" not in log and KEY not in log, "prompts and keys are never logged"

    def picture(self, events: list) -> Image.Image:
        status, data = self.sidecar.call("GET", f"/v1/pictures/{events[0]['job']}")
        self.assertEqual(status, 200)
        return Image.open(io.BytesIO(data))

    def test_a_picture_is_drawn_with_every_step_and_a_preview(self):
        events = self.sidecar.draw(seed=7)
        self.assertEqual([event["type"] for event in events], ["queued"] + ["progress"] * 4 + ["done"])
        self.assertEqual([(event["step"], event["steps"]) for event in events[1:5]], [(step, 4) for step in range(1, 5)])
        small = Image.open(io.BytesIO(base64.b64decode(events[1]["preview"])))
        self.assertLessEqual(max(small.size), 128)
        self.assertEqual((events[-1]["seed"], events[-1]["model"]), (7, "tiny"))
        self.assertEqual(self.picture(events).size, (64, 64))

    def test_the_same_seed_draws_the_same_picture(self):
        one, two, other = (self.picture(self.sidecar.draw(seed=seed)).tobytes() for seed in (7, 7, 8))
        self.assertEqual(one, two)
        self.assertNotEqual(one, other)

    def test_a_picture_can_start_from_another(self):
        events = self.sidecar.draw(image=png(), strength=0.5, seed=7)
        self.assertEqual([event["steps"] for event in events if event["type"] == "progress"], [2, 2])
        self.assertEqual(self.picture(events).size, (64, 64))

    def test_a_picture_is_drawn_larger_tile_by_tile(self):
        # With 80 pixels a side at most, 192 pixels a side are nine tiles.
        sidecar = Sidecar(self.models, IMAGEGEN_MAX_PIXELS="6400")
        connection, response = sidecar.connect("POST", "/v1/upscales", {"image": png(96), "prompt": PROMPT, "steps": 8, "seed": 7})
        self.assertEqual(response.status, 200)
        events = list(events_of(response))
        connection.close()
        steps = [(event["step"], event["steps"]) for event in events if event["type"] == "progress"]
        self.assertEqual(steps, [(step, 18) for step in range(1, 19)])
        status, data = sidecar.call("GET", f"/v1/pictures/{events[0]['job']}")
        self.assertEqual((status, Image.open(io.BytesIO(data)).size), (200, (192, 192)))
        for fields in ({"image": png(1600)}, {"image": "no base64"}, {"image": png(), "width": 64}, {"image": png(), "model": "other"}, {}):
            self.assertEqual(sidecar.call("POST", "/v1/upscales", fields)[0], 422, list(fields))
        self.assertEqual(sidecar.call("POST", "/v1/upscales", {"image": png()}, key="wrong")[0], 401)
        sidecar.stop()

    def test_samplers_and_models_are_chosen_by_name(self):
        status, data = self.sidecar.call("GET", "/v1/models")
        self.assertEqual((status, json.loads(data)["models"]), (200, ["tiny", "again"]))
        limits = [json.loads(data)[name] for name in ("max_side", "max_pixels", "max_steps")]
        self.assertEqual(limits, [1536, 1216 * 1216, 1000])
        for sampler in json.loads(data)["samplers"]:
            self.assertEqual(self.sidecar.draw(sampler=sampler)[-1]["type"], "done", sampler)
        self.assertEqual(self.sidecar.draw(model="again")[-1]["model"], "again")
        self.assertEqual(json.loads(self.sidecar.call("GET", "/v1/health")[1])["model"], "again")
        self.sidecar.draw()

    def test_what_is_beyond_the_limits_is_refused(self):
        for fields in (
            {"prompt": ""}, {"width": 8}, {"width": 4096, "height": 4096}, {"steps": 3000}, {"seed": -1},
            {"model": "other"}, {"sampler": "other"}, {"image": "no base64"}, {"image": base64.b64encode(b"GIF89a").decode()},
            {"strength": 0}, {"unknown": 1},
        ):
            connection, response = self.sidecar.begin(**fields)
            self.assertEqual(response.status, 422, fields)
            connection.close()
        self.assertEqual(self.sidecar.call("GET", "/v1/pictures/none")[0], 404)
        self.assertEqual(self.sidecar.call("DELETE", "/v1/pictures/none")[0], 404)

    def test_the_key_is_needed_for_everything_but_health(self):
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/pictures"), ("GET", "/v1/pictures/x"), ("DELETE", "/v1/pictures/x")):
            self.assertEqual(self.sidecar.call(method, path, {"prompt": "x"}, key="wrong")[0], 401, path)
        self.assertEqual(self.sidecar.call("GET", "/v1/health", key="wrong")[0], 200)

    def test_a_running_picture_is_cancelled_within_a_second(self):
        connection, response = self.sidecar.begin(steps=1000)
        events = events_of(response)
        job = next(events)["job"]
        self.assertEqual(next(events)["type"], "progress")
        begun = time.monotonic()
        self.assertEqual(self.sidecar.call("DELETE", f"/v1/pictures/{job}")[0], 204)
        self.assertEqual(list(events)[-1]["type"], "cancelled")
        self.until_idle()
        took = time.monotonic() - begun
        connection.close()
        print(f"\ncancel to idle: {took:.2f} s", file=sys.stderr)
        self.assertLess(took, 1.0)
        self.assertEqual(self.sidecar.call("GET", f"/v1/pictures/{job}")[0], 404)

    def test_the_first_progress_comes_within_a_second(self):
        begun = time.monotonic()
        connection, response = self.sidecar.begin(steps=20)
        first = next(event for event in events_of(response) if event["type"] == "progress")
        took = time.monotonic() - begun
        response.read()
        connection.close()
        print(f"\nrequest to first progress: {took:.2f} s", file=sys.stderr)
        self.assertEqual(first["step"], 1)
        self.assertLess(took, 1.0)

    def test_a_client_that_goes_away_cancels_its_picture(self):
        connection, response = self.sidecar.begin(steps=1000)
        events = events_of(response)
        next(events), next(events)
        response.close()
        connection.sock and connection.sock.close()
        connection.close()
        self.until_idle()

    def test_a_picture_by_another_model_says_that_this_is_loaded(self):
        for model in ("again", "tiny"):
            events = self.sidecar.draw(model=model)
            told = [event for event in events if event["type"] == "loading"]
            self.assertEqual([(event["model"], event["downloaded"]) for event in told[:1]], [(model, 0)])
            self.assertEqual((events[-1]["type"], events[-1]["model"]), ("done", model))
        self.assertIsNone(json.loads(self.sidecar.call("GET", "/v1/health")[1])["loading"])

    def test_clients_that_leave_at_once_leave_no_picture_behind(self):
        for _ in range(20):
            self.sidecar.leave_at_once(steps=1000)
        self.until_idle()

    def test_pictures_wait_in_order_and_the_queue_is_bounded(self):
        first, running = self.sidecar.begin(steps=1000)
        started = events_of(running)
        job = next(started)["job"]
        next(started)
        others = [self.sidecar.begin(steps=2) for _ in range(2)]
        streams = [events_of(response) for _, response in others]
        self.assertEqual([next(stream)["ahead"] for stream in streams], [1, 2])
        connection, full = self.sidecar.begin()
        self.assertEqual((full.status, full.headers["Retry-After"]), (429, "30"))
        connection.close()
        self.assertEqual(json.loads(self.sidecar.call("GET", "/v1/health")[1])["waiting"], 2)
        self.sidecar.call("DELETE", f"/v1/pictures/{job}")
        rest = [list(stream) for stream in streams]
        self.assertTrue(all(events[-1]["type"] == "done" for events in rest))
        self.assertIn(0, [event.get("ahead") for event in rest[0] + rest[1]])
        for connection, _ in [*others, (first, None)]:
            connection.close()

    def test_many_requests_at_once_lose_none(self):
        results = []

        def ask(number: int):
            while True:
                connection, response = self.sidecar.begin(steps=1, seed=number)
                if response.status == 200:
                    results.append(list(events_of(response))[-1])
                    connection.close()
                    return
                connection.close()
                time.sleep(0.05)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(sorted(event["seed"] for event in results), list(range(12)))

    def test_the_safety_check_withholds_what_it_flags(self):
        for checker, want in ((self.strict, "error"), (self.mild, "done")):
            sidecar = Sidecar(self.models, IMAGEGEN_SAFETY=str(checker))
            *events, last = sidecar.draw()
            sidecar.stop()
            steps = [event for event in events if event["type"] == "progress"]
            self.assertTrue(steps and all(event["preview"] is None for event in steps), "a preview is not checked")
            self.assertEqual(last["type"], want)
            if want == "error":
                self.assertEqual(last["code"], "flagged")

    def until_idle(self):
        end = time.monotonic() + 10
        while True:
            counts = json.loads(self.sidecar.call("GET", "/v1/health")[1])
            if not counts["running"] and not counts["waiting"]:
                return
            self.assertLess(time.monotonic(), end, "it does not become idle")
            time.sleep(0.02)


class Kinds(unittest.TestCase):
    """What a checkpoint is, is read from the checkpoint."""

    XL = "conditioner.embedders.1.model.ln_final.weight"
    FIRST = "cond_stage_model.transformer.text_model.final_layer_norm.weight"

    def file(self, name: str, *tensors: str) -> str:
        import torch
        from safetensors.torch import save_file

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / name
        save_file({tensor: torch.zeros(1) for tensor in tensors}, path)
        return str(path)

    def test_the_kind_of_a_single_file_is_read_from_its_header(self):
        from imagegen.pipeline import StableDiffusionPipeline, StableDiffusionXLPipeline, pipeline_of

        for name in ("ponyDiffusion.safetensors", "sd_xl.safetensors"):
            self.assertIs(pipeline_of(self.file(name, self.XL)), StableDiffusionXLPipeline)
            self.assertIs(pipeline_of(self.file(name, self.FIRST)), StableDiffusionPipeline)

    def test_a_file_that_is_no_checkpoint_is_refused_in_words(self):
        from imagegen.pipeline import pipeline_of

        with self.assertRaisesRegex(ValueError, "no whole checkpoint"):
            pipeline_of(self.file("flux.safetensors", "double_blocks.0.img_attn.proj.bias"))
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as broken:
            broken.write(b"\xff" * 64)
            broken.flush()
            with self.assertRaisesRegex(ValueError, "no safetensors file"):
                pipeline_of(broken.name)

    def test_previews_have_the_colours_of_the_kind(self):
        import torch
        from imagegen.pipeline import preview

        def colour(is_xl: bool, *channels: float) -> tuple:
            latents = torch.tensor(channels).reshape(1, 4, 1, 1).expand(1, 4, 16, 16)
            return Image.open(io.BytesIO(preview(latents, 64, is_xl))).convert("RGB").getpixel((8, 8))

        # The first channel of XL is how bright it is, the second goes from cyan to red.
        bright = colour(True, 1.5, 0.0, 0.0, 0.0)
        self.assertTrue(min(bright) > 190 and max(bright) - min(bright) < 20, bright)
        red, _, blue = colour(True, 0.0, -2.0, 0.0, 0.0)
        self.assertGreater(red - blue, 60)
        # The first channel of the others is more red and blue than green.
        red, green, _ = colour(False, 2.0, 0.0, 0.0, 0.0)
        self.assertGreater(red - green, 20)


class SlowDrawer:
    """A stand-in for the model: it loads when the test lets it, and draws nothing."""

    def __init__(self):
        self.settings = settings.read({"IMAGEGEN_MODELS": "one=a/b,two=c/d"})
        self.loaded = None
        self.asked, self.gate, self.stored = [], threading.Event(), 100
        self.failures = 0

    def load(self, name: str) -> None:
        self.asked.append(name)
        self.loaded = None
        self.gate.wait(30)
        if self.failures:
            self.failures -= 1
            raise OSError("no such model")
        self.loaded = name

    def stored_bytes(self) -> int:
        return self.stored

    def draw(self, request, step) -> bytes:
        assert self.loaded == request.model, "the model is loaded before it draws"
        step(1, 1, None)
        return b"png"


class Loading(unittest.TestCase):
    """A model that is being loaded: what people learn, and that they need not wait for it."""

    def setUp(self):
        from imagegen.jobs import Jobs

        self.drawer = SlowDrawer()
        self.jobs = Jobs(self.drawer, 4, 300)
        self.addCleanup(self.jobs.close)
        self.addCleanup(self.drawer.gate.set)

    def ask(self, model: str = "one"):
        from imagegen.pipeline import Request

        return self.jobs.ask(Request(PROMPT, "", 64, 64, 1, 7, 7.0, None, model, None, 0.6))

    def rest(self, job) -> list:
        """Returns the events that are still to come, until the last."""
        events = []
        while not events or events[-1]["type"] not in ("done", "cancelled", "error"):
            events.append(job.events.get(timeout=30))
        return events

    def test_a_picture_that_waits_for_its_model_says_so(self):
        job = self.ask()
        self.assertEqual(job.events.get(timeout=30)["type"], "queued")
        told = job.events.get(timeout=30)
        self.assertEqual((told["type"], told["model"], told["downloaded"]), ("loading", "one", 0))
        self.assertEqual(self.jobs.loads(), "one")
        self.drawer.gate.set()
        # There may be more about the loading before that.
        rest = [event for event in self.rest(job) if event["type"] != "loading"]
        self.assertEqual([event["type"] for event in rest], ["loaded", "progress", "done"])
        self.assertEqual(rest[0]["model"], "one")
        self.assertIsNone(self.jobs.loads())
        self.assertEqual(self.drawer.asked, ["one"], "the model of the start served the picture")

    def test_what_is_downloaded_is_counted(self):
        from imagegen import jobs

        self.drawer.stored += 2_000_000
        self.assertEqual(jobs.Loading(self.drawer, "one").downloaded(), 0)
        loading = jobs.Loading(self.drawer, "one")
        self.drawer.stored += 5_000_000
        self.assertEqual(loading.downloaded(), 5_000_000)

    def test_a_picture_is_cancelled_while_its_model_is_loaded(self):
        job = self.ask()
        while job.events.get(timeout=30)["type"] != "loading":
            pass
        self.assertTrue(self.jobs.cancel(job.id))
        self.assertEqual(self.rest(job)[-1]["type"], "cancelled")
        # The model still loads. The next picture waits for the same one.
        following = self.ask()
        while following.events.get(timeout=30)["type"] != "loading":
            pass
        self.drawer.gate.set()
        self.assertEqual(self.rest(following)[-1]["type"], "done")
        self.assertEqual(self.drawer.asked, ["one"])

    def test_another_model_is_loaded_after_the_one_on_its_way(self):
        job = self.ask("two")
        while job.events.get(timeout=30)["type"] != "loading":
            pass
        self.drawer.gate.set()
        self.assertEqual(self.rest(job)[-1]["type"], "done")
        self.assertEqual(self.drawer.asked, ["one", "two"])

    def test_a_model_that_failed_at_the_start_is_tried_again_for_a_picture(self):
        self.drawer.failures = 1
        self.drawer.gate.set()
        self.assertEqual(self.rest(self.ask())[-1]["type"], "done")
        self.assertEqual(self.drawer.asked, ["one", "one"])

    def test_a_model_that_cannot_be_loaded_fails_the_picture_and_not_the_sidecar(self):
        self.drawer.failures = 2
        self.drawer.gate.set()
        rest = self.rest(self.ask())
        last = rest[-1]
        self.assertEqual((last["type"], last["code"]), ("error", "failed"))
        self.assertIn("OSError", last["message"])
        self.assertNotIn("loaded", [event["type"] for event in rest])
        self.assertEqual(self.rest(self.ask())[-1]["type"], "done")


class Tiles(unittest.TestCase):
    """The tiles of an enlarged picture cover it, overlap, and fade into each other."""

    def test_tiles_cover_the_picture_and_overlap(self):
        from imagegen.pipeline import tiles

        for width, height in ((64, 64), (1024, 1024), (1032, 64), (2048, 2048), (2432, 1664), (4096, 2048)):
            boxes = tiles(width, height, 1024, 128)
            for axis, length in ((0, width), (1, height)):
                spans = sorted({(box[axis], box[axis + 2]) for box in boxes})
                self.assertEqual((spans[0][0], spans[-1][1]), (0, length))
                for (_, end), (begin, _) in zip(spans, spans[1:]):
                    self.assertGreaterEqual(end - begin, min(128, length - 1024))
                self.assertTrue(all(end - begin <= 1024 for begin, end in spans))

    def test_a_tile_fades_in_where_it_overlaps(self):
        from imagegen.pipeline import seam

        mask = seam((64, 64), True, False, 16)
        row = [mask.getpixel((x, 32)) for x in range(64)]
        self.assertLess(row[0], 16)
        self.assertEqual((row[16], row[63]), (255, 255))
        self.assertEqual(row[:16], sorted(row[:16]))
        column = [seam((64, 64), False, True, 16).getpixel((32, y)) for y in range(64)]
        self.assertEqual((column[16], column[63], column[:16]), (255, 255, sorted(column[:16])))


class Settings(unittest.TestCase):
    """Wrong settings are refused before anything is loaded."""

    def test_a_pickled_checkpoint_is_refused(self):
        for name in ("x.ckpt", "model.bin", "a=/models/y.PT", "b=z.pkl"):
            with self.assertRaisesRegex(settings.SettingsError, "pickled"):
                settings.read({"IMAGEGEN_MODELS": name})

    def test_an_address_is_refused_in_words(self):
        for source in ("https://example.org/m/sdxl.safetensors", "a=HTTP://u:hush@example.org/sdxl.safetensors"):
            for name in ("IMAGEGEN_MODELS", "IMAGEGEN_SAFETY"):
                with self.assertRaisesRegex(settings.SettingsError, "download its file") as refused:
                    settings.read({name: source})
                self.assertNotIn("hush", str(refused.exception))

    def test_other_machines_need_a_key(self):
        with self.assertRaisesRegex(settings.SettingsError, "IMAGEGEN_KEY"):
            settings.read({"IMAGEGEN_HOST": "0.0.0.0"})
        self.assertEqual(settings.read({"IMAGEGEN_HOST": "0.0.0.0", "IMAGEGEN_KEY": "k"}).key, "k")

    def test_numbers_and_choices_are_checked(self):
        for name, value in (("IMAGEGEN_PORT", "0"), ("IMAGEGEN_MAX_STEPS", "x"), ("IMAGEGEN_DEVICE", "tpu"), ("IMAGEGEN_OFFLOAD", "some")):
            with self.assertRaisesRegex(settings.SettingsError, name):
                settings.read({name: value})

    def test_models_have_names(self):
        read = settings.read({"IMAGEGEN_MODELS": "a=org/model, /m/sdxl.safetensors"})
        self.assertEqual(read.models, {"a": "org/model", "sdxl": "/m/sdxl.safetensors"})
        self.assertEqual(read.default_model, "a")


if __name__ == "__main__":
    unittest.main()
