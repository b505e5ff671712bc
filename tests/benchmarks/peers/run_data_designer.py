"""NeMo Data Designer: n columns with the same prompt, because a cell has one completion.

pip install 'data-designer==0.9.6' aiohttp
"""

from __future__ import annotations

import os

from work import MODEL, N, Work, given_work


def run(work: Work) -> None:
    """Sample all completions with text columns over a seed dataset."""
    os.environ.update(NEMO_TELEMETRY_ENABLED="false", SPEED_API_KEY="none")
    import data_designer.config as dd  # type: ignore[import-not-found]
    import pandas as pd
    from data_designer.interface import DataDesigner  # type: ignore[import-not-found]

    model = dd.ModelConfig(
        alias="mock",
        model=MODEL,
        provider="mock",
        inference_parameters=dd.ChatCompletionInferenceParams(
            temperature=0.7, max_tokens=256, max_parallel_requests=work.concurrency
        ),
    )
    columns = dd.DataDesignerConfigBuilder(model_configs=[model])
    columns.with_seed_dataset(dd.DataFrameSeedSource(df=pd.DataFrame({"question": list(work.prompts)})))
    for number in range(N):
        columns.add_column(dd.LLMTextColumnConfig(name=f"answer_{number}", model_alias="mock", prompt="{{ question }}"))
    provider = dd.ModelProvider(name="mock", endpoint=work.url, provider_type="openai", api_key="SPEED_API_KEY")
    engine = DataDesigner(artifact_path=os.getcwd(), model_providers=[provider])
    engine.create(columns, num_records=len(work.prompts), dataset_name="speed")


if __name__ == "__main__":
    run(given_work())
