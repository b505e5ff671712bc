"""Builds the audit page: the sampled answers with buttons, so that a person can mark each answer as right or wrong.

The page needs no network and can be opened as a local file. It shows the verdict only after the person has marked the
answer.
"""

from __future__ import annotations

from bestofn.builders.analysis.audit import AuditItem, AuditSample, audit_figures
from bestofn.builders.report.html_page import embedded_json, page_script, style, template
from bestofn.builders.report.number_format import audit_rows
from bestofn.builders.report.query_html import query_entry


def audit_page(sample: AuditSample, name: str, settings: dict[str, int]) -> str:
    """Return the HTML page of the audit of the run ``name``.

    The page writes a person's marks to a file, and adds ``settings`` to this file.
    """
    from markupsafe import Markup

    script = page_script("audit_page.js")
    data = {"run": name, "settings": settings, "items": [_entry(item) for item in sample.items]}
    return template("audit_page.html").render(
        name=name,
        policy=script.policy,
        style=Markup(style()),
        rows=audit_rows(audit_figures(sample)),
        data=embedded_json(data),
        script=script.html,
    )


def _entry(item: AuditItem) -> dict[str, object]:
    """Return one item as data for the script of the page.

    ``prompt``, ``reference``, ``answer`` and ``why`` are safe HTML.
    """
    entry = query_entry(item.row)
    candidate = entry["candidates"][0]
    return {
        "id": item.id,
        "split": item.split,
        "prompt": entry["prompt"],
        "reference": entry["reference"],
        "answer": candidate["html"],
        "outcome": item.outcome,
        "why": candidate["why"],
        "verifier": candidate["verifier"],
        "opinions": dict(item.opinions),
        "disagrees": any(item.disagrees(source) for source in item.opinions),
    }
