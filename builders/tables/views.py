"""Built rows → the published shapes: one nested row in, flat rows out, constant memory.

    candidates     one row a candidate, with the documented column names
    dpo            prompt, chosen, rejected (conversational, explicit prompt), tools
    reward_model   the same sides without a prompt column: TRL's RewardTrainer prepends it (trl 1.16)
    kto            prompt, completion, label: every conclusive candidate that the pairs' rules would take
    sft            prompt, completion: the best verified candidate that they would take
    prm            prompt, completions, labels: the steps that a process reward graded
    grpo           prompt and reference, for on-policy training

A query belongs to ``train`` or ``test`` by the hash of its prompt, so no prompt is on both sides. The column names
prompt, chosen, rejected, completion and messages carry conversations only: TRL takes any of them for its format check.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.trainable import trainable, trainable_message
from bestofn.builders.records import content_text, with_system_text
from bestofn.builders.tables import parquet_files
from bestofn.builders.tables.arrow_rows import from_table
from bestofn.builders.tables.parquet_files import Writer, table_files

Rows = Iterator[dict[str, Any]]
READ_ROWS, READ_BYTES = 64, 8 << 20  # of a shard that are Python objects at once; bytes are Arrow's
WAITING_ROWS, WAITING_BYTES = 300, 12 << 20  # over all views: rows as Python objects; bytes of Arrow in row groups


def candidates(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """One flat row a candidate."""
    ranks = _ranks(row)
    conclusive = [verdict["outcome"] for verdict in row["verdicts"] if verdict["outcome"] in ("pass", "fail")]
    pass_rate = conclusive.count("pass") / len(conclusive) if conclusive else None
    sampling = (run.get("config") or {}).get("sampling") or {}
    question = _question(row["messages"])
    first_with: dict[str, int] = {}
    everything = zip(row["candidates"], row["verdicts"], row["scores"], ranks, strict=True)
    for candidate, verdict, score, rank in everything:
        detail = verdict["detail"] or {}
        refusal = detail.get("refusal") or {}
        usage = candidate["usage"] or {}
        answer = _answer(candidate["messages"])
        reference = row["reference"] or {}
        trace = _json([trainable_message(message) for message in candidate["messages"]])
        twin = first_with.setdefault(trace, candidate["index"]) if candidate["messages"] else candidate["index"]
        yield {
            "query_id": row["query_id"],
            "candidate_idx": candidate["index"],
            "split": row["split"],
            "category": (row["metadata"] or {}).get("category"),
            "source_dataset": row["source"],
            "question": question,
            "input_messages": _json(row["messages"]),
            "output_messages": _json(candidate["messages"]),
            "tools": _json(row["tools"]) if row["tools"] else None,
            "answer": answer,
            "thinking": candidate["reasoning"],
            "ground_truth_answer": reference.get("answer"),
            "ground_truth_source": reference.get("source"),
            "is_verified": verdict["outcome"] == "pass",
            "verification_status": verdict["outcome"],
            "verification_confidence": verdict["confidence"],
            "verification_explanation": verdict["explanation"],
            "verification_method": detail.get("method"),
            "verifier_name": verdict["verifier"],
            "verification_detail": _json(detail),
            "verification_seconds": verdict["seconds"],
            "verification_is_verified": verdict["outcome"] == "pass",
            "verification_score": verdict["confidence"],
            "verification_info": verdict["explanation"],
            **_judge(verdict),
            **_retry(candidate),
            "answer_cluster": answer_cluster(candidate, detail),
            "is_duplicate_of": twin if twin != candidate["index"] else None,
            "refusal_is_refusal": bool(refusal.get("is_refusal")),
            "refusal_confidence": float(refusal.get("confidence") or 0.0),
            "refusal_type": refusal.get("refusal_type"),
            "refusal_matched_patterns": _json(refusal.get("matched_patterns") or []),
            **_quality(answer, candidate),
            "reward_final": score["value"],
            "reward_parts": _json(score["parts"] or {}),
            "rank": rank,
            "group_pass_rate": pass_rate,
            "finish_reason": candidate["stop_reason"],
            "generation_error": candidate["error"] or None,
            "model": candidate["model"],
            "temperature": 0.0 if candidate["arm"] == "greedy" else sampling.get("temperature"),
            "max_tokens": sampling.get("max_tokens"),
            "seed": candidate["seed"],
            "arm": candidate["arm"],
            "variant": candidate["variant"],
            "attempt": candidate["attempt"],
            **_adaptive(candidate),
            "logprob": candidate["logprob"],
            "usage_prompt_tokens": usage.get("prompt"),
            "usage_completion_tokens": usage.get("completion"),
            "usage_cached_tokens": usage.get("cached"),
            "usage_reasoning_tokens": usage.get("reasoning"),
            "latency_s": candidate["seconds"],
            "cost_usd": candidate["cost_usd"],
        }


def dpo(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """One row a pair, with an explicit prompt."""
    for pair, chosen, rejected in _pairs(row):
        yield {
            "prompt": trainable(row["messages"]),
            "chosen": trainable(chosen["messages"]),
            "rejected": trainable(rejected["messages"]),
            "tools": _json(row["tools"]) if row["tools"] else None,
            **_pair_facts(row, pair),
        }


def reward_model(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """One row a pair, whole conversations on both sides; ``margin`` in every row."""
    for pair, chosen, rejected in _pairs(row):
        yield {
            "chosen": trainable([*row["messages"], *chosen["messages"]]),
            "rejected": trainable([*row["messages"], *rejected["messages"]]),
            "tools": _json(row["tools"]) if row["tools"] else None,
            **_pair_facts(row, pair),
        }


def kto(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """One row a candidate that passed or failed and may be taught.

    A text that was said again counts once, and not at all when it both passed and failed.
    """
    judged = [
        (_json([trainable_message(message) for message in candidate["messages"]]), candidate, verdict)
        for candidate, verdict in zip(row["candidates"], row["verdicts"], strict=True)
        if verdict["outcome"] in ("pass", "fail")
    ]
    refuted = {trace for trace, _, verdict in judged if verdict["outcome"] == "fail"}
    seen = refuted & {trace for trace, _, verdict in judged if verdict["outcome"] == "pass"}
    for trace, candidate, verdict in judged:
        if trace not in seen and _teachable(candidate, verdict, run):
            seen.add(trace)
            yield {
                "prompt": trainable(row["messages"]),
                "completion": trainable(candidate["messages"]),
                "label": verdict["outcome"] == "pass",
                "tools": _json(row["tools"]) if row["tools"] else None,
                "query_id": row["query_id"],
                "split_name": row["split"],
                "candidate_idx": candidate["index"],
            }


def sft(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """The best verified candidate of a query, if it has one (rejection sampling)."""
    ranks = _ranks(row)
    passed = [
        (rank, candidate)
        for candidate, verdict, rank in zip(row["candidates"], row["verdicts"], ranks, strict=True)
        if verdict["outcome"] == "pass" and _teachable(candidate, verdict, run)
    ]
    for _, best in sorted(passed, key=lambda pair: pair[0])[:1]:
        yield {
            "prompt": trainable(row["messages"]),
            "completion": trainable(best["messages"]),
            "tools": _json(row["tools"]) if row["tools"] else None,
            "query_id": row["query_id"],
            "split_name": row["split"],
            "candidate_idx": best["index"],
        }


def prm(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """One row a candidate whose steps were graded (``parts["steps"]`` of a reward, also within a weighted one).

    A step is right from a chance of 0.5 on; ``scores`` keeps the chances.
    """
    for candidate, score in zip(row["candidates"], row["scores"], strict=True):
        steps = _steps(score["parts"] or {})
        if steps and _usable(candidate):
            yield {
                "prompt": trainable(row["messages"]),
                "completions": [str(step["text"]) for step in steps],
                "labels": [step["score"] >= 0.5 for step in steps],
                "scores": [float(step["score"]) for step in steps],
                "query_id": row["query_id"],
                "split_name": row["split"],
                "candidate_idx": candidate["index"],
            }


def grpo(row: Mapping[str, Any], run: Mapping[str, Any]) -> Rows:
    """The prompt with all that a verifier needs to judge new answers to it."""
    yield {
        "prompt": trainable(row["messages"]),
        "query_id": row["query_id"],
        "split_name": row["split"],
        "tools": _json(row["tools"]) if row["tools"] else None,
        "reference": _json(row["reference"] or {}),
    }


CANDIDATE_COLUMNS = """
query_id:s candidate_idx:i split:s category:s source_dataset:s question:s input_messages:s output_messages:s tools:s
answer:s thinking:s ground_truth_answer:s ground_truth_source:s is_verified:b verification_status:s
verification_confidence:f verification_explanation:s verification_method:s verifier_name:s verification_detail:s
verification_seconds:f verification_is_verified:b verification_score:f verification_info:s
verification_llm_judge_used:b verification_llm_judge_failed:b verification_is_retry:b
verification_retry_of_candidate_idx:i verification_retry_reason:s
answer_cluster:s is_duplicate_of:i refusal_is_refusal:b refusal_confidence:f
refusal_type:s refusal_matched_patterns:s quality_answer_length:i quality_reasoning_length:i
quality_total_response_length:i quality_has_reasoning:b quality_is_short_answer:b quality_is_substantive:b
quality_is_empty:b quality_completeness_score:f reward_final:f reward_parts:s rank:i group_pass_rate:f finish_reason:s
generation_error:s model:s temperature:f max_tokens:i seed:i arm:s variant:s attempt:i n_used:i n_fixed:i logprob:f
usage_prompt_tokens:i usage_completion_tokens:i usage_cached_tokens:i usage_reasoning_tokens:i latency_s:f cost_usd:f
"""  # column:kind, s text, i integer, f number, b truth

VIEWS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Rows]] = {
    "candidates": candidates,
    "dpo": dpo,
    "reward_model": reward_model,
    "kto": kto,
    "sft": sft,
    "prm": prm,
    "grpo": grpo,
}


def view_features(name: str) -> Any:
    """The datasets features of a view."""
    from datasets import Features, Json, List, Value

    text, integer, number, flag = Value("string"), Value("int64"), Value("float64"), Value("bool")
    talk = List(Json())
    pair = {
        "tools": text,
        "query_id": text,
        "split_name": text,
        "chosen_idx": integer,
        "rejected_idx": integer,
        "score_chosen": number,
        "score_rejected": number,
        "margin": number,
        "reason": text,
    }
    one = {"tools": text, "query_id": text, "split_name": text, "candidate_idx": integer}
    shapes: dict[str, dict[str, Any]] = {
        "dpo": {"prompt": talk, "chosen": talk, "rejected": talk, **pair},
        "reward_model": {"chosen": talk, "rejected": talk, **pair},
        "kto": {"prompt": talk, "completion": talk, "label": flag, **one},
        "sft": {"prompt": talk, "completion": talk, **one},
        "prm": {
            "prompt": talk,
            "completions": List(text),
            "labels": List(flag),
            "scores": List(number),
            "query_id": text,
            "split_name": text,
            "candidate_idx": integer,
        },
        "grpo": {"prompt": talk, "query_id": text, "split_name": text, "tools": text, "reference": text},
        "candidates": {
            column: {"s": text, "i": integer, "f": number, "b": flag}[kind]
            for column, kind in (word.split(":") for word in CANDIDATE_COLUMNS.split())
        },
    }
    return Features(shapes[name])


def side_of(row: Mapping[str, Any], test_share: float) -> str:
    """``train`` or ``test`` by the hash of the prompt, so that repeats of it fall on one side, in whatever form."""
    prompt = json.dumps(trainable(row["messages"]), sort_keys=True, default=str)
    digest = hashlib.sha256(prompt.encode("utf-8", "replace")).digest()
    return "test" if int.from_bytes(digest[:8], "big") / 2**64 < test_share else "train"


def write_views(
    parts: Sequence[Path], out: Path, run: Mapping[str, Any], names: Iterable[str] = VIEWS, system: str = ""
) -> dict[str, int]:
    """Write every view of the finished shards below ``out`` in one pass; returns rows by ``view`` or ``view/side``.

    ``candidates/data.parquet`` holds all; the training views have ``train.parquet`` and, unless empty, a
    ``test.parquet``. A table past ``parquet_files.FILE_BYTES`` is several files. The prompts of the training views
    begin with ``system`` (a persona), unless it is empty.
    """
    test_share = float((run.get("config") or {}).get("test_share") or 0.0)
    metadata = schema_metadata({**run, **totals(parts)})

    def writer_of(name: str, side: str) -> Writer:
        return Writer(out / name / f"{side}.parquet", view_features(name), metadata, parquet_files.FILE_BYTES)

    for left in (file for name in names for file in (out / name).glob("*.tmp")):  # by a run that was killed
        left.unlink()
    with contextlib.ExitStack() as stack:
        writers = {
            (name, side): stack.enter_context(writer_of(name, side))
            for name in names
            for side in (("data",) if name == "candidates" else ("train", "test"))
        }
        read = 0
        for batch, size in _batches(parts):
            for row in batch:
                side = side_of(row, test_share)
                spoken = {**row, "messages": with_system_text(row["messages"], system)} if system else row
                for name in names:
                    writer = writers[(name, "data" if name == "candidates" else side)]
                    for flat in VIEWS[name](row if name == "candidates" else spoken, run):
                        writer.add(flat)
                if sum(writer.rows for writer in writers.values()) >= WAITING_ROWS:
                    max(writers.values(), key=lambda writer: writer.rows).flush()
                if sum(writer.waiting for writer in writers.values()) >= WAITING_BYTES:
                    max(writers.values(), key=lambda writer: writer.waiting).end_group()
            read += size
            if read >= READ_BYTES:
                read = 0
                for writer in writers.values():
                    writer.flush()
    counts = {}
    for (name, side), writer in writers.items():
        optional = name == "prm" or side == "test"
        if writer.count or not optional:
            counts[name if side == "data" else f"{name}/{side}"] = writer.count
        else:
            writer.path.unlink()
    if (out / "prm").is_dir() and not table_files(out / "prm", "train"):
        with contextlib.suppress(OSError):
            (out / "prm").rmdir()
    return counts


def totals(parts: Sequence[Path]) -> dict[str, Any]:
    """Queries, candidates and the share verified in nested shards; reads the outcomes alone."""
    import pyarrow.parquet as pq

    queries = 0
    outcomes: Counter[str] = Counter()
    for part in parts:
        with pq.ParquetFile(part) as file:
            column = file.read(columns=["verdicts.list.element.outcome"])["verdicts"]
        queries += len(column)
        outcomes.update(verdict["outcome"] for row in column.to_pylist() for verdict in row or ())
    count = sum(outcomes.values())
    rate = round(outcomes["pass"] / count, 6) if count else None
    return {"queries": queries, "candidates": count, "avg_verification_rate": rate}


def parts_of(run: Path) -> list[Path]:
    """The finished shards in a run's folder, in their order. Raises ``ConfigError`` when there is none."""
    parts = sorted((run / "shards").glob("*.parquet"), key=lambda part: (len(part.name), part.name))
    if not parts:
        raise ConfigError(f"{run} holds no finished shard; expected the folder of a `bestofn build`.")
    return parts


