"""One self-contained HTML page of a run, for a person to read: no network, no script but its own.

The figures take one pass over the rows and keep counts a query; the browser below them shows an even sample of at most
``browse`` queries with all their candidates. Everything a model wrote is escaped (``builders.report.safe_markdown``),
and the page's content security policy allows only the script whose hash it states.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.analysis.figures import OUTCOMES, Figures
from bestofn.builders.records import content_text
from bestofn.builders.report import charts
from bestofn.builders.report.safe_markdown import coloured, readable, title
from bestofn.builders.statistics.estimators import CurvePoint

LONGEST_TEXT = 20_000  # characters of one candidate that the page shows


def page(rows: Iterable[Mapping[str, Any]], described: Mapping[str, Any], name: str, *, browse: int = 700) -> str:
    """The HTML of a run: ``rows`` are its nested rows, ``described`` its manifest."""
    figures = Figures()
    total = int(described.get("queries") or 0)
    every = max(1, -(-total // browse))
    shown: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        figures.add(row)
        if number % every == 0 and len(shown) < browse:
            shown.append(browser_entry(row))
    here = Path(__file__).parent
    script = (here / "report_page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    fills = {
        "title": html.escape(name),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
        "style": style() + _code_style(),
        "facts": _facts(described),
        "cards": _cards(figures, described),
        "splits": _split_table(figures),
        "charts": _charts(figures),
        "note": _note(figures.queries, len(shown)),
        "data": data,
        "script": script,
    }
    template = (here / "report_page.html").read_text("utf-8")
    parts = template.split("{{")
    return parts[0] + "".join(fills[part.split("}}", 1)[0].strip()] + part.split("}}", 1)[1] for part in parts[1:])


def browser_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the browser needs of one query, its HTML ready-made."""
    pairs = row["pairs"]
    chosen = {pair["chosen"] for pair in pairs}
    rejected = {pair["rejected"] for pair in pairs}
    candidates = []
    for candidate, verdict, score in zip(row["candidates"], row["verdicts"], row["scores"], strict=True):
        index = candidate["index"]
        sides = [name for name, side in (("chosen", chosen), ("rejected", rejected)) if index in side]
        usage = candidate["usage"] or {}
        candidates.append(
            {
                "i": index,
                "html": _trace(candidate),
                "thinking": readable(_cut(candidate["reasoning"])) if candidate["reasoning"] else "",
                "outcome": verdict["outcome"],
                "why": html.escape(verdict["explanation"] or ""),
                "verifier": html.escape(verdict["verifier"] or ""),
                "confidence": verdict["confidence"],
                "score": score["value"],
                "parts": {str(key): value for key, value in (score["parts"] or {}).items()},
                "sides": sides,
                "stop": candidate["stop_reason"],
                "tokens": usage.get("completion") or 0,
                "refused": bool(((verdict["detail"] or {}).get("refusal") or {}).get("is_refusal")),
                "attempt": candidate["attempt"],
            }
        )
    return {
        "id": row["query_id"],
        "split": row["split"],
        "title": title(_last_user(row["messages"])[:160]),
        "prompt": "".join(_message(message) for message in row["messages"]),
        "reference": _reference(row["reference"] or {}),
        "candidates": candidates,
    }


def _trace(candidate: Mapping[str, Any]) -> str:
    if candidate["error"]:
        return f'<p class="broken">{html.escape(candidate["error"])}</p>'
    messages = candidate["messages"]
    if len(messages) == 1 and not messages[0].get("tool_calls"):
        return readable(_cut(content_text(messages[0].get("content"))))
    return "".join(_message(message) for message in messages)


def _message(message: Mapping[str, Any]) -> str:
    role = html.escape(str(message.get("role", "")))
    body = readable(_cut(content_text(message.get("content"))))
    calls = "".join(
        coloured(f"{call['function'].get('name')}({_arguments(call['function'].get('arguments'))})", "python")
        for call in message.get("tool_calls") or ()
        if call.get("function")
    )
    return f'<div class="message"><span class="role">{role}</span>{body}{calls}</div>'


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _reference(reference: Mapping[str, Any]) -> str:
    parts = []
    if reference.get("answer") is not None:
        answer = str(reference["answer"])
        parts.append(readable(f"${answer}$" if "\\" in answer and "$" not in answer else answer))
    if tests := reference.get("tests"):
        cases = tests.get("cases") or []
        parts.append(
            f"{len(cases)} {'test' if len(cases) == 1 else 'tests'} ({html.escape(str(tests.get('kind')))}) "
            f"in {html.escape(str(tests.get('language')))}"
        )
        parts.append(coloured("\n".join(_case(case) for case in cases[:8]), str(tests.get("language") or "")))
    if reference.get("calls") is not None:
        parts.append(coloured(json.dumps(reference["calls"], ensure_ascii=False, indent=1), "json"))
    return "".join(parts)


def _case(case: Mapping[str, Any]) -> str:
    return str(case.get("source") or json.dumps(case, ensure_ascii=False))


def _cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… ({len(text) - LONGEST_TEXT:,} more characters are in the data)"


def _last_user(messages: Sequence[Mapping[str, Any]]) -> str:
    users = [content_text(message.get("content")) for message in messages if message.get("role") == "user"]
    return " ".join((users or [""])[-1].split())


