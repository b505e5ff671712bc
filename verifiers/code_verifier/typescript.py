"""Removes the types of TypeScript programs and tests. They then run as JavaScript.

The compiler runs in the sandbox, because programs are hostile. Types are not checked, as in Node.
"""

from __future__ import annotations

import json
from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Limits, Program
from bestofn.sandbox.builds import LIMITS, no_compiler
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, why_ended

_TRANSLATE = r"""
const fs = require('fs');
process.env.NODE_PATH = '/usr/share/nodejs:/usr/lib/node_modules:/usr/local/lib/node_modules';
require('module').Module._initPaths();
let typescript, strip;
try { typescript = require('typescript'); } catch (error) { if (error.code !== 'MODULE_NOT_FOUND') throw error; }
if (!typescript?.transpileModule) strip = require('module').stripTypeScriptTypes;
function translated(source) {
  if (strip) {
    try { return { made: strip(source, { mode: 'transform' }) }; } catch (error) { return { error: error.message }; }
  }
  const { ScriptTarget, ModuleKind, flattenDiagnosticMessageText, getLineAndCharacterOfPosition } = typescript;
  const compilerOptions = { target: ScriptTarget.ES2022, module: ModuleKind.CommonJS, esModuleInterop: true };
  const done = typescript.transpileModule(source, { compilerOptions, reportDiagnostics: true });
  const [found] = done.diagnostics;
  if (!found) return { made: done.outputText };
  const line = getLineAndCharacterOfPosition(found.file, found.start).line + 1;
  return { error: `line ${line}: ${flattenDiagnosticMessageText(found.messageText, ' ')}` };
}
const sources = JSON.parse(fs.readFileSync('sources.json', 'utf8'));
const canTranslate = typescript?.transpileModule || strip;
fs.writeSync(1, JSON.stringify(canTranslate ? sources.map(translated) : null));
"""


async def as_javascript(sandbox: Sandbox, program: Program, tests: CodeTests) -> tuple[Program, CodeTests] | Tally:
    """Return a TypeScript program and its tests as JavaScript; the tally of the program if that is not possible."""
    total = len(tests.cases)
    sources = [program.source, *(str(case.get("source") or "") for case in tests.cases)]
    limits = Limits(LIMITS.wall_s, LIMITS.cpu_s, LIMITS.memory_mb, stdout_bytes=8 << 20)
    compiler = Program("javascript", _TRANSLATE, files={"sources.json": json.dumps(sources)}, limits=limits)
    execution = await sandbox.run(compiler)
    if sandbox_problem(execution):
        return Tally(0, total, "infra", problem=sandbox_problem(execution))
    if execution.status != "ok":
        return Tally(0, total, "error", {"case": 0, "why": f"the TypeScript compiler failed: {why_ended(execution)}"})
    found = json.loads(execution.stdout)
    if found is None:
        return Tally(0, total, "infra", problem=no_compiler("typescript"))
    of_program, *of_tests = found
    if "error" in of_program:
        return Tally(0, total, "error", {"case": 0, "why": f"the program does not compile: {of_program['error']}"})
    broken = next((one["error"] for one in of_tests if "error" in one), "")
    if broken:
        return Tally(0, total, "broken tests", problem=f"the tests are not valid TypeScript: {broken}")
    cases = tuple(
        {**case, "source": one["made"]} if case.get("source") else case
        for case, one in zip(tests.cases, of_tests, strict=True)
    )
    return (
        replace(program, language="javascript", source=of_program["made"]),
        replace(tests, language="javascript", cases=cases),
    )
