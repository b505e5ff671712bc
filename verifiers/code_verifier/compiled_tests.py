"""Puts altered assertions into the tests of compiled languages: a pass must be falsifiable.

The idea is that of ``alterations``. For an assertion that compares, a literal of the expected value changes; others are
negated. The original and the altered form are compiled together. Each assertion has a number, and a run executes the
altered form of one of them, or of none (``sandbox.languages.compiled``). So a pass costs one compilation.

No two grammars of tree-sitter use one name for different nodes. Therefore one table of names serves all languages.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bestofn.builders.formats.linear_regex import PatternError, find_all
from bestofn.builders.records import Program
from bestofn.sandbox.languages.compiled import CHOICE, VARIANTS
from bestofn.verifiers.code_verifier.syntax_trees import Edit, SyntaxTree, bare, field, replaced

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBERS = frozenset({
    "number_literal", "int_literal", "float_literal", "integer_literal", "decimal_integer_literal",
    "decimal_floating_point_literal",
})  # fmt: skip
_STRINGS = frozenset({"string_literal", "raw_string_literal", "interpreted_string_literal"})
_NAMING = _STRINGS | {"number_literal", "int_literal", "integer_literal", "decimal_integer_literal"}
_LETTERS = frozenset({"char_literal", "rune_literal", "character_literal"})
_TRUTHS = frozenset({"true", "false", "boolean_literal"})
_CALLS = frozenset({"call_expression", "method_invocation", "object_creation_expression"})
_IFS = frozenset({"if_statement", "if_expression"})
_FUNCTIONS = frozenset({"function_definition", "function_declaration", "function_item", "method_declaration"})
_DECIDES = re.compile(
    "^(?:if|for|while|do|switch|match|loop|try|catch|conditional|ternary)_|lambda|closure|func_literal|local_class|macro"
)
_STATEMENTS = frozenset({"expression_statement", "block", "statement_list"})
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})

_LEFT_OUT = frozenset({
    "subscript_expression", "index_expression", "array_access", "template_argument_list", "type_arguments",
    "array_type", "dimensions_expr", "type_descriptor", "lambda_expression", "closure_expression", "func_literal",
})  # fmt: skip
"""Parts of an expected value whose literals count or choose something, or run code."""

_MAKES = re.compile(
    r"vec|of|asList|ofEntries|entry|from|to_string|to_owned|into|make_\w+|vector|string|pair|tuple|set|map"
    r"|list|deque|array|optional|unordered_\w+|new|float\d*|u?int\d*|byte|rune|abs|fabs|sqrt"
)
"""Functions whose result contains their arguments. Arguments of others may only count or choose something."""

_ASSERTS = re.compile(
    r"(?i)assert|expect|check|verif|equal|ensure|^(?:ok|is|eq|must|same|true|false|no_?error|error|nil|not_?nil|len|empty)$"
)
_ASSERTS_ONE = re.compile(r"(?i)(?:debug_)?assert(?:_?(?:true|false|that))?|ok|is_?(?:true|false)|true|false")
_EQUAL = re.compile(r"(?i)equal|same|_eq$|^eq$|^is$|close$|near|approx")
_UNEQUAL = re.compile(r"(?i)false|not|_ne$|differ")
_FAILS = re.compile(
    r"\bthrow\b|\b\w*\.(?:Error|Fatal|Fail)\w*\(|\bpanic!?\s*\(|\b(?:_?[Ee]xit(?!\s*\(\s*0\s*\))|abort|terminate|fail\w*)\s*\("
    r"|\breturn\s+(?:-?[1-9]|false|Err\b|err\b|errors\.|fmt\.Errorf)|\bErr\(|assert!?\s*\(\s*(?:false|0)"
    r"|[\"'][^\"'\n]*(?i:fail|wrong|mismatch)|\w*[Ff]ail\w*\s*(?:\+\+|\+=|=)|\+\+\s*(?:\w*[Ff]ail|bad|wrong|errors)|\b(?:errors|bad|wrong)\s*(?:\+\+|\+=)|=\s*false\b"
)
_OPPOSITES = {
    "assert_eq": "assert_ne", "debug_assert_eq": "debug_assert_ne",
    "Equal": "NotEqual", "Nil": "NotNil", "Empty": "NotEmpty", "Error": "NoError",
    "assertNull": "assertNotNull", "assertSame": "assertNotSame", "assertEquals": "assertNotEquals",
}  # fmt: skip
_OPPOSITES |= {other: name for name, other in _OPPOSITES.items()}

_ASSIGNED = re.compile(r"([\w$]+)\s*(?::\s*[\w<>\[\], &]+)?\s*:?=(?!=)([^;\n]*)")
_INTEGER = re.compile(r"(0[xX][\da-fA-F_']+?|0[bB][01_']+?|0|[1-9][\d_']*)([uUlLzZn]*|_?[iu](?:8|16|32|64|128|size))")
_DECIMAL = re.compile(r"(\d[\d_']*\.?[\d_']*(?:[eE][+-]?\d+)?)(_?f(?:32|64)|[fFdDlL]?)")
_LARGEST = frozenset(2**bits - 1 for bits in (7, 8, 15, 16, 31, 32, 63, 64))
_OPENING = re.compile(r'"""[^\n]*\n|\w*R"[^(\s]*\(|[^"\'`]*["\'`]')
_FAR = 1009

