"""The rules of the comparison, one module per kind of answer. ``equivalence`` applies them."""
