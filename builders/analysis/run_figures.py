"""Computes the table of figures of a run (``analysis.figures``) in one pass over its candidates.

``figures_of_run`` reads a run. ``Tally`` adds up blocks of queries; the live report adds the shards of a running build
to it. Per candidate, it keeps 9 bytes in memory.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bestofn.builders.analysis.audit import OpinionJson, read_figures
from bestofn.builders.analysis.candidates import Block, Draws, Flags, block_of_rows, blocks_of_table, numbers
from bestofn.builders.analysis.figures import (
    OUTCOMES,
    Cost,
    Figures,
    Index,
    ModelCost,
    Pairs,
    Rates,
    Reasons,
    Scores,
)
from bestofn.builders.analysis.problems import CUT, EMPTY, RAISED, REFUSED, problems
from bestofn.builders.errors import kind_of, names_failed_request
from bestofn.builders.formats.verdict_texts import RUNS_DISAGREE
from bestofn.builders.pairing.basis import VERIFIED, provenance
from bestofn.builders.pairing.rules import messages_length
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.statistics import estimators
from bestofn.builders.statistics.descriptive import Histogram, histogram, share
from bestofn.builders.statistics.eligibility import FIRST_MODEL
from bestofn.builders.statistics.estimators import CurvePoint, mean_point
from bestofn.builders.statistics.intervals import RESAMPLES
from bestofn.builders.statistics.subsets import Floats, Integers, best_of_k
from bestofn.builders.tables import candidate_table, shards
from bestofn.builders.tables.checksums import check_tables
from bestofn.builders.tables.made_with import COUNTED, MadeWithTally
from bestofn.builders.tables.parquet_files import file_side, opened, table_files

SHOWN_METADATA = ("generated_at", "notes")
TOO_FEW = "too few answers"  # the reason why pass@k leaves out the draws of a query with fewer than k of them
CAUSE_CHARS = 160
MOST_TEXTS = 1_000  # texts that are counted separately; further ones are counted together
MOST_METHODS = 200  # kinds of verdicts that are counted separately
MOST_MODELS = 50  # models that are counted separately
SHOWN_REASONS = 10
QUERIES_AT_ONCE = 256
PAIRS_AT_ONCE = 256
PAIR_COLUMNS = ["chosen", "rejected", "margin", "reason", "provenance"]
SAMPLED_PAIRS = 20_000  # pairs whose margins and lengths are in the histograms
DIFFICULTY_BINS = 20


def figures_of_run(run: Path, manifest: Row | None = None, *, resamples: int = RESAMPLES) -> Figures:
    """Return the figures of ``run``, which is a run folder or a Parquet file of candidates.

    If ``manifest`` shows that the run is unfinished, the finished shards are read, because the tables are written last.
    Otherwise the candidates table is read. ``resamples`` is the number of bootstrap resamples per interval. Raises
    ``SourceError`` if this table does not exist.
    """
    if manifest is not None and manifest.get("state") != "complete":
        tally, pairs = Tally(run.name), PairTally()
        rows = shards.nested(shards.parts_of(run))
        while some := list(itertools.islice(rows, QUERIES_AT_ONCE)):
            tally.add_rows(some)
            pairs.add_rows(some)
        return tally.figures(pairs, resamples=resamples)
    table = candidate_table.read(run)
    tally = Tally(table.name, table.metadata)
    for block in blocks_of_table(table):
        tally.add(block)
    return tally.figures(pairs_of_run(run), read_figures(run), resamples=resamples)


class Tally:
    """Adds up the candidates of a run. ``metadata`` is the metadata of its candidates table."""

    def __init__(self, name: str = "", metadata: Mapping[str, str] | None = None) -> None:
        self.name, self.metadata = name, dict(metadata or {})
        self._made_with = MadeWithTally()
        self._splits: dict[str, int] = {}  # split -> its number
        self._split_of: list[Integers] = []  # the number of the split of each query, per block
        self._per_query: list[dict[str, Integers]] = []  # numbers of each query, per block
        self._counting: list[tuple[Floats, Flags]] = []  # (reward, right) of the draws that count towards pass@k
        self._outcomes: Counter[tuple[str, str]] = Counter()  # (split, outcome)
        self._indices: Counter[tuple[int, str]] = Counter()  # (index, outcome)
        self._left_out: Counter[tuple[str, str]] = Counter()  # (split, reason)
        self._methods: Counter[tuple[str, str]] = Counter()  # (verifier and method, outcome)
        self._verifiers: Counter[tuple[str, str]] = Counter()  # (split, verifier)
        self._counts: Counter[str] = Counter()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._texts: dict[str, Counter[str]] = {}
        self._first_failure = ""
        self._reward_examples: dict[str, str] = {}
        self._models: dict[tuple[str, str], ModelCost] = {}
        self._scores: list[tuple[float, float, float, float, int]] = []

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add queries as nested rows of a shard."""
        if block := block_of_rows(rows):
            self.add(block)

    def add(self, block: Block) -> None:
        """Add the queries of ``block``."""
        in_use = np.flatnonzero(block.in_use)
        rows = block.rows.take(in_use)
        splits = np.array(block.splits, object)
        row_splits, outcomes = splits[block.query[in_use]].tolist(), block.outcome[in_use]
        self._split_of.append(np.array([self._splits.setdefault(one, len(self._splits)) for one in block.splits]))
        self._add_queries(block, block.draws, splits)
        self._outcomes.update(zip(row_splits, outcomes.tolist(), strict=True))
        self._add_verdicts(rows, outcomes, row_splits)
        self._add_answers(rows, numbers(rows, "reward_final"))
        self._add_causes(rows, outcomes)
        self._add_costs(block)
        self._made_with.add_queries(np.bincount(block.query[in_use], minlength=len(block.ids)).tolist())
        columns = {name: rows[name].to_pylist() for name in (*COUNTED.values(), "timestamp", "generation_error")}
        self._made_with.add_candidates(columns, columns["timestamp"], columns["generation_error"])

    def _add_queries(self, block: Block, draws: Draws, splits: Any) -> None:
        size = len(block.ids)

        def per_query(chosen: Flags) -> Integers:
            return np.bincount(draws.query[chosen], minlength=size)

        first = draws.sampled & draws.conclusive & (draws.index == 0)
        self._per_query.append(
            {
                "draws": np.bincount(draws.query, minlength=size),
                "passes": per_query(draws.right),
                "sampled": per_query(draws.sampled),
                "first": per_query(first),
                "first_right": per_query(first & draws.right),
                "n": per_query(draws.counts),
                "c": per_query(draws.counts & draws.right),
                "cut": per_query(draws.counts & draws.truncated),
            }
        )
        self._counting.append((draws.reward[draws.counts], draws.right[draws.counts]))
        self._indices.update(zip(draws.index.tolist(), draws.outcome.tolist(), strict=True))
        left = np.flatnonzero(~draws.counts)
        reasons = np.select(
            [draws.greedy, ~draws.sampled, ~draws.independent], ["greedy", "other model", "adaptive"], draws.outcome
        )
        self._left_out.update(zip(splits[draws.query[left]].tolist(), reasons[left].tolist(), strict=True))
        self._add_redrawn(block, draws)
        self._add_mixes(block)
        scored = draws.where(draws.sampled & ~np.isnan(draws.reward))
        if len(scored.reward):
            counts = np.bincount(scored.query, minlength=size)
            best = np.full(size, -np.inf)
            np.maximum.at(best, scored.query, scored.reward)
            means = np.bincount(scored.query, scored.reward, size)[counts > 0] / counts[counts > 0]
            low, high = float(scored.reward.min()), float(scored.reward.max())
            self._scores.append((float(means.sum()), float(best[counts > 0].sum()), low, high, len(means)))

    def _add_redrawn(self, block: Block, draws: Draws) -> None:
        attempts = numbers(block.rows, "attempt", 0.0)
        for row in np.flatnonzero(block.in_use & (attempts > 0)):
            place = np.flatnonzero((draws.query == block.query[row]) & (draws.index == block.index[row]))[0]
            if draws.attempt[place] != attempts[row]:
                self._texts.setdefault("redrawn", Counter())[f"{draws.outcome[place]} -> {block.outcome[row]}"] += 1

    def _add_mixes(self, block: Block) -> None:
        """Count the queries by the verdicts of their candidates: a key of ``analysis.problems.REMEDIES``."""
        size, in_use = len(block.ids), block.in_use
        query, outcome = block.query[in_use], block.outcome[in_use]
        reward = numbers(block.rows, "reward_final")[in_use]
        lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
        np.fmin.at(lowest, query, reward)
        np.fmax.at(highest, query, reward)
        passes, fails, answers = (
            np.bincount(query[chosen], minlength=size) > 0
            for chosen in (outcome == "pass", outcome == "fail", block.answered[in_use])
        )
        kinds = np.select(
            [passes & fails, passes, fails, ~answers, lowest < highest],
            ["passes and fails", "only passes", "only fails", "no answer", "different scores and no verdict"],
            "no verdict of pass or fail",
        )
        self._texts.setdefault("mixes", Counter()).update(kinds.tolist())

    def _add_verdicts(self, rows: Any, outcomes: Any, splits: Sequence[str]) -> None:
        verifiers = [name or "" for name in rows["verifier_name"].to_pylist()]
        methods = rows["verification_method"].to_pylist()
        for name, method, outcome in zip(verifiers, methods, outcomes.tolist(), strict=True):
            key = (f"{name} · {method}" if method else name, outcome)
            self._methods[
                key if key in self._methods or len(self._methods) < MOST_METHODS else ("others", outcome)
            ] += 1
        self._verifiers.update(pair for pair in zip(splits, verifiers, strict=True) if pair[1])
        asked = rows["verification_llm_judge_used"].to_pylist()
        failed = rows["verification_llm_judge_failed"].to_pylist()
        for was_asked, has_failed, name in zip(asked, failed, verifiers, strict=True):
            if was_asked:
                self._counts["judge asked"] += 1
                self._counts["judge failed"] += bool(has_failed)
                self._counts["judge decided"] += not has_failed and name.startswith("judge")
        explanations = rows["verification_explanation"].to_pylist()
        failures = rows["generation_error"].to_pylist()
        for outcome, explanation, failure in zip(outcomes.tolist(), explanations, failures, strict=True):
            text = explanation or ""
            if outcome == "error" and not failure:
                self._count("verification_errors", text)
            elif outcome == "abstain":
                self._count("abstentions", text)
                self._counts["disagreements"] += text.startswith(RUNS_DISAGREE)

    def _add_answers(self, rows: Any, rewards: Floats) -> None:
        failures = [failure for failure in rows["generation_error"].to_pylist() if failure]
        for failure in failures:
            self._count("missing", kind_of(failure))
        self._first_failure = self._first_failure or next(iter(failures), "")
        columns = ("quality_is_empty", "quality_is_short_answer", "refusal_is_refusal", "is_duplicate_of", "not_taught")
        empty, short, refusals, repeats, not_taught = (rows[name].to_pylist() for name in columns)
        self._counts["empty"] += sum(map(bool, empty))
        self._counts["short"] += sum(map(bool, short))
        self._counts["repeats"] += sum(one is not None for one in repeats)
        self._counts["truncated"] += rows["finish_reason"].to_pylist().count("length")
        for is_refusal, kind in zip(refusals, rows["refusal_type"].to_pylist(), strict=True):
            if is_refusal:
                self._count("refusals", kind or "unnamed")
        for reason, is_empty in zip(not_taught, empty, strict=True):
            if reason and not is_empty:
                self._count("not_taught", reason)
        for name in ("quality_answer_length", "latency_s"):
            values = numbers(rows, name)
            self._sums[name] += float(np.nansum(values))
            self._counts[name] += int(np.count_nonzero(~np.isnan(values)))
        parts, errors = rows["reward_parts"].to_pylist(), rows["generation_error"].to_pylist()
        for place in np.flatnonzero(np.isnan(rewards)).tolist():
            if not errors[place]:
                self._counts["without_reward"] += 1
                if problem := _problem_in(parts[place]):
                    self._count("missing_rewards", cause := cause_of(problem))
                    self._reward_examples.setdefault(cause, first_line(problem))
                    self._counts["reward raised"] += bool(RAISED.match(cause)) or names_failed_request(cause)
                    self._counts["reward requests"] += names_failed_request(cause)

    def _add_causes(self, rows: Any, outcomes: Any) -> None:
        """Count the candidates that did not pass by the first of these causes, and the limits at which answers end."""
        columns = ("generation_error", "finish_reason", "quality_is_empty", "refusal_is_refusal", "max_tokens")
        for outcome, failure, stop, empty, refused, limit in zip(
            outcomes.tolist(), *(rows[name].to_pylist() for name in columns), strict=True
        ):
            if stop == "length":
                self._count("cut_at", "" if limit is None else str(limit))
            if outcome != "pass":
                cause = "no answer" if failure else CUT if stop == "length" else EMPTY if empty else ""
                self._count("not_passed", cause or (REFUSED if refused else outcome))

    def _add_costs(self, block: Block) -> None:
        """Add cost and tokens of all attempts, including those that a later attempt replaced."""
        rows, names = block.rows, ("cost_usd", "usage_prompt_tokens", "usage_completion_tokens")
        usd, prompt, completion = (numbers(rows, name) for name in names)
        known, tokens = ~np.isnan(usd), np.nan_to_num(prompt) + np.nan_to_num(completion)
        for name, values in zip((*names, "judging_usd"), (usd, prompt, completion, block.usd), strict=True):
            self._sums[name] += float(np.nansum(values))
            self._counts[name] += int(np.count_nonzero(~np.isnan(values)))
        self._counts["estimated"] += int(np.count_nonzero(block.answered & (tokens == 0) & (np.nan_to_num(usd) != 0)))
        self._counts["unpriced"] += int(np.count_nonzero(block.answered & (tokens > 0) & ~known))
        arms, models = rows["arm"].to_pylist(), rows["model"].to_pylist()
        roles = ["" if arm in FIRST_MODEL else arm or "" for arm in arms]
        keys = [(role, model or "") for role, model in zip(roles, models, strict=True)]
        for key in dict.fromkeys(keys):
            mine = np.array([one == key for one in keys], bool)
            kept = key if key in self._models or len(self._models) < MOST_MODELS else (key[0], "others")
            cost = self._models.setdefault(kept, _no_cost(*kept))
            cost["attempts"] += int(mine.sum())
            if (mine & known).any():
                cost["usd"] = (cost["usd"] or 0.0) + float(np.nansum(usd[mine]))
            cost["prompt_tokens"] += int(np.nansum(prompt[mine]))
            cost["completion_tokens"] += int(np.nansum(completion[mine]))

    def _count(self, name: str, text: str) -> None:
        """Count ``text``. After ``MOST_TEXTS`` different texts, new texts are counted together."""
        counts = self._texts.setdefault(name, Counter())
        counts[text if text in counts or len(counts) < MOST_TEXTS else "other reasons"] += 1

    # the table -------------------------------------------------------------------------------------------------------

    def figures(
        self, pairs: PairTally | None = None, audit: Sequence[OpinionJson] = (), *, resamples: int = RESAMPLES
    ) -> Figures:
        """Return the table of figures of all queries that were added."""
        queries = _Queries(self._per_query, self._counting)
        split_of = np.concatenate([np.zeros(0, np.int64), *self._split_of])
        everything = np.ones(len(split_of), bool)
        n = int(queries.numbers["sampled"].max(initial=0))
        curve, best = queries.curves(everything, resamples)
        outcomes = {name: count for name in OUTCOMES if (count := self._outcome(None, name))}
        counts, texts = self._counts, {name: self._texts.get(name, Counter()) for name in REASONS}
        missing, causes = texts["missing"], texts["missing_rewards"]
        figures: Figures = {
            "run": self.name,
            "metadata": {key: self.metadata[key] for key in SHOWN_METADATA if key in self.metadata},
            "made_with": self._made_with.result(),
            "n": n,
            "without_candidates": max(0, int(self.metadata.get("total_queries") or 0) - len(split_of)),
            "not_sent": json.loads(self.metadata.get("not_sent") or "{}"),
            "pairing": str((json.loads(self.metadata.get("config") or "{}").get("pairs") or {}).get("_target_") or ""),
            "records": self._outcomes.total(),
            "disagreements": counts["disagreements"],
            "not_passed": dict(texts["not_passed"].most_common()),
            "cut_at": dict(texts["cut_at"].most_common()),
            "by_method": self._by_method(),
            "judge": {
                "asked": counts["judge asked"],
                "decided": counts["judge decided"],
                "failed": counts["judge failed"],
            },
            **self._rates(queries, everything, None, n, (curve, best)),
            "outcomes": outcomes,
            "by_split": {
                split: self._rates(queries, mine := split_of == number, split, n, queries.curves(mine, resamples))
                for split, number in sorted(self._splits.items())
            },
            "by_index": self._by_index(),
            "pass_at": curve,
            "best_of": best,
            "difficulty": queries.difficulty(max((index for index, _ in self._indices), default=0) + 1),
            "scores": self._score_figures(),
            "mixes": dict(texts["mixes"].most_common()),
            "redrawn": dict(texts["redrawn"].most_common()),
            "verifiers": self._verifier_names(),
            "missing": {"count": missing.total(), "by_kind": dict(missing), "example": self._first_failure},
            "missing_rewards": {
                "count": counts["without_reward"],
                "reasons": {
                    self._reward_examples.get(cause, cause): n for cause, n in causes.most_common(SHOWN_REASONS)
                },
                "raised": counts["reward raised"],
                "requests": counts["reward requests"],
            },
            "verification_errors": _reasons(texts["verification_errors"]),
            "abstentions": _reasons(texts["abstentions"]),
            "not_taught": _reasons(texts["not_taught"]),
            "refusals": {"count": texts["refusals"].total(), "by_type": dict(texts["refusals"])},
            "quality": {
                "empty": counts["empty"],
                "short": counts["short"],
                "truncated": counts["truncated"],
                "repeats": counts["repeats"],
                "errors": missing.total(),
                "mean_characters": share(self._sums["quality_answer_length"], counts["quality_answer_length"]),
            },
            "cost": self._cost(outcomes.get("pass", 0)),
            "pairs": pairs.figures() if pairs else None,
            "problems": [],
            "audit": list(audit),
        }
        figures["problems"] = [{"fact": one.fact, "remedy": one.remedy} for one in problems(figures)]
        return figures

    def _outcome(self, split: str | None, outcome: str) -> int:
        return sum(n for (of, name), n in self._outcomes.items() if name == outcome and split in (None, of))

    def _rates(
        self,
        queries: _Queries,
        chosen: Flags,
        split: str | None,
        n: int,
        curves: tuple[list[CurvePoint], list[CurvePoint]],
    ) -> Rates:
        curve, best = curves
        last, picked = (curve[-1] if curve else None), next((one for one in best if one["k"] == curve[-1]["k"]), None)
        sums = {name: int(values[chosen].sum()) for name, values in queries.numbers.items()}
        count = int(chosen.sum())
        left_out: Counter[str] = Counter()
        for (of, reason), number in self._left_out.items():
            left_out[reason] += number if split in (None, of) else 0
        reaching = queries.reaching(chosen, last["k"] if last else None)
        counted, cut = (int(queries.numbers[name][reaching].sum()) for name in ("n", "cut"))
        left_out[TOO_FEW] += sums["n"] - counted
        return {
            "queries": count,
            "candidates": sums["draws"],
            "verified": sums["passes"],
            "counted": counted,
            "counted_queries": int(reaching.sum()),
            "counted_truncated": cut,
            "left_out": {reason: number for reason, number in left_out.most_common() if number},
            "outcomes": {name: number for name in OUTCOMES if (number := self._outcome(split, name))},
            "k": last["k"] if last else None,
            "rate": curve[0]["mean"] if curve else None,
            "rate_interval": (curve[0]["low"], curve[0]["high"]) if curve else None,
            "best_of_n": last["mean"] if last else None,
            "best_of_n_interval": (last["low"], last["high"]) if last else None,
            "picked": picked["mean"] if picked else None,
            "picked_interval": (picked["low"], picked["high"]) if picked else None,
            "first": share(sums["first_right"], sums["first"]),
            "coverage": share(int((queries.numbers["sampled"][chosen] == n).sum()), count),
        }

    def _by_index(self) -> dict[int, Index]:
        by_index: dict[int, Counter[str]] = {index: Counter() for index in sorted({key[0] for key in self._indices})}
        for (index, outcome), count in self._indices.items():
            by_index[index][outcome] += count
        return {
            index: {
                "records": outcomes.total(),
                "verified": outcomes["pass"],
                "rate": share(outcomes["pass"], outcomes["pass"] + outcomes["fail"]),
                "outcomes": {name: outcomes[name] for name in OUTCOMES if outcomes[name]},
            }
            for index, outcomes in by_index.items()
        }

    def _by_method(self) -> dict[str, dict[str, int]]:
        """Return verifier and method -> outcome -> candidates, the most frequent method first."""
        methods: dict[str, Counter[str]] = {}
        for (method, outcome), count in self._methods.items():
            methods.setdefault(method, Counter())[outcome] += count
        return {name: dict(one) for name, one in sorted(methods.items(), key=lambda item: (-item[1].total(), item[0]))}

    def _verifier_names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for (split, name), _ in self._verifiers.most_common():
            names.setdefault(split, []).append(name)
        return dict(sorted(names.items()))

    def _score_figures(self) -> Scores | None:
        if not self._scores:
            return None
        means, bests, lows, highs, counts = zip(*self._scores, strict=True)
        queries = sum(counts)
        return {"mean": sum(means) / queries, "best": sum(bests) / queries, "lowest": min(lows), "highest": max(highs)}

    def _cost(self, verified: int) -> Cost:
        sums, counts = self._sums, self._counts
        known = counts["cost_usd"] or counts["judging_usd"]
        usd = sums["cost_usd"] + sums["judging_usd"] if known else None
        return {
            "usd": usd,
            "answers_usd": sums["cost_usd"],
            "judging_usd": sums["judging_usd"],
            "usd_per_verified": None if usd is None else share(usd, verified),
            "prompt_tokens": round(sums["usage_prompt_tokens"]),
            "completion_tokens": round(sums["usage_completion_tokens"]),
            "mean_seconds": share(sums["latency_s"], counts["latency_s"]),
            "estimated": counts["estimated"],
            "unpriced": counts["unpriced"],
            "by_model": [cost.copy() for _, cost in sorted(self._models.items())],
        }