_LEAVES = {"java": "throw new AssertionError();", "cpp": "throw;", "rust": "{ return; }"}
_STATEMENT = "{{ if ({0}) {{ {1} }} else {{ {2} }} }}"
_EXPRESSION = {
    "cpp": "({0} ? ({1}) : ({2}))", "java": "({0} ? ({1}) : ({2}))", "rust": "(if {0} {{ {1} }} else {{ {2} }})",
    "go": "({0} && ({1}) || !{0} && ({2}))",
}  # fmt: skip


_FUNCTION = r"[A-Za-z_]\w*\s*(?:<[^<>(){};]*>)?\([^;{}]*\)[^;{}=]*\{"  # of RE2, because programs are hostile
_FUNCTION_AFTER = {"rust": r"\bfn\s+\w+", "go": r"\bfunc\s+(?:\([^()]*\)\s*)?\w+"}
_TYPE = re.compile(r"\b(?:class|struct|enum|union|trait|interface|record|type)\s+(\w+)")
_OF_BOOLEAN = re.compile(
    r"(\w+)\s*(?::?=\s*)?(?:func\s*\(|\[[^\]]*\]\s*\(|\(|\|)\s*(?:(?:const|final)\s+)?"
    r"(?:bool(?:ean)?\b|\w+\s*:\s*bool\b|\w+\s+bool\b)"
)
"""The definition of a function, or of a variable with a function, whose first parameter is a condition."""
_KEYWORDS = frozenset({"if", "for", "while", "switch", "catch", "match", "select", "func", "return"})


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion and the edits that alter it.

    ``node`` is the expression or the statement that is altered as a whole. ``by_value``: a literal of the expected
    value changes, so that the altered assertion notices objects that equal everything. Without edits, ``node`` is a
    condition, which is negated.
    """

    node: Node
    edits: tuple[Edit, ...]
    by_value: bool
    is_statement: bool = False  # also the body of a lambda that returns nothing
    is_handler: bool = False  # ``node`` is the opening brace of a handler, or of a test that should panic

    @property
    def must_run(self) -> bool:
        """Whether nothing in the tests decides whether it is executed."""
        inner, at = self.node, self.node.parent
        while at is not None and at.type not in _FUNCTIONS:
            if _DECIDES.search(at.type) and not (at.type in _IFS and at.child_by_field_name("condition") == inner):
                return False
            if _operator(at) in ("&&", "||"):
                return False
            inner, at = at, at.parent
        if at is None:  # the tests are statements
            return True
        name = at.child_by_field_name("name") or at.child_by_field_name("declarator")
        return name is not None and bool(re.match(rb"main\b|Test", name.text or b""))

    @property
    def line(self) -> int:
        """The number of its first line."""
        return self.node.start_point.row + 1


class CompiledTests:
    """The tests of a program in a compiled language, with altered forms of at most ``most`` assertions.

    ``sources`` are the texts of the tests with the original and the altered forms. ``altered`` are the altered
    assertions by number. A run with the number ``original`` alters none. The numbers are random: a program that reads
    the number of its run does not know what it means.
    """

    def __init__(self, tests: Program, most: int, rng: random.Random) -> None:
        language, defined = tests.language, _defined(tests)
        readers = [_Reader(source, language, defined, rng) for source in tests.tests]
        found = [(reader, one) for reader in readers for one in reader.assertions]
        rng.shuffle(found)
        found.sort(key=lambda pair: not pair[1].by_value)
        self.original, *numbers = rng.sample(range(VARIANTS), min(most, len(found)) + 1)
        self.altered = {number: one for number, (_, one) in zip(numbers, found, strict=False)}
        chosen = list(zip(numbers, found, strict=False))
        self.sources = tuple(
            reader.with_choices(language, {number: one for number, (of, one) in chosen if of is reader})
            for reader in readers
        )


class _Reader:
    """Finds the assertions in the source of one test. None contains another."""

    def __init__(self, source: str, language: str, defined: frozenset[str], rng: random.Random) -> None:
        self.tree = SyntaxTree(source, language)
        self._rng = rng
        self._types_are_capital = language != "go"  # where functions are lower case
        held = _ASSIGNED.findall(source)  # variables that hold results of the program
        results = {name for name, value in held if not defined.isdisjoint(re.findall(r"\w+", value))}
        self._defined = defined | results
        self._helpers = {_function_name(one) for one in self.tree.nodes(*_FUNCTIONS)}
        self._of_boolean = set(_OF_BOOLEAN.findall(source)) - _KEYWORDS
        self._helpers |= self._of_boolean
        self._tested, self._source = defined, source
        self.assertions = list(self._found())

    def with_choices(self, language: str, assertions: Mapping[int, Assertion]) -> str:
        """Return the source with the original and the altered form of each of ``assertions``."""
        return self.tree.edited(
            edit
            for number, one in assertions.items()
            for edit in self._choice(language, f"{CHOICE[language]}({number})", one)
        )

    def _choice(self, language: str, altered: str, one: Assertion) -> Iterator[Edit]:
        if one.is_handler:
            yield Edit(one.node.end_byte, one.node.end_byte, f" if ({altered}) {_LEAVES[language]}")
            return
        if not one.edits:
            yield Edit(one.node.start_byte, one.node.start_byte, f"({altered} != !!(")
            yield Edit(one.node.end_byte, one.node.end_byte, "))")
            return
        form = _STATEMENT if one.is_statement else _EXPRESSION[language]
        edited, original = self.tree.edited(one.edits, one.node), self.tree.text(one.node)
        end = ";" if one.is_statement and one.node.type != "expression_statement" else ""
        yield replaced(one.node, form.format(altered, edited + end, original + end))

    def _found(self) -> Iterator[Assertion]:
        end = 0
        for node in self.tree.nodes():
            if node.start_byte < end:
                continue
            found = self._of(node)
            if found is not None:
                end = node.end_byte if node.type in _CALLS | {"function_item"} else found.node.end_byte
                yield found

    def _of(self, node: Node) -> Assertion | None:
        if node.type in _IFS:
            return self._of_if(node)
        if node.type == "assert_statement":
            return self._of_condition(node.named_children[0], wanted=True)
        if node.type == "catch_clause":
            return self._of_handler(node)
        if node.type == "binary_expression":
            return self._compared_here(node)
        if node.type == "function_item":
            return self._of_panicking(node)
        return self._of_call(node) if node.type in _CALLS and node.type != "object_creation_expression" else None

    def _of_if(self, node: Node) -> Assertion | None:
        condition = field(node, "condition")
        if condition is not None and condition.type == "condition_clause":
            condition = field(condition, "value")
        if condition is None or condition.type in ("let_condition", "let_chain", "declaration"):
            return None
        wanted = self._fails(node, "alternative")
        if not wanted and not self._fails(node, "consequence"):
            return None
        return self._of_condition(condition, wanted=wanted and not self._fails(node, "consequence"))

    def _fails(self, node: Node | None, branch: str) -> bool:
        child = node.child_by_field_name(branch) if node is not None else None
        return child is not None and bool(_FAILS.search(self.tree.text(child)))

    def _of_panicking(self, node: Node) -> Assertion | None:
        """Return the assertion that a test with ``#[should_panic]`` panics; its altered form returns at once."""
        mark, body = node.prev_named_sibling, node.child_by_field_name("body")
        while mark is not None and mark.type in ("attribute_item", "line_comment"):
            if "should_panic" in self.tree.text(mark) and body is not None:
                return Assertion(body.children[0], (), by_value=False, is_handler=True)
            mark = mark.prev_named_sibling
        return None

    def _of_handler(self, node: Node) -> Assertion | None:
        """Return the assertion that the handler of an expected exception runs; its altered form fails if it does."""
        body = node.child_by_field_name("body")
        if body is None or not self._fails(node.parent, "body"):
            return None
        return Assertion(body.children[0], (), by_value=False, is_handler=True)

    def _compared_here(self, node: Node) -> Assertion | None:
        """Return the assertion of a comparison with a result of the program, wherever it stands."""
        if _operator(node) not in ("==", "<", "<=") or not self._uses_program(node) or _is_alternative(node):
            return None
        changed = self._changed(node, wanted=True)
        return Assertion(node, (changed,), by_value=True) if changed else None

    def _of_condition(self, node: Node, *, wanted: bool) -> Assertion:
        """Return the assertion that ``node`` is true, or false, if that is ``wanted``."""
        node = bare(node) or node
        changed = self._changed(node, wanted)
        if changed:
            return Assertion(node, (changed,), by_value=True)
        return Assertion(node, (), by_value=False)

    def _of_call(self, node: Node) -> Assertion | None:
        name, given = self._name(node), _arguments(node)
        receiver = _receiver(node)
        of_test = receiver is not None and self.tree.text(receiver) in ("t", "b")  # t.Error(…) of Go reports a failure
        is_tested = name in self._tested and not _EQUAL.search(name)
        if name == "Ok" or of_test or is_tested or not (_ASSERTS.search(name) or name in self._of_boolean):
            return None
        kind = node.parent.type if node.parent is not None else ""
        in_lambda = kind == "lambda_expression" and self._returns_nothing(name)
        holder = node.parent if kind == "expression_statement" else None
        if kind not in _STATEMENTS and not in_lambda:  # a truth value that is used elsewhere
            is_certain = self._uses_program(node) and not _is_alternative(node)
            changed = self._changed(node, wanted=True) if is_certain else None
            if changed:
                return Assertion(node, (changed,), by_value=True)
        if name in self._of_boolean and given:
            return self._of_condition(given[0], wanted=not _UNEQUAL.search(name))
        if not _EQUAL.search(name):
            condition = next((one for one in given if self._is_condition(bare(one) or one)), None)
            if condition is not None:
                return self._of_condition(condition, wanted=not _UNEQUAL.search(name))
        if _ASSERTS_ONE.fullmatch(name) and given:
            fixed = [one for one in given if one.type not in _STRINGS and self.tree.text(one) != "t"]
            chosen = next((one for one in fixed if self._uses_program(one)), fixed[0] if fixed else None)
            return self._of_condition(chosen, wanted=not _UNEQUAL.search(name)) if chosen is not None else None
        if name in self._helpers and not any(self._calls_program(one) for one in given):
            return None  # which of its arguments is expected, only its own assertion tells
        if len(given) > 1 and not _UNEQUAL.search(name):
            labels = self.tree.labels(name) if name in self._helpers else ()
            edits = self._changed_arguments([one for at, one in enumerate(given) if at not in labels])
            if edits:
                is_statement = holder is not None or in_lambda
                return Assertion(holder or node, edits, by_value=True, is_statement=is_statement)
        named = [one for one in self.tree.nodes(*_NAMES, within=_callee(node)) if self.tree.text(one) == name]
        if name not in _OPPOSITES or name in self._helpers or not named:
            return None
        edits = (replaced(named[-1], _OPPOSITES[name]),)
        return Assertion(holder or node, edits, by_value=False, is_statement=holder is not None)

    def _returns_nothing(self, name: str) -> bool:
        return name in self._helpers and bool(re.search(rf"\bvoid\s+{re.escape(name)}\s*\(", self._source))

    def _is_condition(self, node: Node) -> bool:
        if node.type == "binary_expression":
            return _operator(node) in ("==", "!=", "<", "<=", ">", ">=", "&&", "||")
        if node.type == "unary_expression":
            return _operator(node) == "!"
        return node.type in _CALLS and self._changed(node, wanted=True) is not None

    def _changed(self, node: Node, wanted: bool) -> Edit | None:
        """Return the edit of an expected value that turns a condition, which is as ``wanted``, into its opposite."""
        node = bare(node) or node
        if node.type == "unary_expression" and _operator(node) == "!":
            operand = field(node, "operand") or field(node, "argument") or node.named_children[-1]
            return self._changed(operand, not wanted)
        if node.type in _CALLS:
            sides = self._sides_of_call(node) if wanted else None
            return self._changed_side(*sides) if sides else None
        if node.type != "binary_expression":
            return None
        left, right, operator = field(node, "left"), field(node, "right"), _operator(node)
        if left is None or right is None:
            return None
        if operator == ("&&" if wanted else "||"):
            return self._changed(left, wanted) or self._changed(right, wanted)
        if operator == ("==" if wanted else "!="):
            return self._changed_side(left, right)
        if operator in (("<", "<=") if wanted else (">", ">=")):
            return self._changed_difference(left)
        return None

    def _sides_of_call(self, node: Node) -> tuple[Node, Node] | None:
        """Return the two values that a call such as ``a.equals(b)`` or ``Objects.equals(a, b)`` compares."""
        given = _arguments(node)
        if not _EQUAL.search(self._name(node)) or not given:
            return None
        if len(given) > 1:
            return (given[0], given[1])
        receiver = _receiver(node)
        return (receiver, given[0]) if receiver is not None else None

    def _changed_difference(self, node: Node) -> Edit | None:
        """Return the edit of a number in ``abs(a - b)``, ``(a - b).abs()`` and the like."""
        if node.type not in _CALLS or not re.search(r"abs|norm|hypot", self._name(node)):
            return None
        for one in self.tree.nodes("binary_expression", within=node):
            left, right = field(one, "left"), field(one, "right")
            if _operator(one) == "-" and left is not None and right is not None:
                return self._changed_side(left, right, far=True)
        return None

    def _changed_side(self, left: Node, right: Node, far: bool = False) -> Edit | None:
        """Return the edit of a literal in the expected one of two values."""
        uses = self._uses_program(left), self._uses_program(right)
        sides = {(True, False): (right,), (False, True): (left,), (False, False): (right, left)}.get(uses, ())
        for side in sides:
            literals = list(self._literals(side))
            if literals:
                node = self._rng.choice(literals)
                return replaced(node, self._other(node, far))
        return None

    def _changed_arguments(self, given: list[Node]) -> tuple[Edit, ...]:
        """Return the edits of the expected value among the arguments of an assertion: a neighbour of the actual one.

        A text before the actual value may be a name of the check, and an integer there its number. Then both neighbours
        change; this does no harm. If the one behind is a variable, nothing changes.
        """
        literals = [[] if self._uses_program(one) else list(self._literals(one)) for one in given]
        at = next((place for place, one in enumerate(given) if self._uses_program(one)), None)
        known = at is not None
        at = next((place for place, found in enumerate(literals) if not found), None) if at is None else at
        if at is None:
            return ()
        before = literals[at - 1] if at and (known or given[at - 1].type not in _STRINGS) else []
        behind = literals[at + 1] if at + 1 < len(given) else []
        may_be_name = bool(before) and given[at - 1].type in _NAMING and at + 1 < len(given)
        if may_be_name and not behind:
            return ()
        same_kind = may_be_name and (given[at - 1].type in _STRINGS or given[at + 1].type == given[at - 1].type)
        changed = [found for found in ((before, behind) if same_kind else (before or behind,)) if found]
        nodes = [self._rng.choice(found) for found in changed]
        return tuple(replaced(node, self._other(node)) for node in nodes)

    def _literals(self, node: Node) -> Iterator[Node]:
        """Yield the literals of a value that can change, without those that count or choose something."""
        if node.type in _LEFT_OUT:
            return
        if node.type in _NUMBERS | _STRINGS | _LETTERS | _TRUTHS:
            if self._other(node):
                yield node
            return
        for child in self._parts(node):
            yield from self._literals(child)

    def _parts(self, node: Node) -> Iterator[Node]:
        if node.type not in _CALLS:
            for place, child in enumerate(node.children):
                if node.field_name_for_child(place) not in ("type", "length", "index"):
                    yield child
            return
        receiver = _receiver(node)
        if receiver is not None:
            yield receiver
        name = self._name(node)
        if _MAKES.fullmatch(name) or (name[:1].isupper() and self._types_are_capital):
            yield from _arguments(node)

    def _other(self, node: Node, far: bool = False) -> str:
        """Return another literal of the same type; "" if there is none."""
        text = self.tree.text(node)
        if node.type in _TRUTHS:
            return "false" if text == "true" else "true"
        if node.type in _LETTERS:
            opening, letter = text.index("'") + 1, "z" if "'q'" in text else "q"
            return f"{text[:opening]}{letter}'"
        if node.type in _STRINGS:
            found = _OPENING.match(text)
            return f"{found[0]}q{text[found.end() :]}" if found else ""
        return _other_number(text, far)

    def _uses_program(self, node: Node) -> bool:
        names = (one for one in self.tree.nodes(*_NAMES, within=node) if self.tree.text(one) in self._defined)
        return any(not self._is_of_library(one) for one in names)

    def _is_of_library(self, name: Node) -> bool:
        """Return whether ``name`` is a method of a class that the program does not have: ``of`` in ``List.of(…)``."""
        call = name.parent
        if call is None or call.type != "method_invocation" or call.child_by_field_name("name") != name:
            return False
        owner = self.tree.text(call.child_by_field_name("object") or name).rpartition(".")[2]
        return owner[:1].isupper() and owner not in self._defined

    def _calls_program(self, node: Node) -> bool:
        calls = (_callee(one) for one in self.tree.nodes(*_CALLS, within=node))
        return any(one is not None and self._uses_program(one) for one in calls)

    def _name(self, node: Node) -> str:
        """Return the last name of the function that a call calls."""
        callee = _callee(node)
        found = re.search(r"([\w$]+)\s*(?:(?:::)?<.*>)?\s*$", self.tree.text(callee), re.DOTALL) if callee else None
        return found[1] if found else ""


