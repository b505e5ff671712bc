"""Reads XML, and checks it against a declared shape, as a small part of XSD does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from bestofn.verifiers.structured.json_schemas import violation
from bestofn.verifiers.structured.parsing import Finding, SpecificationError, SyntaxProblemError, pointer, typed

DECLARATION = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
KEYS = frozenset({"name", "attributes", "children", "text", "min", "max", "any_order", "other_attributes"})


def parse_xml(text: str) -> ElementTree.Element:
    """Return the root of ``text``. Raises ``SyntaxProblemError`` if it is not XML or has a document type."""
    text = text.strip()
    if DECLARATION.search(text):
        _refuse_document_type(text)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise SyntaxProblemError(f"not XML: {error}") from None


def _refuse_document_type(text: str) -> None:
    """Raise ``SyntaxProblemError`` if ``text`` has a document type; in a comment or in CDATA, the word is only text."""

    def refuse(*_: object) -> None:
        raise SyntaxProblemError("XML with a document type or entities is not read")

    reader = expat.ParserCreate()
    reader.StartDoctypeDeclHandler = refuse
    try:
        reader.Parse(text, True)
    except expat.ExpatError as error:
        raise SyntaxProblemError(f"not XML: {error}") from None


def xml_violation(shape: Mapping[str, Any], element: ElementTree.Element, path: list[Any] | None = None) -> Finding:
    """Return a finding with the first violation of ``shape`` by ``element``. Its step is ``kept`` if there is none.

    A shape has these keys:

    - ``name``: the name of the element.
    - ``attributes``: name → JSON Schema. An optional attribute has ``required: false``.
    - ``text``: the JSON Schema of the text.
    - ``children``: shapes with ``min`` and ``max``. Their order counts, unless ``any_order`` is set.
    """
    unknown = sorted(set(shape) - KEYS)
    if unknown:
        raise SpecificationError(
            f"the shape of an element has the key {unknown[0]!r}; expected {', '.join(sorted(KEYS))}"
        )
    path = [*(path or []), element.tag]
    if shape.get("name") not in (None, element.tag):
        return Finding("shape", f"the element is {element.tag!r}; expected {shape['name']!r}", pointer(path))
    for finding in (_attributes(shape, element, path), _text(shape, element, path)):
        if finding.step != "kept":
            return finding
    return _children(shape, element, path)


def _attributes(shape: Mapping[str, Any], element: ElementTree.Element, path: list[Any]) -> Finding:
    declared: Mapping[str, Any] = shape.get("attributes") or {}
    for name, schema in declared.items():
        here = pointer([*path, f"@{name}"])
        if name not in element.attrib:
            if schema.get("required", True):
                return Finding("shape", f"the attribute {name!r} is missing", here)
            continue
        schema = {key: value for key, value in schema.items() if key != "required"}
        finding = violation(schema, typed(element.attrib[name], schema), formats=True)
        if finding.step != "kept":
            return Finding("shape", finding.problem, here)
    extra = [name for name in element.attrib if name not in declared]
    if extra and not shape.get("other_attributes"):
        return Finding("shape", f"the attribute {extra[0]!r} is not expected", pointer([*path, f"@{extra[0]}"]))
    return Finding("kept")


def _text(shape: Mapping[str, Any], element: ElementTree.Element, path: list[Any]) -> Finding:
    text = (element.text or "").strip()
    schema = shape.get("text")
    if schema is None:
        unexpected = text and shape.get("children") is not None
        return (
            Finding("shape", f"the text {text[:60]!r} is not expected", pointer(path))
            if unexpected
            else Finding("kept")
        )
    finding = violation(schema, typed(text, schema), formats=True)
    return finding if finding.step == "kept" else Finding("shape", finding.problem, pointer(path))


def _children(shape: Mapping[str, Any], element: ElementTree.Element, path: list[Any]) -> Finding:
    shapes: Sequence[Mapping[str, Any]] | None = shape.get("children")
    if shapes is None:
        return Finding("kept")
    names = [one.get("name") for one in shapes]
    tags = [child.tag for child in element]
    other = next((tag for tag in tags if tag not in names), None)
    if other is not None:
        return Finding("shape", f"the element {other!r} is not expected", pointer([*path, other]))
    if not shape.get("any_order") and [names.index(tag) for tag in tags] != sorted(names.index(tag) for tag in tags):
        return Finding("shape", f"the elements are in the order {tags[:10]}; expected {names}", pointer(path))
    for one in shapes:
        count, least, most = tags.count(str(one.get("name"))), one.get("min", 1), one.get("max", 1)
        if count < least or (most is not None and count > most):
            return Finding("shape", f"{count} elements {one.get('name')!r}; expected {least} to {most}", pointer(path))
    by_name = {one.get("name"): one for one in shapes}
    found = (xml_violation(by_name[child.tag], child, path) for child in element)
    return next((finding for finding in found if finding.step != "kept"), Finding("kept"))
