"""The grammar of answers: LaTeX, calculator notation and what lies between, read by recursive descent into ``nodes``.

No evaluation happens here, so the cost is linear in the length of the text. What the grammar does not know
(integrals, sums, limits) raises ``Unsupported`` and is left to the symbolic path.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from verifiers.math_verifier.nodes import Apply, Node, Number, Symbol, Text
from verifiers.math_verifier.tokens import Token, tokens

MAX_DEPTH = 60

FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth asin acos atan log ln lg exp sqrt abs cbrt "
    "max min gcd lcm det factorial floor ceil sgn binomial comb re im arg Re Im Arg".split()
)
_ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "comb": "binomial",
    "Re": "re",
    "Im": "im",
    "Arg": "arg",
}
CONSTANTS = frozenset({"pi", "infty", "infinity", "inf", "oo", "Infinity", "emptyset"})
_GREEK = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar".split()
)
_RELATIONS = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=", "\\le": "<=", "\\ge": ">=", "\\ne": "!=",
    "\\in": "in", "\\approx": "~", "≈": "~", "\\equiv": "=",
}  # fmt: skip
_TIMES = frozenset({"*", "\\cdot", "\\times"})
_WRAPPERS = frozenset(
    {"\\overrightarrow", "\\vec", "\\mathbf", "\\bar", "\\hat", "\\widehat", "\\tilde", "\\underline"}
)
_UNSUPPORTED = frozenset(
    {"\\int", "\\sum", "\\prod", "\\lim", "\\iint", "\\oint", "\\partial", "\\nabla", "\\sup", "\\inf"}
)
_SPACES = re.compile(r"\s+")
_STOPWORDS = frozenset(
    "is are a an to of for by the be per no if so at as on in it we up do us am pm go he me my or and not any all".split()
)
_CELL_END = frozenset({"&", "\\\\", "\\end", "\\cr"})


class Unsupported(ValueError):
    """The text is mathematics that this grammar does not read, or no mathematics at all."""


class Parsed(NamedTuple):
    """A tree and the words that follow it (a unit, a remark): "" when the whole text was read."""

    node: Node
    tail: str


def parse(text: str) -> Parsed:
    """The longest mathematical beginning of a normalised ``text``. Raises ``Unsupported``."""
    try:
        reader = _Reader(text)
        node = reader.answer()
    except RecursionError:
        raise Unsupported("nested too deeply") from None
    except ValueError as error:
        raise Unsupported(str(error)) from None
    token = reader.peek()
    return Parsed(node, text[token.start :].strip())


def number(literal: str) -> Number:
    """A literal such as ``1,234.50`` or ``6e-24``, exactly."""
    mantissa, _, exponent = literal.replace(",", "").lower().partition("e")
    whole, point, digits = mantissa.partition(".")
    shift = int(exponent) if exponent else 0
    if abs(shift) > 5000:
        raise Unsupported("the exponent of the literal is out of bounds")
    if not point and not exponent:
        return Number(int(whole))
    place = shift - len(digits)
    value = int((whole + digits) or "0") * (Fraction(10) ** place)
    return Number(value.numerator if value.denominator == 1 else value, place)


def negative(node: Node) -> Node:
    if isinstance(node, Number):
        return Number(-node.value, node.place)
    return Apply("neg", (node,))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0
        self.bars = 0
        self.closers: list[str] = []

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        token = self.tokens[self.at]
        if self.at < len(self.tokens) - 1:
            self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        token = self.tokens[self.at]
        if token.text in texts and token.kind != "text" and token.kind != "end":
            self.take()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise Unsupported(f"expected {text!r}, found {self.peek().text!r}")

    # collections ------------------------------------------------------------------------------------------------

    def answer(self) -> Node:
        """A bare list of relations, or one."""
        items, marks = [self.relation()], []
        while mark := self._separator():
            marks.append(mark)
            items.append(self.relation())
        if len(items) == 1:
            return items[0]
        if ";" in marks and "," in marks:
            return _grouped(items, marks)
        return Apply(",", tuple(items))

    def _separator(self) -> str:
        """The separator that was taken: a sign or a word; "" when none stands here."""
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
        """``a``, or a chain such as ``a < b <= c``."""
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
        parts = [self.sum()]
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

    # arithmetic -------------------------------------------------------------------------------------------------

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        terms = [self.signed()]
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
        left = self.power()
        while True:
            mark = self.at
            state = self.depth, self.bars, len(self.closers)
            try:
                longer = self._multiplied(left)
            except Unsupported:  # what follows is no factor: the value ends before it
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
        """``left`` with the next factor, divisor or modulus; None when none follows."""
        token = self.peek()
        if token.text in _TIMES and token.kind in ("sign", "command"):
            self.take()
            return _times(left, self.factor()) if self._starts_value() else None
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
        return _times(left, self.power()) if self._juxtaposed(left) else None

    def _modulo_follows(self) -> bool:
        return self.peek(1).kind == "number" and self.peek(1).spaced and self.peek().spaced

    def factor(self) -> Node:
        if self.accept("-"):
            return negative(self.factor())
        if self.accept("+"):
            return self.factor()
        return self.power()

    def _juxtaposed(self, left: Node) -> bool:
        """Whether the next token multiplies ``left`` without a sign between."""
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
                name in FUNCTIONS or name in CONSTANTS or name in _GREEK
                or token.text in ("\\frac", "\\sqrt", "\\binom", "\\lfloor", "\\lceil", "\\begin", "\\mathbf", "\\vec", "\\hat")
            )  # fmt: skip
        if token.text == "|":
            return not self.bars and self._bar_opens()
        if token.text == "[" and isinstance(left, Number):
            return False
        return token.text in ("(", "{", "[") and (token.kind == "sign") and not (token.text == "[" and token.spaced)

    def _letters(self, token: Token) -> bool:
        """A blank and a letter after a number: a factor in ``3 x + 1``, a unit in ``5 m``; both read as a product."""
        return len(token.text) == 1 or token.text in FUNCTIONS or token.text in CONSTANTS

    def _mixed_follows(self, whole: Number, token: Token) -> bool:
        """``1 1/2``: an integer, a blank, and a proper fraction of plain integers."""
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
        if len(word) == 1 or word in FUNCTIONS or word in CONSTANTS:
            return word not in ("U",) or not self.peek(1).text == "("
        if not word.isascii():
            return False
        if word in _GREEK:
            return True
        following = self.peek(1 if self.peek() is token else 0)
        if following.kind == "word" and following.spaced and len(following.text) > 1:
            return False
        return _is_product(word)

    def _named(self, token: Token) -> bool:
        """Capitals that name a segment or a triangle: ``AB = 4``, ``NO/BO = 1``."""
        following = (
            self.tokens[self.tokens.index(token, self.at) + 1] if token in self.tokens[self.at :] else self.peek(1)
        )
        return following.text in ("=", "/", "}", ":")

    def power(self) -> Node:
        base = self.postfix(self.primary())
        token = self.peek()
        if token.text in ("^", "**") and token.kind == "sign":
            self.take()
            if self.accept("\\circ"):
                if self.peek().text in ("C", "F"):
                    return Apply("unit", (base, Text(f"deg{self.take().text}")))
                return self.postfix(Apply("deg", (base,)))
            if self.accept("'"):
                return base
            exponent = self._exponent()
            if isinstance(base, Symbol) and isinstance(exponent, Symbol) and exponent.name in ("T", "top", "prime"):
                return Apply("transpose", (base,))
            base = self.postfix(Apply("^", (base, exponent)))
            if self.peek().text in ("^", "**"):  # a^b^c
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
        while True:
            token = self.peek()
            if token.text == "!" and token.kind == "sign":
                self.take()
                node = Apply("!", (node,))
            elif token.text == "%" and not self._modulo_follows():
                self.take()
                node = Apply("percent", (node,))
            elif token.text == "'" and isinstance(node, Symbol):
                self.take()
                node = Symbol(node.name + "'")
            else:
                return node

    # atoms ------------------------------------------------------------------------------------------------------

    def primary(self) -> Node:
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
            return _repeating(token.text, self._raw_group())
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
            return _repeating(token.text, cycle)
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
        """``3\\frac{1}{2}`` is three and a half when both parts of the fraction are plain integers, else a product."""
        part = self._command()
        if (
            isinstance(part, Apply) and part.head == "/"
            and all(isinstance(side, Number) and isinstance(side.value, int) and side.place is None for side in part.args)
        ):  # fmt: skip
            top, bottom = (side.value for side in part.args)  # type: ignore[union-attr]
            if bottom and 0 < top < bottom and self.peek().text not in ("^", "!"):
                return Number(whole.value + Fraction(int(top), int(bottom)))
        return _times(whole, part)

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

    def _subscript(self) -> Node:
        if self.peek().text == "{":
            return Text(_SPACES.sub("", self._raw_group()))
        return Text(self.take().text)

    def _word(self) -> Node:
        token = self.take()
        word = token.text
        if word in ("sqrt", "cbrt") or word in FUNCTIONS:
            return self._function(word)
        if word in CONSTANTS:
            return _constant(word)
        if word in _GREEK:
            return self._symbol(word)
        if len(word) == 1:
            return self._symbol(word)
        if word.isupper() and len(word) <= 3 and self.peek().text in ("=", "/", "}", ":"):
            return Apply("*", tuple(Symbol(letter) for letter in word))
        if _is_product(word):
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
        """``C(10, 3)``: the binomial coefficient, where both are integers and it is none of a point named C."""
        inside = self._bracket()
        match inside:
            case Apply("()", (Number(int() as n), Number(int() as k))) if n >= k > 0 and n > 4:
                return Apply("binomial", inside.args)
        return Apply("*", (Symbol("C"), inside))

    def _applied(self, function: Symbol) -> Node:
        """``f(x)``: an unknown function of what stands in the brackets; ``f(x+1)`` and ``p(2)`` too."""
        inside = self._bracket()
        return Apply("call", (function, inside))

    def _named_text(self) -> Node:
        """Text inside mathematics: a variable name such as ``\\mathrm{x}``, a number, or words that end the value."""
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
            return _constant(content)
        raise Unsupported(f"{content!r} is text")

    def _command(self) -> Node:
        token = self.take()
        name = token.text[1:]
        if name == "frac" or name == "cfrac":
            return Apply("/", (self._argument(), self._argument()))
        if name == "sqrt":
            return self._root()
        if name in ("binom", "dbinom", "tbinom", "choose"):
            return Apply("binomial", (self._argument(), self._argument()))
        if name in FUNCTIONS:
            return self._function(name)
        if name in CONSTANTS:
            return _constant(name)
        if name in _GREEK:
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

    def _argument(self) -> Node:
        """A brace group, or LaTeX's single token: ``\\frac12`` is one half."""
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
        inner = parse(self.peek().text)
        if inner.tail:
            raise Unsupported("text in an argument")
        self.take()
        return inner.node

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
        """The whole number after a bare root sign: nobody who writes ``\\sqrt12`` means the root of one."""
        return self.primary() if self.peek().kind == "number" else self._argument()

    def _function(self, name: str) -> Node:
        name = _ALIASES.get(name, name)
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
        """``sin 2x``, ``\\log_2 3``: the product that follows, up to the next function or sign."""
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
            node = _times(node, self.power())

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
        """``(a)`` groups; ``(a, b)``, ``[a, b)`` are collections, whose brackets are kept."""
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
        if opening == "[" and closing == "]" and self._alone():
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