def _defined(program: Program) -> frozenset[str]:
    """Return the names of the functions and types that a program defines."""
    source = program.source
    try:
        found = find_all(_FUNCTION_AFTER.get(program.language, _FUNCTION), source)
    except PatternError:  # too long to search
        found = []
    if program.language in _FUNCTION_AFTER:
        names = {re.findall(r"\w+", one)[-1] for one in found}
    else:
        heads = [re.findall(r"(\w+)\s*(?:<[^<>(){}]*>)?\(", one) for one in found]
        names = {name for head in heads if head and head[0] not in _KEYWORDS for name in head}
    return frozenset(names | set(_TYPE.findall(source)) | {program.entry_point, "candidate", "solution"})


def _operator(node: Node) -> str:
    if node.type not in ("binary_expression", "unary_expression"):
        return ""
    found = node.child_by_field_name("operator") or next((one for one in node.children if not one.is_named), None)
    return (found.text or b"").decode() if found is not None else ""


def _is_alternative(node: Node) -> bool:
    """Return whether a condition is part of a disjunction or denied, so that it may be false although all is well."""
    at = node.parent
    while at is not None and at.type in ("parenthesized_expression", "binary_expression", "unary_expression"):
        if _operator(at) in ("||", "!"):
            return True
        at = at.parent
    return False


