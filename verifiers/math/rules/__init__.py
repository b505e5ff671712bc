"""The rules that compare two trees, in one module per kind of answer. ``equivalence`` applies them."""
