"""The order of the test files, and the processes that run them, when several processes run the tests."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

TRAINING = (  # files that import TRL or the models of Transformers, longest first
    "component/test_loop_settings.py",
    "component/test_trainers.py",
    "scripts/test_documented_commands.py",
    "scripts/test_documentation.py",
    "component/test_exports_train.py",
    "component/test_model_reward.py",
    "component/test_lora.py",
    "builders/pocket/test_training.py",
    "component/test_decoding.py",
    "component/test_local_transformers.py",
    "component/test_serving.py",
    "component/test_serving_clients.py",
    "component/test_serving_rewards.py",
    "component/test_tool_dialogues.py",
    "component/test_other_turns.py",
    "component/test_process_models.py",
    "component/test_harmony_model.py",
    "end_to_end/test_best_of_n_by_reward.py",
    "reward/test_rollout_reward.py",
    "scripts/test_loop.py",
)
OTHERS = (  # further files of 15 s or more, longest first: if one of them comes last, the other processes wait for it
    "sandbox/test_isolation.py",
    "end_to_end/test_examples.py",
    "component/test_faults.py",
    "component/test_ray_executor.py",
    "builders/test_conf.py",
    "end_to_end/test_build.py",
    "end_to_end/test_server_clients.py",
    "component/test_batch_faults.py",
    "properties/test_pair_properties.py",
    "end_to_end/test_installed.py",
    "component/test_kill.py",
    "builders/sources/test_shipped_mappings.py",
    "component/test_push.py",
    "sandbox/test_compiled_languages.py",
    "scripts/test_init.py",
    "builders/run/test_damaged_files.py",
    "component/test_clouds.py",
    "scripts/test_extending.py",
    "sandbox/test_javascript_driver.py",
    "scripts/test_contributing.py",
    "sandbox/test_after_failures.py",
    "component/test_batch_mode.py",
    "builders/tables/test_parquet_files.py",
    "sandbox/test_idioms.py",
    "end_to_end/test_experiments.py",
    "builders/run/test_first_rows.py",
    "documents/test_forms_of_the_documents.py",
    "component/test_accessibility.py",
)
LONGEST_FIRST = (*TRAINING, *OTHERS)


class FilesByLibrary(LoadFileScheduling):
    """Runs each file in one process, and the files of ``TRAINING`` in every second process while other files are left.

    The first test that trains a model needs 9 s of CPU time for imports. This time is spent in half of the processes.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        trains = self.nodes.index(node) % 2 == 0
        fitting = (scope for scope in self.workqueue if (scope.removeprefix("tests/") in TRAINING) == trains)
        first = next(fitting, None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
