"""Settings from the environment. Every name begins with IMAGEGEN_."""

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

# What a checkpoint may be: safetensors alone. Pickled checkpoints run code when they are loaded.
PICKLED = {".ckpt", ".bin", ".pt", ".pth", ".pkl"}


DEFAULT_MODELS = "animagine-xl-3.1=cagliostrolab/animagine-xl-3.1"


class SettingsError(ValueError):
    """A setting is wrong. The text says which, and what to write instead."""


@dataclass(frozen=True)
class Settings:
    """Everything that the operator chooses."""

    models: dict[str, str]
    host: str = "127.0.0.1"
    port: int = 7870
    key: str = ""
    device: str = "auto"
    offload: str = "model"
    safety: str = "off"
    preview_side: int = 128
    max_side: int = 1536
    max_pixels: int = 1216 * 1216
    max_upscaled_pixels: int = 8 << 20
    max_steps: int = 60
    queue: int = 32
    keep_seconds: int = 300

    @property
    def default_model(self) -> str:
        """The name of the model that draws unless a request names another."""
        return next(iter(self.models))


def _number(env: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not text.isdigit() or not least <= int(text) <= most:
        raise SettingsError(f"{name} must be a whole number from {least} to {most}, not {text!r}")
    return int(text)


def _choice(env: dict[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    text = env.get(name, "").strip() or default
    if text not in choices:
        raise SettingsError(f"{name} must be one of {', '.join(choices)}, not {text!r}")
    return text


def check_source(source: str) -> str:
    """Returns where a model comes from, unless it is an address or a pickled checkpoint."""
    path = Path(source)
    if "://" in source:
        # An address may hold a password or a token, so it is not repeated.
        raise SettingsError("a model cannot be an address; download its file, and name that, or a repository of the hub")
    if path.suffix.lower() in PICKLED:
        raise SettingsError(f"{path.name} is a pickled checkpoint, which can run code; convert it to safetensors")
    if path.is_file() and path.suffix.lower() != ".safetensors":
        raise SettingsError(f"{path.name} is no safetensors file")
    return source


def _models(text: str) -> dict[str, str]:
    models = {}
    for entry in text.split(","):
        name, _, source = entry.strip().partition("=")
        if not name:
            continue
        source = source.strip() or name
        name = name.strip() if "=" in entry else Path(source).stem
        models[name] = check_source(source)
    if not models:
        raise SettingsError("IMAGEGEN_MODELS names no model; write for example animagine=cagliostrolab/animagine-xl-3.1")
    return models


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read(env: dict[str, str] | None = None) -> Settings:
    """Reads the settings, or raises SettingsError."""
    env = dict(os.environ) if env is None else env
    host = env.get("IMAGEGEN_HOST", "127.0.0.1").strip()
    key = env.get("IMAGEGEN_KEY", "").strip()
    if not key and not _is_local(host):
        raise SettingsError("IMAGEGEN_KEY must be set where other machines can reach the sidecar (IMAGEGEN_HOST)")
    return Settings(
        models=_models(env.get("IMAGEGEN_MODELS", "").strip() or DEFAULT_MODELS),
        host=host,
        port=_number(env, "IMAGEGEN_PORT", 7870, 1, 65535),
        key=key,
        device=_choice(env, "IMAGEGEN_DEVICE", "auto", ("auto", "cuda", "cpu")),
        offload=_choice(env, "IMAGEGEN_OFFLOAD", "model", ("none", "model", "sequential")),
        safety=check_source(env.get("IMAGEGEN_SAFETY", "").strip() or "off"),
        preview_side=_number(env, "IMAGEGEN_PREVIEW_SIDE", 128, 0, 512),
        max_side=_number(env, "IMAGEGEN_MAX_SIDE", 1536, 64, 4096),
        max_pixels=_number(env, "IMAGEGEN_MAX_PIXELS", 1216 * 1216, 64 * 64, 4096 * 4096),
        max_upscaled_pixels=_number(env, "IMAGEGEN_MAX_UPSCALED_PIXELS", 8 << 20, 64 * 64, 4096 * 4096),
        max_steps=_number(env, "IMAGEGEN_MAX_STEPS", 60, 1, 1000),
        queue=_number(env, "IMAGEGEN_QUEUE", 32, 1, 1000),
        keep_seconds=_number(env, "IMAGEGEN_KEEP_SECONDS", 300, 5, 86400),
    )
