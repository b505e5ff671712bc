"""Shows the progress of a training, one line at a time, instead of the progress bars of the libraries.

``training.trainers`` uses this module. The lines are written to standard error.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

EVERY_S = 5.0
MEASURES = {"loss": "loss", "rewards/accuracies": "accuracy", "accuracy": "accuracy", "reward": "reward"}


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Hide the progress bars and the deprecation warnings of Transformers and Datasets inside the block."""
    import datasets
    from transformers.utils import logging

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
        bars = datasets.are_progress_bars_disabled(), logging.is_progress_bar_enabled()
        datasets.disable_progress_bars()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if not bars[0]:
                datasets.enable_progress_bars()
            if bars[1]:
                logging.enable_progress_bar()


def show_progress(trainer: Any) -> None:
    """Print the progress of ``trainer``, a trainer of Transformers, at most once per ``EVERY_S`` seconds."""
    from transformers import PrinterCallback, TrainerCallback

    class Lines(TrainerCallback):
        def __init__(self) -> None:
            self.started = self.printed = time.monotonic()
            self.first_step = 0
            self.measures: dict[str, float] = {}

        def on_train_begin(self, args: Any, state: Any, control: Any, **further: Any) -> None:
            self.started, self.first_step = time.monotonic(), state.global_step

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **further: Any) -> None:
            self.measures |= {key: float(logs[key]) for key in MEASURES if key in (logs or {})}

        def on_step_end(self, args: Any, state: Any, control: Any, **further: Any) -> None:
            now = time.monotonic()
            if now - self.printed >= EVERY_S or state.global_step == state.max_steps:
                self.printed = now
                seconds = now - self.started
                left = seconds / (state.global_step - self.first_step) * (state.max_steps - state.global_step)
                print(line(state.global_step, state.max_steps, self.measures, seconds, left), file=sys.stderr)

    trainer.remove_callback(PrinterCallback)  # prints every log as a dict
    trainer.add_callback(Lines())


def line(step: int, steps: int, measures: Mapping[str, float], seconds: float, left: float) -> str:
    """Return one line about a training: ``step 5 of 20 | loss 0.531 | time 0:05 | left 0:15``."""
    shown = {MEASURES[key]: value for key, value in measures.items()}
    parts = [f"step {step} of {steps}", *(f"{name} {value:.3f}" for name, value in shown.items())]
    parts.append(f"time {_clock(seconds)}")
    if left >= 1:
        parts.append(f"left {_clock(left)}")
    return " | ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"
