"""The column types are stored as datasets stores its types, and are read without importing datasets."""

import subprocess
import sys

import datasets
import pytest

from bestofn.builders.arrow_types import Columns, features_from, features_of_schema
from bestofn.builders.schema import features
from bestofn.builders.tables.views import VIEWS, view_features

ALL = {"nested rows": features_from({name: kind for group in features().values() for name, kind in group.items()})}
ALL |= {name: view_features(name) for name in VIEWS}


@pytest.mark.parametrize("name", ALL)
def test_datasets_stores_the_same_schema(name: str) -> None:
    schema = ALL[name].arrow_schema
    of_datasets = datasets.Features.from_arrow_schema(schema)
    assert of_datasets.arrow_schema.equals(schema, check_metadata=True)
    assert features_of_schema(schema) == ALL[name]


def test_types_of_datasets_can_be_mixed_with_own_types() -> None:
    mixed = features_from({**features()["scores"], "x": datasets.Value("int32")})
    assert isinstance(mixed, datasets.Features)
    assert features_of_schema(mixed.arrow_schema) == mixed
    assert isinstance(features_from(features()["scores"]), Columns)


def test_a_file_of_another_program_has_the_types_of_datasets() -> None:
    other = datasets.Features({"x": datasets.Value("float32"), "label": datasets.ClassLabel(names=["a", "b"])})
    assert features_of_schema(other.arrow_schema) == other
    assert features_of_schema(other.arrow_schema.remove_metadata()) == datasets.Features(
        {"x": datasets.Value("float32"), "label": datasets.Value("int64")}
    )


def test_tables_need_neither_datasets_nor_pandas() -> None:
    program = (
        "import sys; from bestofn.builders.schema import *; from bestofn.builders.arrow_types import *;"
        "from bestofn.builders.tables.arrow_rows import *; f = features_from(features()['scores']);"
        "t = to_table([{'scores': [{'value': 1.0, 'parts': {'a': 1}}]}], f);"
        "assert from_table(t, features_of_schema(t.schema)) == [{'scores': [{'value': 1.0, 'parts': {'a': 1}}]}];"
        "print(sorted({'datasets', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
