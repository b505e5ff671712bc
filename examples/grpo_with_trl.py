"""Train the embedded model with TRL's GRPOTrainer and a verifier as the reward: ten steps, a few seconds on a CPU.

For your own model: MODEL=Qwen/Qwen3-0.6B python grpo_with_trl.py
"""

import os
from pathlib import Path

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

import bestofn

EMBEDDED = Path(bestofn.__file__).parent / "builders" / "pocket" / "weights"


def main() -> None:
    """Train ten steps and print the mean reward of each step."""
    torch.set_num_threads(1)  # more threads do not make a model of this size faster
    rows = [
        {"prompt": [{"role": "user", "content": f"What is {a} + {b}?"}], "solution": str(a + b)}
        for a in range(11, 21)
        for b in range(12, 18)
    ]
    settings = GRPOConfig(
        "grpo-run",
        max_steps=10,
        per_device_train_batch_size=16,
        num_generations=8,
        max_completion_length=48,
        learning_rate=1e-5,
        gradient_checkpointing=False,
        logging_steps=1,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
    )
    reward = bestofn.grpo_reward("math", reference="solution", workers=2)
    model = os.environ.get("MODEL", str(EMBEDDED))
    trainer = GRPOTrainer(model, reward_funcs=reward, args=settings, train_dataset=Dataset.from_list(rows))
    trainer.train()
    means = [log["rewards/verified_math/mean"] for log in trainer.state.log_history if "reward" in log]
    print("mean reward per step:", " ".join(f"{mean:.2f}" for mean in means))


if __name__ == "__main__":  # the worker processes do not run this file again
    main()