def nested(parts: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The rows of nested shards, a batch in memory at a time."""
    for batch, _ in _batches(parts):
        yield from batch


def _batches(parts: Sequence[Path]) -> Iterator[tuple[Sequence[dict[str, Any]], int]]:
    """The rows of nested shards and the bytes that they are in Arrow, few of long rows at once."""
    import pyarrow.parquet as pq
    from datasets import Features

    for part in parts:
        with pq.ParquetFile(part) as file:
            features = Features.from_arrow_schema(file.schema_arrow)
            size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
            at_once = READ_BYTES * file.metadata.num_rows // max(1, size)
            for batch in file.iter_batches(batch_size=max(1, min(READ_ROWS, at_once))):
                yield from_table(batch, features), batch.nbytes


def schema_metadata(run: Mapping[str, Any]) -> dict[str, str]:
    """What every Parquet file says of its run in its own schema (CFG-6)."""
    config = run.get("config") or {}
    provider = config.get("provider") or {}
    sampling = config.get("sampling") or {}
    facts = {
        "schema_version": run.get("schema_version"),
        "generated_at": run.get("updated_at"),
        "model": provider.get("model") or provider.get("path"),
        "num_candidates": config.get("n"),
        "temperature": sampling.get("temperature"),
        "max_tokens": sampling.get("max_tokens"),
        "seed": config.get("seed"),
        "splits": (config.get("dataset") or {}).get("splits"),
        "total_queries": run.get("queries"),
        "total_records": run.get("candidates"),
        "avg_verification_rate": run.get("avg_verification_rate"),
        "config_file": config.get("config_file"),
        "persona": (config.get("persona") or {}).get("name") or (config.get("persona") or {}).get("path"),
        "notes": config.get("notes"),
        "versions": run.get("versions"),
        "config": config,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for key, value in facts.items()
        if value is not None
    }


def _pairs(row: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
    by_index = {candidate["index"]: candidate for candidate in row["candidates"]}
    for pair in row["pairs"]:
        yield pair, by_index[pair["chosen"]], by_index[pair["rejected"]]


def _pair_facts(row: Mapping[str, Any], pair: Mapping[str, Any]) -> dict[str, Any]:
    scores = {c["index"]: s["value"] for c, s in zip(row["candidates"], row["scores"], strict=True)}
    return {
        "query_id": row["query_id"],
        "split_name": row["split"],
        "chosen_idx": pair["chosen"],
        "rejected_idx": pair["rejected"],
        "score_chosen": scores[pair["chosen"]],
        "score_rejected": scores[pair["rejected"]],
        "margin": pair["margin"],
        "reason": pair["reason"],
    }


def _usable(candidate: Mapping[str, Any]) -> bool:
    return not candidate["error"] and bool(candidate["messages"])


def _teachable(candidate: Mapping[str, Any], verdict: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Whether an answer may be learned from by itself: what ``PairRules`` keeps out of pairs stays out here too."""
    rules = ((run.get("config") or {}).get("pairs") or {}).get("rules") or {}
    refusal = (verdict["detail"] or {}).get("refusal") or {}
    results = (candidate.get("detail") or {}).get("tool_results") or ()
    refused = refusal.get("is_refusal") or candidate["stop_reason"] in ("refusal", "content_filter")
    said = any(content_text(m.get("content")).strip() or m.get("tool_calls") for m in candidate["messages"])
    return _usable(candidate) and (
        said
        and (rules.get("truncated") or candidate["stop_reason"] != "length")
        and (rules.get("refused") or refusal.get("right") or not refused)
        and (rules.get("made_up_tools") or not any(result.get("source") == "llm" for result in results))
        and (rules.get("greedy") or candidate.get("arm") != "greedy")
    )


def _ranks(row: Mapping[str, Any]) -> list[int]:
    """Rank 0 is the highest score; a missing score comes last; ties keep the order of the candidates."""
    values = [score["value"] for score in row["scores"]]
    order = sorted(range(len(values)), key=lambda i: (values[i] is None, -(values[i] or 0.0), i))
    ranks = [0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks


def _quality(answer: str, candidate: Mapping[str, Any]) -> dict[str, Any]:
    reasoning = candidate["reasoning"] or ""
    return {
        "quality_answer_length": len(answer),
        "quality_reasoning_length": len(reasoning),
        "quality_total_response_length": len(answer) + len(reasoning),
        "quality_has_reasoning": bool(reasoning),
        "quality_is_short_answer": len(answer) < 50,
        "quality_is_substantive": len(reasoning) > 100 or len(answer) > 50,
        "quality_completeness_score": _completeness(answer, candidate),
        "quality_is_empty": not answer and not any(m.get("tool_calls") for m in candidate["messages"]),
    }


def _judge(verdict: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a model was asked for the verdict, beside a program (a cascade says so) or alone, and whether in vain."""
    detail = verdict["detail"] or {}
    alone = "judge_model" in detail
    failed = detail.get("llm_judge_failed") or (alone and verdict["outcome"] == "error")
    return {
        "verification_llm_judge_used": alone or bool(detail.get("llm_judge_used")),
        "verification_llm_judge_failed": bool(failed),
    }


def _retry(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the answer took the place of one that refused for want of a tool."""
    retry = (candidate["detail"] or {}).get("retry") or {}
    return {
        "verification_is_retry": bool(retry.get("is_retry")),
        "verification_retry_of_candidate_idx": retry.get("retry_of_candidate_idx"),
        "verification_retry_reason": retry.get("retry_reason"),
    }


def _adaptive(candidate: Mapping[str, Any]) -> dict[str, int | None]:
    """How many samples adaptive sampling drew, and how many of them whatever it found; None without it."""
    told = (candidate["detail"] or {}).get("adaptive") or {}
    return {"n_used": told.get("n_used"), "n_fixed": told.get("n_fixed")}


def _completeness(answer: str, candidate: Mapping[str, Any]) -> float:
    """0 for nothing, 0.5 for an answer that was cut off or filtered, 1 for one that came to its end."""
    if candidate["error"] or not (answer or any(m.get("tool_calls") for m in candidate["messages"])):
        return 0.0
    return 1.0 if candidate["stop_reason"] in ("stop", "tool_calls") else 0.5


def answer_cluster(candidate: Mapping[str, Any], detail: Mapping[str, Any]) -> str | None:
    """What two answers share when they come to the same: the verifier's canonical form, else the evened-out text."""
    if candidate["error"] or not candidate["messages"]:
        return None
    form = detail.get("answer_form")
    if form is None:
        calls = [call.get("function") for m in candidate["messages"] for call in m.get("tool_calls") or ()]
        form = " ".join(_answer(candidate["messages"]).lower().split()) + (_json(calls) if calls else "")
    form = str(form)
    return form if len(form) <= 80 else hashlib.sha256(form.encode("utf-8", "replace")).hexdigest()[:16]


def _steps(parts: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if parts.get("steps"):
        return parts["steps"]
    details = parts.get("detail") or {}
    return next((part["steps"] for part in details.values() if isinstance(part, Mapping) and part.get("steps")), ())


def _question(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            return content_text(message.get("content"))
    return ""


def _answer(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return content_text(message.get("content"))
    return ""


_SPACED = json.JSONEncoder(ensure_ascii=False, default=str)


def _json(value: Any) -> str:
    return _SPACED.encode(value)
