"""Parses atoms, the smallest parts of an expression: numbers, names, commands and functions.

``syntax.Grammar`` extends the class ``Atoms``.
"""

from __future__ import annotations

import re
from fractions import Fraction

from bestofn.verifiers.math.derivatives import derivative
from bestofn.verifiers.math.nodes import Apply, Node, Number, Symbol, Text, head
from bestofn.verifiers.math.tokens import (
    ALIASES,
    CONSTANTS,
    FUNCTIONS,
    GREEK,
    Token,
    Unsupported,
    is_plain_integer,
    is_product,
    negative,
    number,
    repeating,
    times,
    tokens,
)

# Holds the position of the parser in a list of tokens. The classes of the grammar extend ``Cursor``.

MAX_DEPTH = 60


class Cursor:
    """The current position of the parser in the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0
        self.bars = 0
        self.closers: list[str] = []

    def peek(self, ahead: int = 0) -> Token:
        """Return the token ``ahead`` places after the current one. The position does not change."""
        try:
            return self.tokens[self.at + ahead]
        except IndexError:
            return self.tokens[-1]

    def take(self) -> Token:
        """Return the current token and move to the next one."""
        token = self.tokens[self.at]
        if self.at < len(self.tokens) - 1:
            self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Move past the current token if it is one of ``texts``. Return whether it was."""
        token = self.tokens[self.at]
        if token.text in texts and token.kind != "text" and token.kind != "end":
            self.take()
            return True
        return False

    def expect(self, text: str) -> None:
        """Move past the current token. Raises ``Unsupported`` if it is not ``text``."""
        if not self.accept(text):
            raise Unsupported(f"expected {text!r}, found {self.peek().text!r}")


# Parses brackets, sets, absolute values and matrices. The class ``atoms.Atoms`` extends ``Brackets``.

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


_WRAPPERS = frozenset(
    {"\\overrightarrow", "\\vec", "\\mathbf", "\\bar", "\\hat", "\\widehat", "\\tilde", "\\underline"}
)
_UNSUPPORTED = frozenset({"\\int", "\\sum", "\\prod", "\\lim", "\\iint", "\\oint", "\\nabla", "\\sup", "\\inf"})
_SPACES = re.compile(r"\s+")


