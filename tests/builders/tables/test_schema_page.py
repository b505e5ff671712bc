"""docs/schema.md shows exactly the declared columns."""

from __future__ import annotations

from pathlib import Path

from bestofn.builders.tables import schema_page
from bestofn.builders.tables.views import VIEWS, view_features

PAGE = Path(__file__).resolve().parents[3] / "docs" / "schema.md"


def test_the_committed_page_is_up_to_date() -> None:
    """Run ``python -m bestofn.builders.tables.schema_page`` when this fails."""
    page = PAGE.read_text("utf-8")
    assert schema_page.generated(page) == page


def test_the_page_has_every_table_and_column() -> None:
    page = PAGE.read_text("utf-8")
    for name, table in VIEWS.items():
        assert f"<!-- columns of {name} -->" in page
        assert list(view_features(name)) == [column.name for column in table.columns]
        assert all(f"| `{column.name}` |" in page for column in table.columns)
