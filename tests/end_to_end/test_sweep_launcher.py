"""A sweep with Hydra's submitit launcher, which starts each job in its own process, as on Slurm."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback import OpenAIServer

pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
ROOT = Path(__file__).resolve().parents[2]


def test_jobs_of_a_sweep_run_under_submitit_and_share_a_journal(tmp_path: Path) -> None:
    data = tmp_path / "sums.jsonl"
    rows = ({"id": f"q{i}", "question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(6))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with OpenAIServer() as server:
        words = [sys.executable, "-m", "bestofn.scripts.build", "-m", "n=1,3", "hydra/launcher=submitit_local"]
        words += [f"hydra.sweep.dir={tmp_path / 'sweep'}", "dataset=jsonl", f"dataset.path={data}", "sandbox=none"]
        words += ["provider=openai_chat", f"provider.base_url={server.url}", "provider.model=m", "tools=none"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(server.asked) == 6
        assert server.completions == 6 * 3, "the jobs run at once; none requests a sample that the other one requests"
    for n in (1, 3):
        described = json.loads((tmp_path / "sweep" / f"n={n}" / "manifest.json").read_text())
        assert described["state"] == "complete"
        assert described["views"]["candidates"] == 6 * n
    assert (tmp_path / "sweep" / "journal.sqlite").exists()
