"""Parses brackets, sets, absolute values and matrices. The class ``atoms.Atoms`` extends ``Brackets``."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.cursor import Cursor
from bestofn.verifiers.math_verifier.literals import Unsupported
from bestofn.verifiers.math_verifier.nodes import Apply, Node, head

_CELL_END = frozenset({"&", "\\\\", "\\end", "\\cr"})


class Brackets(Cursor):
    """Parses expressions between opening and closing brackets or bars. ``Grammar`` implements the abstract methods."""

    def answer(self) -> Node:
        """Parse a whole answer: one relation, or a list of relations. ``Grammar`` implements this method."""
        raise NotImplementedError

    def relation(self) -> Node:
        """Parse a relation, or a single value, at the current position. ``Grammar`` implements this method."""
        raise NotImplementedError

    def sum(self) -> Node:
        """Parse a sum at the current position. ``Grammar`` implements this method."""
        raise NotImplementedError

    def _raw_group(self) -> str:
        if self.peek().text == "{":
            opening = self.take()
            start = opening.end
            while self.peek().text not in ("}", ""):
                self.take()
            end = self.peek().start
            self.expect("}")
            return self.text[start:end].strip()
        return self.take().text

    def _inside(self, closer: str) -> Node:
        self.closers.append(closer)
        bars, self.bars = self.bars, 0
        node = self.answer()
        self.bars = bars
        self.closers.pop()
        self.expect(closer)
        return node

    def _items(self, closer: str) -> tuple[Node, ...]:
        if self.accept(closer):
            return ()
        node = self._inside(closer)
        return node.args if isinstance(node, Apply) and node.head == "," else (node,)

    def _bracket(self) -> Node:
        """Parse a bracket. ``(a)`` becomes ``a``. ``(a, b)`` and ``[a, b)`` become collections with these brackets."""
        opening = self.take().text
        self.closers.append(")")
        bars, self.bars = self.bars, 0
        if self.accept(")", "]"):
            self.closers.pop()
            return Apply(opening + self.tokens[self.at - 1].text, ())
        node = self.answer()
        self.bars = bars
        self.closers.pop()
        closing = self.take().text
        if closing not in (")", "]"):
            raise Unsupported(f"expected a closing bracket, found {closing!r}")
        if isinstance(node, Apply) and node.head == ",":
            return Apply(opening + closing, node.args)
        if opening == "[" and closing == "]" and self._alone() and head(node) != "matrix":
            return Apply("[]", (node,))
        return node

    def _alone(self) -> bool:
        return self.peek().kind == "end" and self.tokens[0].text == "["

    def _braces(self, collection: bool = False) -> Node:
        self.expect("{")
        if self.accept("}"):
            return Apply("{}", ())
        bars, self.bars = self.bars, 0
        self.closers.append("}")
        node = self.answer()
        self.closers.pop()
        self.bars = bars
        self.expect("}")
        if isinstance(node, Apply) and node.head == "," and collection:
            return Apply("{}", node.args)
        return node

    def _set(self) -> Node:
        self.expect("\\{")
        return Apply("{}", self._items("\\}"))

    def _bars(self) -> Node:
        self.expect("|")
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        self.expect("|")
        return Apply("abs", (node,))

    def _environment(self) -> Node:
        name = self._raw_group().rstrip("*")
        if name == "array" and self.peek().text == "{":
            self._raw_group()
        if name not in (
            "pmatrix",
            "bmatrix",
            "matrix",
            "vmatrix",
            "Vmatrix",
            "smallmatrix",
            "array",
            "Bmatrix",
            "cases",
            "aligned",
            "align",
        ):
            raise Unsupported(f"environment {name}")
        rows: list[Node] = []
        row: list[Node] = []
        while True:
            if self.peek().text in _CELL_END or self.peek().text == "":
                end = self.take().text
            else:
                row.append(self.relation())
                end = self.take().text
            if end == "&":
                continue
            if end not in ("\\\\", "\\cr", "\\end"):
                raise Unsupported("a matrix that does not end")
            if row:
                rows.append(Apply("row", tuple(row)))
            row = []
            if end == "\\end":
                self._raw_group()
                break
        matrix = Apply("matrix", tuple(rows))
        return Apply("det", (matrix,)) if name == "vmatrix" else matrix
