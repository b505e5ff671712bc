"""The languages of the sandbox. Each language has a module that runs programs inside a box.

The module of a language defines ``LANGUAGE``, a ``language.Language``. To add a language, write its module, and add it
to ``by_name`` and to ``inside.wire.LANGUAGES``.
"""