def _constant(name: str) -> Node:
    if name == "pi":
        return Symbol("pi")
    if name == "emptyset":
        return Apply("{}", ())
    return Symbol("infty")


def _is_range(node: Node) -> bool:
    return isinstance(node, Apply) and node.head in ("()", "[]", "(]", "[)", "{}")


def _times(left: Node, right: Node) -> Node:
    """A product; ``2.3 \\times 10^4`` is folded into one decimal, so that its precision is known."""
    if (
        isinstance(left, Number) and isinstance(right, Apply) and right.head == "^" and right.args[0] == Number(10)
        and isinstance(right.args[1], Number) and isinstance(right.args[1].value, int) and abs(right.args[1].value) < 1000
        and right.args[1].place is None
    ):  # fmt: skip
        power = right.args[1].value
        value = left.value * Fraction(10) ** power
        place = (left.place or 0) + power
        return Number(value.numerator if value.denominator == 1 else value, place)
    if isinstance(left, Apply) and left.head == "*":
        return Apply("*", (*left.args, right))
    return Apply("*", (left, right))


def _repeating(literal: str, cycle: str) -> Node:
    """0.1(6), 0.1\\overline{6}: exactly."""
    if not cycle.isdigit():
        raise Unsupported("a repeating decimal needs digits under its bar")
    whole, _, fixed = literal.replace(",", "").partition(".")
    nines = (10 ** len(cycle) - 1) * 10 ** len(fixed)
    return Number(Fraction(int(whole + fixed or "0"), 10 ** len(fixed)) + Fraction(int(cycle), nines))