REASONS = (
    *(
        "missing",
        "missing_rewards",
        "verification_errors",
        "abstentions",
        "not_taught",
        "refusals",
        "mixes",
        "redrawn",
        "not_passed",
        "cut_at",
    ),
)


class _Queries:
    """The numbers of all queries, and the draws that count towards pass@k, ordered by query."""

    def __init__(self, parts: Sequence[Mapping[str, Integers]], counting: Sequence[tuple[Floats, Flags]]) -> None:
        names = ("draws", "passes", "sampled", "first", "first_right", "n", "c", "cut")
        none = np.zeros(0, np.int64)
        self.numbers = {name: np.concatenate([none, *(part[name] for part in parts)]) for name in names}
        self._reward = np.concatenate([np.zeros(0), *(reward for reward, _ in counting)])
        self._right = np.concatenate([np.zeros(0, bool), *(right for _, right in counting)]).astype(np.float64)
        self._query = np.repeat(np.arange(len(self.numbers["n"])), self.numbers["n"])

    def curves(self, chosen: Flags, resamples: int) -> tuple[list[CurvePoint], list[CurvePoint]]:
        """Return the curves of pass@k and of best of k by reward over the ``chosen`` queries.

        Queries with fewer candidates than the largest k are left out. The largest k is chosen so that at least 95 % of
        the queries remain. Best of k counts the queries of them with at least k candidates that have a reward.
        """
        n, c = self.numbers["n"], self.numbers["c"]
        pools = Counter(zip(n[chosen & (n > 0)].tolist(), c[chosen & (n > 0)].tolist(), strict=True))
        curve = estimators.pass_curve(pools, resamples=resamples)
        reaching = self.reaching(chosen, curve[-1]["k"] if curve else None)
        used = reaching[self._query] & ~np.isnan(self._reward)
        values = self._best_of(self._query[used], self._reward[used], self._right[used], [one["k"] for one in curve])
        best = [mean_point(k, Counter(found.tolist()), resamples) for k, found in values.items() if len(found)]
        return curve, best

    def reaching(self, chosen: Flags, k: int | None) -> Flags:
        """Return which of the ``chosen`` queries pass@k counts; none if ``k`` is None."""
        return chosen & (self.numbers["n"] >= max(k, 1)) if k else np.zeros(len(chosen), bool)

    @staticmethod
    def _best_of(query: Integers, reward: Floats, right: Floats, ks: Sequence[int]) -> dict[int, Floats]:
        """Return k -> one value per query with at least k scored candidates: the share of passes of the best of k."""
        sizes = np.bincount(query)[query] if len(query) else np.zeros(0, np.int64)
        values: dict[int, list[Floats]] = {k: [np.zeros(0)] for k in ks}
        for size in np.unique(sizes).tolist():
            scores, truths = (column[sizes == size].reshape(-1, size) for column in (reward, right))
            for k in ks:
                if k <= size:
                    values[k].append(best_of_k(scores, truths, k))
        return {k: np.concatenate(parts) for k, parts in values.items()}

    def difficulty(self, bins: int) -> Histogram | None:
        """Return the histogram of the pass rates of the queries that have draws which count."""
        n, c = self.numbers["n"], self.numbers["c"]
        return histogram({"": c[n > 0] / n[n > 0]}, bins=min(DIFFICULTY_BINS, bins), span=(0.0, 1.0))


