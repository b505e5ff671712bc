"""The lines that show the progress of a training."""

from __future__ import annotations

from bestofn.builders.training.progress import line


def test_a_line_names_steps_measures_and_times() -> None:
    measures = {"loss": 0.5314, "rewards/accuracies": 0.75}
    assert line(5, 20, measures, 65.2, 195.6) == "step 5 of 20 | loss 0.531 | accuracy 0.750 | time 1:05 | left 3:15"
    assert line(20, 20, {}, 65.2, 0.0) == "step 20 of 20 | time 1:05"