def _is_product(word: str) -> bool:
    """Whether a short lower-case word is rather a product of letters (``ab``, ``xyz``) than a word or a unit."""
    if not (word.isascii() and word.islower() and len(word) <= 4) or word in _STOPWORDS or word in _UNITS:
        return False
    return len(word) <= 3 or not re.search(r"[aeiou]", word)


_UNITS = frozenset(
    "cm mm km nm kg mg ml mi ft in lb lbs oz yd hz kw pa ev mev hr hrs min mins sec secs day days mph kph ms ns rad mol amu "
    "atm psi gal bar cal kcal cc cms kms ton tons bits bit pts dm deg dl cl hp rpm usd eur cent year yr yrs gb mb kb th st nd "
    "rd pt qt rev man men pie pies cup cups egg eggs cat cats dog dogs pen pens car cars bag bags box toy toys hat hats can cans "
    "book hour week mile inch foot feet acre gram unit ways more less each left time page kids ears eyes legs cars bees ants "
    "cows pigs hens fish tree jar jars pack kid boy boys girl won she her his was has had not any all one two six ten the and "
    "for but who why how".split()
)


def _grouped(items: list[Node], marks: list[str]) -> Node:
    """``p=5, q=2; p=7, q=2``: a list of lists."""
    groups: list[list[Node]] = [[items[0]]]
    for mark, item in zip(marks, items[1:], strict=True):
        if mark == ";":
            groups.append([item])
        else:
            groups[-1].append(item)
    return Apply(",", tuple(Apply("()", tuple(group)) if len(group) > 1 else group[0] for group in groups))


def _chain(parts: list[Node], signs: list[str]) -> Node:
    """One relation, or a chain of them; an approximation keeps both sides apart under ``~``."""
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
    if len(signs) == 1 or all(sign == "=" for sign in signs):
        return Apply(signs[0], tuple(parts))
    return Apply("chain", tuple(Apply(sign, (parts[i], parts[i + 1])) for i, sign in enumerate(signs)))