class Atoms(Brackets):
    """Parses one atom at the current position. ``Grammar`` implements the abstract methods."""

    def factor(self) -> Node:
        """Parse a factor at the current position. ``Grammar`` implements this method."""
        raise NotImplementedError

    def power(self) -> Node:
        """Parse a power at the current position. ``Grammar`` implements this method."""
        raise NotImplementedError

    def _exponent(self) -> Node:
        raise NotImplementedError

    def _juxtaposed(self, left: Node) -> bool:
        raise NotImplementedError

    def primary(self) -> Node:
        """Parse one atom at the current position. Raises ``Unsupported`` if there is none."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        node = self._atom()
        self.depth -= 1
        return node

    def _atom(self) -> Node:
        token = self.peek()
        if token.kind == "number":
            return self._number()
        if token.kind == "word":
            return self._word()
        if token.kind == "command":
            return self._command()
        if token.kind == "text":
            return self._named_text()
        if token.text in ("(", "["):
            return self._bracket()
        if token.text == "{":
            return self._braces(collection=True)
        if token.text == "\\{":
            return self._set()
        if token.text == "|":
            return self._bars()
        if token.text in ("\\$", "£", "€", "¥", "₤", "₹", "$"):
            self.take()
            return Apply("money", (self._money_amount(),))
        raise Unsupported(f"no value begins with {token.text!r}")

    # numbers

    def _money_amount(self) -> Node:
        if self.accept("-"):
            return negative(self._number())
        return self._number()

    def _number(self) -> Node:
        token = self.take()
        if token.kind != "number":
            raise Unsupported(f"expected a number, found {token.text!r}")
        following = self.peek()
        if following.kind == "command" and following.text in ("\\overline", "\\bar", "\\dot") and "." in token.text:
            self.take()
            return repeating(token.text, self._raw_group())
        if (
            following.text == "("
            and not following.spaced
            and "." in token.text
            and self.peek(1).kind == "number"
            and self.peek(2).text == ")"
        ):
            self.take()
            cycle = self.take().text
            self.take()
            return repeating(token.text, cycle)
        if following.text in ("...", "\\ldots", "\\dots") and "." in token.text:
            self.take()
            return number(token.text)
        if following.text == "_":
            self.take()
            return Apply("base", (Text(token.text.replace(",", "")), self._subscript()))
        value = number(token.text)
        if (
            following.kind == "command"
            and following.text == "\\frac"
            and isinstance(value.value, int)
            and value.place is None
        ):
            return self._mixed_number(value)
        return value

    def _mixed_number(self, whole: Number) -> Node:
        """Parse the fraction after an integer: ``3\\frac{1}{2}`` is 3.5, ``3\\frac{x}{2}`` is a product."""
        part = self._command()
        if (
            isinstance(part, Apply) and part.head == "/"
            and all(is_plain_integer(side) for side in part.args)
        ):  # fmt: skip
            top, bottom = (side.value for side in part.args)  # type: ignore[union-attr]
            if bottom and 0 < top < bottom and self.peek().text not in ("^", "!"):
                return Number(whole.value + Fraction(int(top), int(bottom)))
        return times(whole, part)

    def _subscript(self) -> Node:
        if self.peek().text == "{":
            return Text(_SPACES.sub("", self._raw_group()))
        return Text(self.take().text)

    # names and commands

    def _word(self) -> Node:
        token = self.take()
        word = token.text
        if word in ("sqrt", "cbrt") or word in FUNCTIONS:
            return self._function(word)
        if word in CONSTANTS:
            return constant(word)
        if word in GREEK:
            return self._symbol(word)
        if len(word) == 1:
            return self._symbol(word)
        if word.isupper() and len(word) <= 3 and self.peek().text in ("=", "/", "}", ":"):
            return Apply("*", tuple(Symbol(letter) for letter in word))
        if is_product(word):
            parts = tuple(Symbol(letter) for letter in word)
            last = self._symbol(word[-1])
            return Apply("*", (*parts[:-1], self._power_of(last)))
        raise Unsupported(f"{word!r} is a word")

    def _power_of(self, node: Node) -> Node:
        if self.peek().text in ("^", "**"):
            self.take()
            return Apply("^", (node, self._exponent()))
        return node

    def _symbol(self, name: str) -> Node:
        if self.peek().text == "_" and self.peek().kind == "sign":
            self.take()
            below = self._subscript()
            return Symbol(f"{name}_{below.text}")  # type: ignore[union-attr]
        node = Symbol(name)
        if isinstance(node, Symbol) and name in "fghFGHPpqQrTS" and self.peek().text == "(" and not self.peek().spaced:
            return self._applied(node)
        if name == "C" and self.peek().text == "(":
            return self._chosen()
        return node

    def _chosen(self) -> Node:
        """Parse the bracket after the letter C. ``C(10, 3)`` is a binomial coefficient; ``C(x+1)`` is a product."""
        inside = self._bracket()
        match inside:
            case Apply("()", (Number(int() as n), Number(int() as k))) if n >= k > 0 and n > 4:
                return Apply("binomial", inside.args)
        return Apply("*", (Symbol("C"), inside))

    def _applied(self, function: Symbol) -> Node:
        """Parse the arguments of an unknown function, such as ``f(x+1)``, and return the call."""
        inside = self._bracket()
        return Apply("call", (function, inside))

    def _named_text(self) -> Node:
        """Parse a text command inside a formula, such as ``\\mathrm{x}``.

        Raises ``Unsupported`` if the text is not the name of a variable, a function or a constant.
        """
        token = self.peek()
        content = token.text.strip()
        if re.fullmatch(r"[A-Za-z]", content):
            self.take()
            return self._symbol(content)
        if content in FUNCTIONS:
            self.take()
            return self._function(content)
        if content in CONSTANTS:
            self.take()
            return constant(content)
        raise Unsupported(f"{content!r} is text")

    def _command(self) -> Node:
        token = self.take()
        name = token.text[1:]
        if name == "frac" or name == "cfrac":
            return self._fraction()
        if name == "sqrt":
            return self._root()
        if name in ("binom", "dbinom", "tbinom", "choose"):
            return Apply("binomial", (self._argument(), self._argument()))
        if name in FUNCTIONS:
            return self._function(name)
        if name in CONSTANTS:
            return constant(name)
        if name in ("angle", "triangle", "measuredangle") and self.peek().kind == "word":
            return Symbol(f"{name}_{self.take().text}")
        if name in ("Gamma", "zeta") and self.peek().text == "(":
            return Apply(name, self._function_arguments(name))
        if name in GREEK:
            return self._symbol({"varphi": "phi", "varepsilon": "epsilon", "vartheta": "theta"}.get(name, name))
        if name in ("lfloor", "lceil"):
            inside = self._inside("\\rfloor" if name == "lfloor" else "\\rceil")
            return Apply("floor" if name == "lfloor" else "ceil", (inside,))
        if name == "begin":
            return self._environment()
        if name == "langle":
            return Apply("()", self._items("\\rangle"))
        if name == "mathbb":
            return Symbol(f"mathbb_{self._raw_group()}")
        if token.text in _WRAPPERS:
            return self._argument()
        if name == "overline":
            return Apply("conjugate", (self._argument(),))
        if name == "boxed" or name == "fbox":
            return self._argument()
        if name in ("pmod", "bmod"):
            raise Unsupported("modulus without a value")
        if token.text in _UNSUPPORTED:
            raise Unsupported(f"{token.text} is left to the symbolic path")
        raise Unsupported(f"unknown command {token.text}")

    def _fraction(self) -> Node:
        """Parse the arguments of a fraction. For d/dx, parse the next expression too, and return its derivative."""
        fraction = Apply("/", (self._argument(), self._argument()))
        operator = _differential(fraction)
        if operator is None or self.peek().kind == "end" or not self._juxtaposed(fraction):
            return fraction
        return derivative(self._loose_argument(), *operator)

    def _argument(self) -> Node:
        """Parse the argument of a command: a brace group or a single character (``\\frac12`` is one half)."""
        token = self.peek()
        if token.text == "{" and token.kind == "sign":
            return self._braces()
        if token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            first, rest = token.text[0], token.text[1:]
            self.tokens[self.at] = Token("number", rest, token.start + 1, token.end)
            return Number(int(first))
        if token.kind == "word" and len(token.text) > 1:
            self.tokens[self.at] = Token("word", token.text[1:], token.start + 1, token.end)
            return Symbol(token.text[0])
        if token.kind == "text":
            return self._named_text_value()
        if token.text == "-":
            return self.factor()
        return self.primary()

    def _named_text_value(self) -> Node:
        inside = type(self)(self.peek().text)  # for example the 3 in \frac{\text{3}}{4}
        node = inside.answer()
        if inside.peek().kind != "end":
            raise Unsupported("text in an argument")
        self.take()
        return node

    def _root(self) -> Node:
        if self.peek().text == "[":
            self.take()
            self.closers.append("]")
            degree = self.sum()
            self.closers.pop()
            self.expect("]")
            return Apply("root", (self._root_argument(), degree))
        return Apply("sqrt", (self._root_argument(),))

    def _root_argument(self) -> Node:
        r"""Parse the argument of a root. Without braces, it is the whole number: ``\sqrt12`` is the root of twelve."""
        return self.primary() if self.peek().kind == "number" else self._argument()

    # functions

    def _function(self, name: str) -> Node:
        name = ALIASES.get(name, name)
        if name in ("sqrt", "cbrt"):
            inside = self._argument()
            return Apply("sqrt", (inside,)) if name == "sqrt" else Apply("root", (inside, Number(3)))
        power: Node | None = None
        base: Node | None = None
        while self.peek().text in ("^", "_", "**"):
            if self.take().text == "_":
                base = self._exponent()
            else:
                power = self._exponent()
        arguments = self._function_arguments(name)
        if name == "log":
            arguments = (*arguments[:1], base) if base is not None else arguments
        elif name in ("exp",):
            return Apply("^", (Symbol("e"), arguments[0]))
        if name == "factorial":
            return Apply("!", arguments)
        node: Node = Apply(name, arguments)
        if power is None:
            return node
        if power == Number(-1) and name in ("sin", "cos", "tan"):
            return Apply(f"arc{name}", arguments)
        return Apply("^", (node, power))

    def _function_arguments(self, name: str) -> tuple[Node, ...]:
        token = self.peek()
        if token.text in ("(", "["):
            node = self._bracket()
            if isinstance(node, Apply) and node.head in ("()", "[]"):
                return node.args
            if self.peek().text in ("^", "**") and token.text == "(":
                return (node,)
            return (node,)
        if token.text == "{":
            return (self._braces(),)
        if token.text == "|":
            return (self._bars(),)
        return (self._loose_argument(),)

    def _loose_argument(self) -> Node:
        """Parse a function argument that has no brackets, such as ``2x`` in ``sin 2x + 1``."""
        if self.accept("-"):
            return negative(self._loose_argument())
        node = self.power()
        while True:
            token = self.peek()
            name = token.text.lstrip("\\")
            if (name in FUNCTIONS and name != "sqrt") or token.text == "(" or token.kind == "text":
                return node
            if (
                token.text == "/"
                and self.peek(1).kind == "number"
                and isinstance(node, Symbol | Number | Apply)
                and self.tokens[self.at - 1].text not in (")",)
            ):
                self.take()
                node = Apply("/", (node, self.factor()))
                continue
            if not self._juxtaposed(node):
                return node
            node = times(node, self.power())


def _differential(fraction: Apply) -> tuple[str, int] | None:
    """Return the variable and the order of a derivative operator such as d/dx or d²/dx²; None for other fractions."""
    match fraction.args:
        case Symbol("d"), Apply("*", (Symbol("d"), Symbol(name))):
            return name, 1
        case Apply("^", (Symbol("d"), Number(int() as order))), Apply(
            "*", (Symbol("d"), Apply("^", (Symbol(name), _)))
        ):
            return name, order
    return None


def constant(name: str) -> Node:
    """Return the tree of a named constant: pi, the empty set or infinity."""
    if name == "pi":
        return Symbol("pi")
    if name == "emptyset":
        return Apply("{}", ())
    return Symbol("infty")