def _reasons(counts: Counter[str]) -> Reasons:
    return {"count": counts.total(), "reasons": dict(counts.most_common(SHOWN_REASONS))}


def _no_cost(role: str, model: str) -> ModelCost:
    return {"model": model, "role": role, "attempts": 0, "usd": None, "prompt_tokens": 0, "completion_tokens": 0}


def _problem_in(parts: str | None) -> str:
    """Return the error of a reward; "" if there is none. ``parts`` is JSON text with the parts of the score."""
    try:
        found = json.loads(parts or "{}")
    except ValueError:
        return ""
    return str(found.get("error") or "") if isinstance(found, dict) else ""


def cause_of(problem: str) -> str:
    """Return the first line of ``problem``, at most ``CAUSE_CHARS`` characters, with numbers replaced by N.

    Problems of different answers that have the same cause then give equal texts.
    """
    return first_line(re.sub(r"\d+(?:\.\d+)*", "N", problem))


def first_line(problem: str) -> str:
    """Return the first line of ``problem``, at most ``CAUSE_CHARS`` characters."""
    line = problem.strip().partition("\n")[0]
    return line if len(line) <= CAUSE_CHARS else line[: CAUSE_CHARS - 1] + "…"


# pairs --------------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """One preference pair: its margin, the lengths of its two sides in characters, its reason and its provenance."""

    margin: float | None
    chosen: int
    rejected: int
    reason: str
    provenance: str = "verified"


