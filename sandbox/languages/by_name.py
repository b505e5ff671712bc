"""The modules of all languages by name.

Only the supervisor imports this module, because importing all languages loads most code of the box.
"""

from __future__ import annotations

from bestofn.sandbox.languages import bash, cpp, engine, go, java, javascript, python, rust, sql, typescript

BY_NAME = {
    "python": python,
    "javascript": javascript,
    "bash": bash,
    "sql": sql,
    "engine": engine,
    "typescript": typescript,
    "cpp": cpp,
    "go": go,
    "rust": rust,
    "java": java,
}
