"""``bestofn serve model=PATH``: a local model with an OpenAI-compatible API on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bestofn.builders.config.command import run_composed
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import ConfigError
from bestofn.scripts.catalogue import SERVE


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn serve`` with the words of a command line."""
    run_composed(SERVE, serve, words)


def serve(config: dict[str, Any]) -> None:
    """Serve until interrupted. Raises ``ConfigError`` when the extra ``serve`` is not installed."""
    try:
        import uvicorn

        from bestofn.builders.serving.app import app
    except ModuleNotFoundError as error:
        raise ConfigError(f"bestofn serve needs {error.name}; install it: pip install 'bestofn[serve]'") from error

    provider = ObjectBuilder().build(config["provider"], "provider")
    host, port, key = config["host"], int(config["port"]), str(config["api_key"] or "")
    if host not in ("127.0.0.1", "localhost", "::1") and not key:
        raise ConfigError(
            f"host is {host}: beyond this machine the server wants a key. Set api_key=…, or host=127.0.0.1."
        )
    provider.engine.load()  # before the server starts, so that a wrong model ends in one message
    server = uvicorn.Server(uvicorn.Config(app(provider, api_key=key), host=host, port=port, log_level="warning"))
    print(f"bestofn serves {provider.model} at http://{host}:{port}/v1 (Ctrl-C ends it)", flush=True)
    server.run()


if __name__ == "__main__":
    main()
