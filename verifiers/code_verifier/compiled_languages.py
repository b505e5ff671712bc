"""Features of programs in compiled languages: their tags, definitions and typical line beginnings in answers."""

from __future__ import annotations

NATIVE = frozenset({"cpp", "go", "rust", "java"})
"""Languages whose tests are compiled with the program and run in its process."""

TAGS = {
    "cpp": ("cpp", "c++", "cc", "cxx", "c", "hpp"),
    "go": ("go", "golang"),
    "rust": ("rust", "rs"),
    "java": ("java",),
}

DEFINITIONS = {
    "cpp": r"^(?:[\w:<>,*&\[\]]+[ \t]+)+[*&]*(\w+)[ \t]*\(|^(?:class|struct)[ \t]+(\w+)",
    "go": r"^func[ \t]+(?:\([^)\n]*\)[ \t]*)?(\w+)|^type[ \t]+(\w+)",
    "rust": r"^(?:pub(?:\(\w+\))?[ \t]+)?(?:(?:async|const|unsafe)[ \t]+)*fn[ \t]+(\w+)"
    r"|^(?:pub[ \t]+)?(?:struct|enum|trait)[ \t]+(\w+)",
    "java": r"^[ \t]*(?:(?:public|private|protected|static|final|abstract)[ \t]+)*(?:class|interface|enum|record)"
    r"[ \t]+(\w+)|^[ \t]+(?:(?:public|private|protected|static|final)[ \t]+)+[\w<>\[\],? ]+[ \t]+(\w+)[ \t]*\(",
}

SIGNS = {
    "cpp": r"^\s*(?:#include|#define|using namespace|template ?<|std::|cout|cin|(?:int|void|bool|string|auto|double"
    r"|long|vector<|float|char)\b[^;]*[;{(]|(?:class|struct) \w+ ?\{?$|return\b.*;|\}$)",
    "go": r"^\s*(?:package \w+$|import \(|import \"|func |type \w+ |var \w+ |\w+(?:, ?\w+)* := |fmt\.|return\b|\}$)",
    "rust": r"^\s*(?:use \w+::|(?:pub )?fn |let (?:mut )?\w+|impl\b|(?:pub )?(?:struct|enum|mod) |#\[|println!|\}$)",
    "java": r"^\s*(?:import java|package |(?:public|private|protected|static|final) |class \w+|System\.|@Override"
    r"|return\b.*;|\}$)",
}
