"""Parses an answer in LaTeX or calculator notation by recursive descent, and returns a tree of ``nodes``.

Nothing is evaluated here, so the cost is linear in the length of the text. Integrals, sums and limits raise
``Unsupported``; ``verifier`` compares them with SymPy.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from bestofn.verifiers.math.atoms import MAX_DEPTH, Atoms
from bestofn.verifiers.math.derivatives import primed
from bestofn.verifiers.math.nodes import Apply, Node, Number, Symbol, Text
from bestofn.verifiers.math.tokens import CONSTANTS, FUNCTIONS, GREEK, Token, Unsupported, is_product, negative, times

_RELATIONS = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=",
    "\\le": "<=", "\\ge": ">=", "\\ne": "!=", "\\in": "in", "\\approx": "~", "≈": "~", "\\equiv": "congruent",
}  # fmt: skip
_FACTORS = frozenset({"\\frac", "\\sqrt", "\\binom", "\\lfloor", "\\lceil", "\\begin", "\\mathbf", "\\vec", "\\hat"})
_EITHER = frozenset({"or", "and/or", "\\lor", "\\vee", ";"})
_INEQUALITIES = frozenset({"<", "<=", ">", ">=", "!=", "chain", "in"})
_TIMES = frozenset({"*", "\\cdot", "\\times"})


class Parsed(NamedTuple):
    """The tree of the parsed text. ``tail`` is the text after the parsed part, such as a unit or a remark, or ""."""

    node: Node
    tail: str


def parse(text: str) -> Parsed:
    """Parse the longest mathematical beginning of a normalised ``text``. Raises ``Unsupported`` if there is none."""
    try:
        reader = Grammar(text)
        node = reader.answer()
    except RecursionError:
        raise Unsupported("nested too deeply") from None
    except ValueError as error:
        raise Unsupported(str(error)) from None
    token = reader.peek()
    return Parsed(node, text[token.start :].strip())


class Grammar(Atoms):
    """The parser for whole answers. It has one method per level of the grammar, from lists of relations to powers."""

    # lists and relations

    def answer(self) -> Node:
        """Parse a whole answer: one relation, or a list of relations with no brackets around it."""
        items, marks = [self.relation()], []
        while mark := self._separator():
            marks.append(mark)
            items.append(self.relation())
        if len(items) == 1:
            return items[0]
        if ";" in marks and "," in marks:
            return _grouped(items, marks)
        both = not any(mark.strip().lower() in _EITHER for mark in marks)
        if both and all(isinstance(item, Apply) and item.head in _INEQUALITIES for item in items):
            return Apply("cap", tuple(items))
        return Apply(",", tuple(items))

    def _separator(self) -> str:
        """Move past a list separator (``,``, ``;`` or a word such as "and") and return it, or "" if there is none."""
        mark = self.at
        token = self.peek()
        taken = False
        if token.text in (",", ";") and token.kind == "sign":
            self.take()
            taken = True
        word = self.peek()
        if (word.kind in ("word", "text") and word.text.strip().lower() in ("and", "or", "and/or")) or word.text in (
            "&",
            "\\lor",
            "\\vee",
            "\\land",
        ):
            self.take()
            taken = True
        if not taken or not self._starts_value():
            self.at = mark
            return ""
        return token.text

    def _starts_value(self) -> bool:
        token = self.peek()
        if token.kind == "number":
            return True
        if token.kind == "word":
            return self._symbolic_word(token)
        if token.kind == "command":
            return token.text not in ("\\cup", "\\cap", "\\end", "\\to", "\\cdot", "\\times", "\\in")
        return token.text in ("(", "[", "-", "+", "\\{", "|", "{", ".")

    def relation(self) -> Node:
        """Parse a value, or a chain of relations such as ``a < b <= c``, at the current position."""
        parts: list[Node] = [self.union()]
        signs: list[str] = []
        while True:
            token = self.peek()
            sign = _RELATIONS.get(token.text) if token.kind in ("sign", "command") else None
            if token.kind == "sign" and token.text == ":" and parts and self._starts_value_after():
                sign = ":"
            if sign is None:
                break
            mark = self.at
            self.take()
            if not self._starts_value():
                self.at = mark
                break
            signs.append(sign)
            parts.append(self.union())
        return _chain(parts, signs)

    def _starts_value_after(self) -> bool:
        self.at += 1
        try:
            return self._starts_value()
        finally:
            self.at -= 1

    def union(self) -> Node:
        """Parse a union or difference of sets, or a sum, at the current position."""
        parts: list[Node] = [self.sum()]
        while True:
            token = self.peek()
            if token.text in ("\\cup", "\\bigcup") or (
                token.kind == "word" and token.text in ("U", "union") and _is_range(parts[-1])
            ):
                self.take()
                parts.append(self.sum())
            elif token.text in ("\\setminus", "\\backslash") and self._starts_value_after():
                self.take()
                parts = [Apply("setminus", (parts[-1], self.sum()))]
            else:
                break
        return parts[0] if len(parts) == 1 else Apply("union", tuple(parts))

    # arithmetic

    def sum(self) -> Node:
        """Parse terms with plus, minus or plus-minus between them. Raises ``Unsupported`` if nesting is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        terms: list[Node] = [self.signed()]
        while True:
            token = self.peek()
            if token.text == "+" or (token.text == "-" and token.kind == "sign"):
                mark = self.at
                self.take()
                if not self._starts_value():
                    self.at = mark
                    break
                term = self.signed() if self.peek().text == "-" else self.product()
                terms.append(term if token.text == "+" else negative(term))
            elif token.text in ("\\pm", "\\mp"):
                self.take()
                left = terms[0] if len(terms) == 1 else Apply("+", tuple(terms))
                terms = [Apply("pm" if token.text == "\\pm" else "mp", (left, self.product()))]
            else:
                break
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Apply("+", tuple(terms))

    def signed(self) -> Node:
        """Parse a term with its sign at the current position."""
        if self.accept("-"):
            return negative(self.signed())
        if self.accept("+"):
            if self.peek().text == "-" or self.accept("/"):
                self.accept("-")
                return Apply("pm", (Number(0), self.product()))
            return self.signed()
        if self.accept("\\pm"):
            return Apply("pm", (Number(0), self.product()))
        return self.product()

    def product(self) -> Node:
        """Parse a product or quotient: factors, with or without operators between them."""
        left = self.power()
        while True:
            mark = self.at
            state = self.depth, self.bars, len(self.closers)
            try:
                longer = self._multiplied(left)
            except Unsupported:  # no factor follows, so the value ends here
                self.at = mark
                self.depth, self.bars, opened = state
                del self.closers[opened:]
                if self.closers:
                    raise
                return left
            if longer is None:
                self.at = mark
                return left
            left = longer

    def _multiplied(self, left: Node) -> Node | None:
        """Return ``left`` combined with the next factor, divisor or modulus. Return None if the product ends here."""
        token = self.peek()
        if token.text in _TIMES and token.kind in ("sign", "command"):
            self.take()
            return times(left, self.factor()) if self._starts_value() else None
        if token.text == "/" and token.kind == "sign":
            self.take()
            return Apply("/", (left, self.factor())) if self._starts_value() else None
        if token.text in ("\\bmod", "\\pmod", "\\mod") or (token.kind == "word" and token.text == "mod"):
            self.take()
            return Apply("mod", (left, self._argument() if self.peek().text == "{" else self.power()))
        if token.text == "%" and self._modulo_follows():
            self.take()
            return Apply("mod", (left, self.factor()))
        if token.kind == "number" and isinstance(left, Number):
            return self._plain_mixed(left) if self._mixed_follows(left, token) else None
        return times(left, self.power()) if self._juxtaposed(left) else None

    def _modulo_follows(self) -> bool:
        return self.peek(1).kind == "number" and self.peek(1).spaced and self.peek().spaced

    def factor(self) -> Node:
        """Parse a power with its sign at the current position."""
        if self.accept("-"):
            return negative(self.factor())
        if self.accept("+"):
            return self.factor()
        return self.power()

    def _juxtaposed(self, left: Node) -> bool:
        """Return whether the next token is multiplied by ``left`` with no operator between them, as in ``2x``."""
        token = self.peek()
        if token.kind == "number":
            previous = self.tokens[self.at - 1]
            if isinstance(left, Number):
                return False
            return not token.spaced or previous.text in (")", "}", "!")
        if token.kind == "word":
            if token.spaced and isinstance(left, Number) and not self.closers and not self._letters(token):
                return False
            return self._symbolic_word(token)
        if token.kind == "command":
            name = token.text[1:]
            return (
                name in FUNCTIONS or name in CONSTANTS or name in GREEK
                or token.text in _FACTORS
            )  # fmt: skip
        if token.text == "|":
            return not self.bars and self._bar_opens()
        if token.text == "[" and isinstance(left, Number):
            return False
        return token.text in ("(", "{", "[") and (token.kind == "sign") and not (token.text == "[" and token.spaced)

    def _letters(self, token: Token) -> bool:
        """Return whether ``token`` may be a factor after a number and a space, as in ``3 x + 1`` or ``5 m``."""
        return len(token.text) == 1 or token.text in FUNCTIONS or token.text in CONSTANTS

    def _mixed_follows(self, whole: Number, token: Token) -> bool:
        """Return whether a mixed number follows: an integer, a space and a proper fraction, such as ``1 1/2``."""
        if not token.spaced or whole.place is not None or not isinstance(whole.value, int):
            return False
        top, slash, bottom = token.text, self.peek(1).text, self.peek(2)
        return (
            slash == "/"
            and bottom.kind == "number"
            and top.isdigit()
            and bottom.text.isdigit()
            and int(top) < int(bottom.text)
        )

    def _plain_mixed(self, whole: Number) -> Number:
        top = int(self.take().text)
        self.take()
        return Number(whole.value + Fraction(top, int(self.take().text)))

    def _bar_opens(self) -> bool:
        return "|" in self.text[self.peek().end :]

    def _symbolic_word(self, token: Token) -> bool:
        word = token.text
        if word.isupper() and len(word) <= 3 and word.isascii() and self._named(token):
            return True
        if "\u3040" <= word[0] <= "\ud7af":  # 12元, 12個, 12개: a counter, not a variable
            return False
        if len(word) == 1 or word in FUNCTIONS or word in CONSTANTS:
            return word not in ("U",) or self.peek(1).text != "("
        if not word.isascii():
            return False
        if word in GREEK:
            return True
        following = self.peek(1 if self.peek() is token else 0)
        if following.kind == "word" and following.spaced and len(following.text) > 1:
            return False
        return is_product(word)

    def _named(self, token: Token) -> bool:
        """Return whether a word in capital letters names a geometric object, such as ``AB`` in ``AB = 4``."""
        following = (
            self.tokens[self.tokens.index(token, self.at) + 1] if token in self.tokens[self.at :] else self.peek(1)
        )
        return following.text in ("=", "/", "}", ":")

    def power(self) -> Node:
        """Parse a base with its exponents and the marks after it (factorial, percent, degrees)."""
        base = self.postfix(self.primary())
        token = self.peek()
        if token.text in ("^", "**") and token.kind == "sign":
            self.take()
            if self.accept("\\circ"):
                if self.peek().text in ("C", "F"):
                    return Apply("unit", (base, Text(f"deg{self.take().text}")))
                return self.postfix(Apply("deg", (base,)))
            if self.accept("'"):
                return primed(base)
            exponent = self._exponent()
            if isinstance(base, Symbol) and isinstance(exponent, Symbol) and exponent.name in ("T", "top"):
                return Apply("transpose", (base,))
            base = self.postfix(Apply("^", (base, exponent)))
            if self.peek().text in ("^", "**"):  # a^b^c means a^(b^c)
                self.take()
                inner = Apply("^", (exponent, self._exponent()))
                return Apply("^", (base.args[0], inner)) if isinstance(base, Apply) and base.head == "^" else base
        return base

    def _exponent(self) -> Node:
        token = self.peek()
        if token.text == "{" and token.kind == "sign":
            return self._braces()
        if self.accept("-"):
            return negative(self._exponent())
        if self.accept("+"):
            return self._exponent()
        node = self.postfix(self.primary())
        if self.peek().text in ("^", "**"):
            self.take()
            node = Apply("^", (node, self._exponent()))
        return node

    def postfix(self, node: Node) -> Node:
        """Parse the marks after ``node`` (factorial, percent, prime) and return the combined tree."""
        while True:
            token = self.peek()
            if token.text == "!" and token.kind == "sign":
                self.take()
                node = Apply("!", (node,))
            elif token.text == "%" and not self._modulo_follows():
                self.take()
                node = Apply("percent", (node,))
            elif token.text == "'":
                self.take()
                node = primed(node)
            else:
                return node


