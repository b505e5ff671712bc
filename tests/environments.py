"""Creates virtual environments that use the packages of the test environment, so that little must be installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def borrowing_environment(home: Path) -> Path:
    """Create an environment without pip and return its interpreter, which can also import the packages of the tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin/python"
    ask = "import site; print(site.getsitepackages()[0])"
    inside = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (Path(inside) / "borrowed.pth").write_text("\n".join(lent) + "\n", "utf-8")
    return python


def pip(python: Path, *words: str | Path) -> list[str | Path]:
    """Return the command that runs pip for an environment without pip.

    Packages of the test environment count as installed.
    """
    return [sys.executable, "-m", "pip", "--python", python, *words]
