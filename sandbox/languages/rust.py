"""Rust: rustc compiles the program, together with its tests if there are any."""

from __future__ import annotations

import re

from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.languages.compiled import VARIANTS, Toolchain, UnusableTests, compiled_language

_MAIN = re.compile(r"\bfn\s+main\s*\(\s*\)")
_TEST = re.compile(
    r"(?P<marks>(?:#\[[^\]]*\]\s*)*#\[test\]\s*(?:#\[[^\]]*\]\s*)*)(?:pub\s+)?fn\s+(?P<name>\w+)\s*\(\s*\)"
)
_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+(?P<name>\w+)")
_EXIT = re.compile(r"(?:\b(?:::)?std::)?\bprocess::exit\s*\(")
_USE = re.compile(
    r"^[ \t]*(?:pub\s+)?(?:use\s+(?:::)?(?P<crate>\w+)(?P<path>[^;]*)|extern\s+crate\s+(?P<extern>\w+)[^;]*);",
    re.MULTILINE,
)
_OWN_CRATES = frozenset({"std", "core", "alloc", "proc_macro", "crate", "self", "super"})
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_REPORT = r"""
static mut BESTOFN_VARIANT: usize = @VARIANTS@;
static mut BESTOFN_ASKED: [u8; @VARIANTS@] = [b'0'; @VARIANTS@];
pub fn bestofn_is(number: usize) -> bool {
    unsafe {
        BESTOFN_ASKED[number] = b'1';
        BESTOFN_VARIANT == number
    }
}
pub struct BestofnEnded;
pub fn bestofn_exit(code: i32) -> ! {
    if code != 0 { ::std::process::exit(code) }
    ::std::panic::resume_unwind(Box::new(BestofnEnded))
}
fn bestofn_run(test: impl FnOnce()) {
    if let Err(reason) = ::std::panic::catch_unwind(::std::panic::AssertUnwindSafe(test)) {
        if !reason.is::<BestofnEnded>() { ::std::panic::resume_unwind(reason) }
    }
}
trait BestofnTest { fn demand(self); }
impl BestofnTest for () { fn demand(self) {} }
impl BestofnTest for ::std::process::ExitCode {
    fn demand(self) { assert_eq!(format!("{self:?}"), format!("{:?}", ::std::process::ExitCode::SUCCESS)) }
}
impl<T, E: ::std::fmt::Debug> BestofnTest for Result<T, E> { fn demand(self) { self.unwrap(); } }
fn main() {
    use ::std::io::{Read, Write};
    use ::std::os::unix::io::FromRawFd;
    let mut given = unsafe { ::std::fs::File::from_raw_fd(4) };
    let (mut variant, mut key) = ([0u8; 8], [0u8; 64]);
    given.read_exact(&mut variant).unwrap();
    unsafe { BESTOFN_VARIANT = variant.iter().fold(0, |sum, digit| sum * 10 + (digit - b'0') as usize) };
    @RUNS@
    let size = given.read(&mut key).unwrap();
    let mut result = unsafe { ::std::fs::File::from_raw_fd(3) };
    for _ in 0..@COUNT@ {
        let asked = unsafe { BESTOFN_ASKED };
        let (begin, middle) = (b"{\"passed\":true,\"error\":\"\",\"key\":\"", b"\",\"seen\":{\"asked\":\"");
        for part in [&begin[..], &key[..size], &middle[..], &asked[..], &b"\"}}\n"[..]] {
            result.write_all(part).unwrap();
        }
    }
}
"""