class PairTally:
    """Adds up preference pairs, with a uniform sample of at most ``most`` pairs (Vitter 1985, algorithm R)."""

    def __init__(self, most: int = SAMPLED_PAIRS, seed: int = 0) -> None:
        self.sample: list[Pair] = []
        self.by_side: dict[str, int] = {}  # train or test -> number of pairs; empty if read from shards
        self._most, self._random = most, random.Random(seed)
        self._total = self._longer = self._shorter = self._known = 0
        self._margins = self._difference = 0.0
        self._reasons: Counter[str] = Counter()
        self._provenance: Counter[str] = Counter()

    def add(self, pairs: Iterable[Pair]) -> None:
        """Add ``pairs``."""
        for pair in pairs:
            self._total += 1
            if len(self.sample) < self._most:
                self.sample.append(pair)
            elif (place := self._random.randrange(self._total)) < self._most:
                self.sample[place] = pair
            if pair.margin is not None:
                self._known += 1
                self._margins += pair.margin
            self._longer += pair.chosen > pair.rejected
            self._shorter += pair.chosen < pair.rejected
            self._difference += pair.chosen - pair.rejected
            self._reasons[pair.reason] += 1
            self._provenance[pair.provenance] += 1

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add the pairs of queries, from their nested rows in a shard."""
        for row in rows:
            lengths = (
                {one["index"]: messages_length(one["messages"]) for one in row["candidates"]} if row["pairs"] else {}
            )
            self.add(
                Pair(
                    pair["margin"],
                    lengths[pair["chosen"]],
                    lengths[pair["rejected"]],
                    pair["reason"],
                    provenance(pair["basis"] or VERIFIED),
                )
                for pair in row["pairs"]
            )

    def figures(self) -> Pairs:
        """Return the figures of all pairs that were added."""
        unequal = self._longer + self._shorter
        lengths = {side: [float(getattr(one, side)) for one in self.sample] for side in ("chosen", "rejected")}
        figures: Pairs = {
            "total": self._total,
            "mean_margin": share(self._margins, self._known),
            "chosen_longer": self._longer / unequal if unequal else 0.5,
            "mean_length_difference": self._difference / self._total if self._total else 0.0,
            "unequal": unequal,
            "margins": histogram({"": [one.margin for one in self.sample if one.margin is not None]}),
            "lengths": histogram(lengths),
            "by_reason": dict(self._reasons),
            "by_provenance": dict(self._provenance.most_common()),
        }
        if "train" in self.by_side:
            figures["train"] = self.by_side["train"]
        if "test" in self.by_side:
            figures["test"] = self.by_side["test"]
        return figures


def pairs_of_run(run: Path) -> PairTally | None:
    """Return the pairs in the ``dpo`` tables of a run folder; None if there are no tables."""
    check_tables(run, "dpo")
    files = table_files(run / "dpo")
    if not files:
        return None
    tally = PairTally()
    for file in files:
        with opened(file) as table:
            side = file_side(file)
            tally.by_side[side] = tally.by_side.get(side, 0) + table.metadata.num_rows
            for batch in table.iter_batches(batch_size=PAIRS_AT_ONCE, columns=PAIR_COLUMNS):
                tally.add(_pairs_of_table(batch.to_pylist()))
    return tally


def _pairs_of_table(rows: Iterable[Row]) -> Iterator[Pair]:
    for row in rows:
        chosen, rejected = (messages_length(map(decoded_message, row[side])) for side in ("chosen", "rejected"))
        yield Pair(row["margin"], chosen, rejected, row["reason"], row["provenance"])


def decoded_message(message: JsonObject | str | bytes) -> JsonObject:
    """Return ``message`` as a dict. Parquet rows may contain messages as JSON text."""
    return json.loads(message) if isinstance(message, str | bytes) else message
