"""Masks the credentials in configurations that Hydra prints (``--cfg job``) or writes (``multirun.yaml``)."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bestofn.builders.config.current_command import sweep_folder
from bestofn.builders.redaction.secrets import redacted, redacted_override


@contextlib.contextmanager
def public_output(flags: Sequence[str]) -> Iterator[None]:
    """If ``flags`` contain ``--cfg``, mask the credentials in the YAML that the block prints."""
    if not {"--cfg", "-c"} & set(flags):
        yield
        return
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        print(public_yaml(printed.getvalue()), end="")


def redact_sweep_file() -> None:
    """Mask the credentials in the file that Hydra writes into the folder of a sweep, ``multirun.yaml``."""
    if sweep_folder() is None:
        return
    from hydra.core.hydra_config import HydraConfig

    file = Path(HydraConfig.get().sweep.dir) / "multirun.yaml"
    if not file.exists():
        return
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    temporary.write_text(public_yaml(file.read_text("utf-8")), "utf-8")
    temporary.replace(file)


def public_yaml(text: str) -> str:
    """Return the YAML of a composed configuration without credentials. Comments at its beginning are kept."""
    import yaml

    document = yaml.safe_load(text)
    if not isinstance(document, Mapping):
        return text
    public = cast("dict[str, Any]", redacted(document))
    hydra: dict[str, Any] = public.get("hydra") or {}
    if hydra.get("overrides"):
        words = [redacted_override(str(word)) for word in document["hydra"]["overrides"].get("task") or []]
        hydra["overrides"]["task"] = words
        hydra["job"]["override_dirname"] = ",".join(words)
    comments = [line for line in text.splitlines(keepends=True) if line.startswith("#")]
    return "".join(comments) + yaml.safe_dump(public, sort_keys=False, allow_unicode=True)