def sources(job: Job) -> dict[str, str]:
    """Return the program with a main function that runs its tests. Each test is a file that the program includes."""
    if job["calls"]:
        raise UnusableTests("tests of the kind function are not supported for Rust; use the kind check or stdin")
    program = without_unused_crates(job["source"])
    if not job["cases"]:
        return {"main.rs": program}
    files, runs, parts = {}, [], [_MAIN.sub("fn program_main()", program)]
    for number, case in enumerate(job["cases"]):
        files[f"tests_{number}.rs"], made = _as_functions(_EXIT.sub("crate::bestofn_exit(", case), number)
        parts.append(f'include!("tests_{number}.rs");')
        runs += made
    calls = [f"bestofn_run(|| {{ {run} }});" for run in runs]
    report = _REPORT.replace("@RUNS@", "\n    ".join(calls)).replace("@COUNT@", str(len(files)))
    return {"main.rs": "\n".join(parts) + report.replace("@VARIANTS@", str(VARIANTS)), **files}


def _as_functions(case: str, number: int) -> tuple[str, list[str]]:
    """Return the source of a test as functions, and the statements that call these functions."""
    tests = list(_TEST.finditer(case))
    if not tests:
        made = _MAIN.sub(f"fn tests_{number}()", case) if _MAIN.search(case) else f"fn tests_{number}() {{\n{case}\n}}"
        return made, [f"BestofnTest::demand(tests_{number}());"]
    modules = list(_MODULE.finditer(case))
    made = _TEST.sub(lambda found: f"pub fn {found['name']}()", case)
    calls = []
    for test in tests:
        module = next((f"{one['name']}::" for one in reversed(modules) if one.start() < test.start()), "")
        calls.append(_call(module + test["name"], test["marks"]))
    if _MAIN.search(made):
        made = _MAIN.sub(f"fn tests_{number}()", made)
        calls.append(f"BestofnTest::demand(tests_{number}());")
    return _MODULE.sub(lambda found: f"mod {found['name']}", made), calls


def _call(name: str, marks: str) -> str:
    """Return the statement that calls a test function and checks its result.

    ``marks`` are the function's attributes.
    """
    if "#[ignore" in marks:
        return ""
    if "#[should_panic" in marks:
        return f"assert!(std::panic::catch_unwind(|| {{ {name}(); }}).is_err());"
    return f"BestofnTest::demand({name}());"


def without_unused_crates(source: str) -> str:
    """Return the program without imports of crates that the sandbox does not have and the program does not use.

    The prompts of HumanEvalPack begin with such imports. rustc rejects them even if nothing uses them.
    """
    return _USE.sub(lambda found: "" if _is_unused(found, source) else found[0], source)


def missing_crates(source: str) -> set[str]:
    """Return the crates that a program imports and uses, and that the sandbox does not have."""
    found = {one["crate"] or one["extern"] for one in _USE.finditer(without_unused_crates(source))}
    return {name for name in found if _is_missing(name, source)}


def _is_missing(crate: str, source: str) -> bool:
    own = rf"\b(?:mod|enum|struct|trait|type|union)\s+{crate}\b"
    return crate not in _OWN_CRATES and not re.search(own, source)


def _is_unused(found: re.Match[str], source: str) -> bool:
    """Return True if an import names a missing crate and the code uses none of the imported names."""
    crate = found["crate"] or found["extern"]
    if not _is_missing(crate, source) or "*" in (found["path"] or ""):
        return False
    names = {crate, *re.findall(r"\w+", found["path"] or "")}
    rest = _NO_CODE.sub(" ", _USE.sub("", source))
    return not any(re.search(rf"\b{name}\b", rest) for name in names)


def _commands(names: list[str]) -> list[list[str]]:
    # Checks of overflow and bounds are on, as in `cargo test`.
    options = ["-C", "opt-level=1", "-C", "debug-assertions=on", "-C", "strip=symbols", "-C", "codegen-units=1"]
    return [["rustc", "--edition", "2021", "-A", "warnings", *options, "-o", "program", "main.rs"]]


TOOLCHAIN = Toolchain("rustc", "program", sources, _commands)
LANGUAGE = compiled_language(TOOLCHAIN, limits_address_space=False)  # rustc reserves more than it uses