def _function_name(node: Node) -> str:
    name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    while name is not None and name.child_by_field_name("declarator") is not None:  # of C++
        name = name.child_by_field_name("declarator")
    return (name.text or b"").decode() if name is not None else ""


def _callee(node: Node) -> Node | None:
    for name in ("function", "name", "type"):
        found = node.child_by_field_name(name)
        if found is not None:
            return found
    return None


def _receiver(node: Node) -> Node | None:
    """Return ``a`` of the call ``a.f(…)``."""
    holder = node if node.type == "method_invocation" else _callee(node)
    if holder is None:
        return None
    for name in ("object", "value", "operand", "argument"):
        found = holder.child_by_field_name(name)
        if found is not None:
            return bare(found)
    return None


def _arguments(node: Node) -> list[Node]:
    given = node.child_by_field_name("arguments")
    return [one for one in given.named_children if "comment" not in one.type] if given is not None else []


def _other_number(text: str, far: bool) -> str:
    found = _INTEGER.fullmatch(text)
    if found:
        value, suffix = int(re.sub("[_']", "", found[1]), 0), found[2]
        return f"{value * 3 + _FAR}{suffix}" if far else f"{value - 1 if value in _LARGEST else value + 1}{suffix}"
    found = _DECIMAL.fullmatch(text)
    if not found or re.fullmatch(r"0\d+", text):
        return ""
    value = float(re.sub("[_']", "", found[1]))
    return f"{value + _FAR if value < 1e6 else value / 3!r}{found[2]}"
