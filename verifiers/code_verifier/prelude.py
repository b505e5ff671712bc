"""The imports that the harness of a benchmark puts before each program: LiveCodeBench, APPS, TACO and LeetCode.

Programs for these benchmarks use ``List`` or ``heappush`` without an import. Only the names that a program reads and
does not define are imported, so a program that defines such a name itself is not changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from bestofn.builders.records import CodeTests, Query
from bestofn.verifiers.code_verifier.syntax import Reading, identifiers

_MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "typing", "time", "fractions", "decimal", "cmath", "os",
)  # fmt: skip

_MEMBERS = {
    "typing": """
        Any Callable ClassVar Collection Counter DefaultDict Deque Dict Final FrozenSet Generator Generic
        Hashable Iterable Iterator List Literal Mapping MutableMapping NamedTuple NewType NoReturn Optional
        OrderedDict Protocol Sequence Set Sized Tuple Type TypedDict TypeVar Union cast overload
    """,
    "collections": "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque namedtuple",
    "itertools": """
        accumulate chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
    """,
    "functools": """
        cache cached_property cmp_to_key lru_cache partial reduce singledispatch total_ordering wraps
    """,
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "math": """
        acos asin atan atan2 ceil comb copysign cos cosh degrees dist e erf exp fabs factorial floor fmod
        frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp log log10 log1p log2
        modf nan perm pi prod radians sin sinh sqrt tan tanh tau trunc
    """,
    "string": """
        ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable
        punctuation whitespace
    """,
    "re": "IGNORECASE MULTILINE finditer findall fullmatch match search split sub subn",
    "random": "choice choices randint random randrange sample seed shuffle uniform",
    "operator": """
        add and_ attrgetter concat contains eq floordiv ge getitem gt itemgetter le lt methodcaller mod mul
        ne neg not_ or_ sub truediv xor
    """,
    "copy": "copy deepcopy",
    "statistics": "mean median mode pstdev pvariance stdev variance",
    "datetime": "date datetime timedelta timezone",
    "io": "BytesIO StringIO",
    "sys": "maxsize setrecursionlimit stderr stdin stdout",
    "json": "dumps loads",
    "fractions": "Fraction",
    "decimal": "Decimal getcontext",
    "sortedcontainers": "SortedDict SortedList SortedSet",
}

_LEETCODE = {
    "ListNode": """class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next""",
    "TreeNode": """class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right""",
}


def _statements() -> dict[str, str]:
    """Return {name: the statement that imports or defines it}. If several modules have a name, the first one counts."""
    table = {name: f"import {name}" for name in _MODULES} | {"np": "import numpy as np"}
    for module, members in _MEMBERS.items():
        for name in members.split():
            table.setdefault(name, f"from {module} import {name}")
    return table | _LEETCODE


_STATEMENTS = _statements()
_SAME_NAME = {"bisect", "copy", "datetime", "random"}  # modules with a member of their own name
NAMES = frozenset(_STATEMENTS)

# LiveCodeBench sets this limit as well. Without it, a correct depth-first search ends with a RecursionError.
_RECURSION = "import sys as _sys; _sys.setrecursionlimit(50000); del _sys"


def offered_names(tests: CodeTests, query: Query) -> frozenset[str]:
    """Return the names that the program may use without an import, because the harness or the prompt provides them.

    Tests of the kinds ``function`` and ``stdin``, and tests of a class ``Solution``, come from harnesses with a
    prelude. The harnesses of HumanEval and MBPP have no prelude, so a missing import is an error of the program. For
    their tests, only the names in function headers of the prompt are returned, unless the prompt imports them.
    """
    if tests.language != "python":
        return frozenset()
    if tests.kind in ("function", "stdin") or "Solution" in _words(tests):
        return NAMES
    return frozenset(_names_in_headers(query)) & NAMES


def _words(tests: CodeTests) -> set[str]:
    return identifiers(tests.entry_point).union(*(identifiers(str(case.get("source") or "")) for case in tests.cases))


_HEADER = re.compile(r"^[ \t]*(?:async )?def \w+.*$", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:from [\w.]+ )?import .*$", re.MULTILINE)


def _names_in_headers(query: Query) -> set[str]:
    prompt = query.text
    headers, imports = (identifiers("\n".join(pattern.findall(prompt))) for pattern in (_HEADER, _IMPORT))
    return headers - imports


def with_prelude(source: str, reading: Reading, offered: frozenset[str]) -> str:
    """Return ``source``, preceded by definitions of offered names.

    Only names that ``source`` reads and does not define are added.
    """
    if not offered:
        return source
    lines = [_statement(name, reading.called) for name in sorted(reading.undefined & offered)]
    if offered == NAMES and _calls_own_functions(source):
        lines.append(_RECURSION)
    return put_before("\n".join(lines), source) if lines else source


def _calls_own_functions(source: str) -> bool:
    """Return whether the program calls a function that it defines. Without such a call there is no recursion."""
    counts = Counter(_CALLED.findall(source))  # a definition counts as one
    return any(counts[name] > 1 for name in _DEFINED.findall(source))


_CALLED = re.compile(r"\b(\w++)\s*+\(")


def _statement(name: str, called: Iterable[str]) -> str:
    if name in _SAME_NAME and name in called:
        return f"from {name} import {name}"
    return _STATEMENTS[name]


_DEFINED = re.compile(r"\bdef (\w+)")
_FUTURE = re.compile(r"^from __future__ import (?:\([^)]*\)|[^\n(;]*)$\n?", re.MULTILINE)


def put_before(prefix: str, source: str) -> str:
    """Return ``prefix`` followed by ``source``. Imports of ``__future__`` move to the top, as Python requires."""
    text = f"{prefix}\n{source}"
    futures = [found.rstrip("\n") for found in _FUTURE.findall(text)]
    return "\n".join([*futures, _FUTURE.sub("", text)]) if futures else text