def _is_range(node: Node) -> bool:
    return isinstance(node, Apply) and node.head in ("()", "[]", "(]", "[)", "{}")


def _grouped(items: list[Node], marks: list[str]) -> Node:
    """Return a list of tuples from an answer such as ``p=5, q=2; p=7, q=2``."""
    groups: list[list[Node]] = [[items[0]]]
    for mark, item in zip(marks, items[1:], strict=True):
        if mark == ";":
            groups.append([item])
        else:
            groups[-1].append(item)
    return Apply(",", tuple(Apply("()", tuple(group)) if len(group) > 1 else group[0] for group in groups))


def _chain(parts: list[Node], signs: list[str]) -> Node:
    """Return the tree of one relation or a chain of relations. An approximation becomes a ``~`` node with two sides.

    Raises ``Unsupported`` if a colon is mixed with other relations.
    """
    if not signs:
        return parts[0]
    if "~" in signs:
        cut = signs.index("~")
        return Apply("~", (_chain(parts[: cut + 1], signs[:cut]), _chain(parts[cut + 1 :], signs[cut + 1 :])))
    if ":" in signs:
        if signs == [":", "="]:
            return Apply("=", (Apply("ratio", tuple(parts[:2])), parts[2]))
        if all(sign == ":" for sign in signs):
            return Apply("ratio", tuple(parts))
        raise Unsupported("a colon among relations")
    if signs == ["congruent"] and isinstance(parts[1], Apply) and parts[1].head == "mod":
        return Apply("congruent", (parts[0], *parts[1].args))
    signs = ["=" if sign == "congruent" else sign for sign in signs]
    if len(signs) == 1 or all(sign == "=" for sign in signs):
        return Apply(signs[0], tuple(parts))
    return Apply("chain", tuple(Apply(sign, (parts[i], parts[i + 1])) for i, sign in enumerate(signs)))
