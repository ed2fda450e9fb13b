"""Starts the sidecar: python -m imagegen."""

import sys

import uvicorn

from .settings import SettingsError, read


def main() -> int:
    """Reads the settings and serves."""
    try:
        settings = read()
    except SettingsError as error:
        print(f"imagegen: {error}", file=sys.stderr)
        return 2
    from .api import build

    uvicorn.run(build(settings), host=settings.host, port=settings.port, log_level="warning", access_log=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
