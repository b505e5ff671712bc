"""All languages by name.

Only the supervisor imports this module, because importing all languages loads most code of the box.
"""

from __future__ import annotations

from bestofn.sandbox.languages import bash, cpp, engine, go, java, javascript, python, rust, sql

BY_NAME = {
    "python": python.LANGUAGE,
    "javascript": javascript.LANGUAGE,
    "bash": bash.LANGUAGE,
    "sql": sql.LANGUAGE,
    "engine": engine.LANGUAGE,
    "cpp": cpp.LANGUAGE,
    "go": go.LANGUAGE,
    "rust": rust.LANGUAGE,
    "java": java.LANGUAGE,
}