def _facts(described: Mapping[str, Any]) -> str:
    config = described.get("config") or {}
    provider = config.get("provider") or {}
    facts = {
        "model": provider.get("model") or provider.get("path") or provider.get("_target_", "").rsplit(".", 1)[-1],
        "n": config.get("n"),
        "temperature": (config.get("sampling") or {}).get("temperature"),
        "state": described.get("state"),
        "updated": described.get("updated_at"),
        "bestofn": (described.get("versions") or {}).get("bestofn"),
        "notes": config.get("notes"),
    }
    return " · ".join(f"<span>{key} <b>{html.escape(str(value))}</b></span>" for key, value in facts.items() if value)


def _cards(figures: Figures, described: Mapping[str, Any]) -> str:
    curve = figures.pass_at()
    cards: list[tuple[str, str, str]] = []
    if curve:
        first, last = curve[0], curve[-1]
        cards.append(("pass@1", _percent(first.mean), _span(first)))
        if last.k > 1:
            cards.append((f"pass@{last.k}", _percent(last.mean), _span(last)))
            if best := figures.best_of(last.k):
                cards.append((f"best of {last.k} by reward", _percent(best.mean), _span(best)))
    total = sum(figures.outcomes.values())
    cards.append(("verified answers", f"{figures.verified:,}", f"of {total:,} candidates, {figures.queries:,} queries"))
    cards.append(("pairs", f"{figures.pairs:,}", f"{figures.pairs / max(figures.queries, 1):.2f} a query"))
    spent = (described.get("spending") or {}).get("usd") or figures.usd
    per = f"${spent / figures.verified:.5f} a verified answer" if figures.verified and spent else "no priced model"
    per += f", ${spent / figures.pairs:.5f} a pair" if figures.pairs and spent else ""
    cards.append(("cost", f"${spent:.4f}" if spent else "$0", per))
    return "".join(
        f'<div class="card"><span class="label">{html.escape(name)}</span><span class="value">{value}</span>'
        f'<span class="sub">{html.escape(sub)}</span></div>'
        for name, value, sub in cards
    )


def _span(point: CurvePoint) -> str:
    return f"{_percent(point.low)} to {_percent(point.high)}"


def _split_table(figures: Figures) -> str:
    whole = figures.pass_at()
    largest = whole[-1].k if whole else 1
    rows = []
    for split in sorted(figures.by_split):
        curve = figures.pass_at(split)
        counts = figures.by_split[split]
        cells = [html.escape(split), f"{figures.pools[split].total():,}", f"{sum(counts.values()):,}"]
        for point, k in ((curve[0], 1), (curve[-1], largest)) if curve else ():
            own = "" if point.k == k else f"pass@{point.k} "
            cells.append(f"{own}{_percent(point.mean)} <small>{_span(point)}</small>")
        cells += [""] * (5 - len(cells))
        cells += [f"{counts.get(kind, 0):,}" for kind in OUTCOMES]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = ["split", "queries", "candidates", "pass@1", f"pass@{largest}", *OUTCOMES]
    return (
        "<table><thead><tr>"
        + "".join(f"<th>{name}</th>" for name in head)
        + f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _charts(figures: Figures) -> str:
    shown: list[tuple[str, str]] = []
    curve = figures.pass_at()
    if len(curve) > 1:
        best = [found for point in curve if (found := figures.best_of(point.k))]
        shown.append(
            (
                "pass@k and best of k by reward",
                charts.lines(
                    [
                        charts.Line(name, [(float(p.k), p.mean) for p in points], [(p.low, p.high) for p in points])
                        for name, points in (
                            ("pass@k (an oracle picks)", curve),
                            ("best of k (the reward picks)", best),
                        )
                    ],
                    "k",
                    "share right",
                    y_range=(0, 1),
                ),
            )
        )
    shown.append(
        ("verdicts by split", charts.stacked({k: figures.by_split[k] for k in sorted(figures.by_split)}, OUTCOMES))
    )
    by_index = {f"candidate {index}": figures.by_index[index] for index in sorted(figures.by_index)[:32]}
    shown.append(("verdicts by candidate index", charts.stacked(by_index, OUTCOMES)))
    if rates := figures.pass_rates():
        bins = min(20, max(figures.by_index) + 1)
        drawn = charts.histogram(
            list(rates.elements()), "share of a query's answers that pass", bins=bins, x_range=(0.0, 1.0)
        )
        shown.append(("how hard the queries are", drawn))
    if figures.sides.items:
        margins, chosen, rejected = map(list, zip(*figures.sides.items, strict=True))
        shown.append(("margin of the pairs", charts.histogram(margins, "score of chosen − score of rejected")))
        lengths = {"chosen": chosen, "rejected": rejected}
        shown.append(("length of the two sides", charts.histograms(lengths, "characters")))
    return "".join(
        f"<figure><figcaption>{html.escape(name)}</figcaption>{drawn}</figure>" for name, drawn in shown if drawn
    )


def _note(queries: int, shown: int) -> str:
    return f"all {shown:,} queries" if shown == queries else f"an even sample of {shown:,} of {queries:,} queries"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def style() -> str:
    """The look of all our pages."""
    return (Path(__file__).parent / "report_page.css").read_text("utf-8")


def _code_style() -> str:
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="friendly").get_style_defs("pre.code")
    dark = HtmlFormatter(style="native").get_style_defs("pre.code")
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\npre.code {{ background: var(--code); }}\n"
