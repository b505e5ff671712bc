"""Builds the payload that the host sends to a new box: the Python modules for the box, and its settings.

``Box.start`` sends the payload. In the box, ``BOOT`` receives it: a loader that is small enough for ``python -c``.
Therefore a Docker image needs no code of bestofn.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from bestofn.sandbox.inside.settings import BoxSettings

_HERE = Path(__file__).resolve().parent

BOOT = """
import marshal, os, sys
from importlib.machinery import ModuleSpec
def take(count):
    got = b""
    while len(got) < count:
        part = os.read(0, count - len(got))
        if not part: os._exit(0)
        got += part
    return got
out, compiled = os.pipe()
if not os.fork():
    import json
    sent = json.loads(take(int.from_bytes(take(4), "little")))
    for name, source in sent["modules"].items():
        sent["modules"][name] = compile(source, name, "exec", optimize=2)
    with open(compiled, "wb") as file: file.write(marshal.dumps(sent))
    os._exit(0)
os.close(compiled)
with open(out, "rb") as file: sent = file.read()
os.wait()
if not sent: os._exit(0)
sent = marshal.loads(sent)
class Sent:
    def find_spec(self, name, path=None, target=None):
        if name in sent["modules"]:
            return ModuleSpec(name, self, is_package=name in sent["packages"])
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(sent["modules"].pop(module.__name__), module.__dict__)
sys.meta_path.insert(0, Sent())
from bestofn.sandbox.inside.start import start
del sys.meta_path[0], sent["modules"]
start(sent["settings"])
"""

COMMAND = ("-s", "-S", "-P", "-X", "utf8", "-c", BOOT)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # so that the same program always gets the same verdict
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",  # numpy starts one thread per processor otherwise, beyond the limits of a program
    "OMP_NUM_THREADS": "1",
}


@cache
def _modules() -> tuple[dict[str, str], list[str]]:
    """Return the source code of each module by module name, and the names of the packages."""
    packages = ["bestofn", "bestofn.sandbox", "bestofn.sandbox.inside", "bestofn.sandbox.languages"]
    modules = dict.fromkeys(packages[:2], "")
    for package in packages[2:]:
        for path in sorted((_HERE / package.rpartition(".")[2]).glob("*.py")):
            name = package if path.stem == "__init__" else f"{package}.{path.stem}"
            modules[name] = path.read_text(encoding="utf-8")
    return modules, packages


def payload(settings: BoxSettings) -> bytes:
    """Return the bytes that the loader reads: four bytes of length, then modules and settings as JSON."""
    modules, packages = _modules()
    body = json.dumps({"modules": modules, "packages": packages, "settings": settings}).encode()
    return len(body).to_bytes(4, "little") + body
