"""TypeScript: the compiler removes the types. The sandbox then runs the resulting JavaScript (``builds``).

Types are not checked, as in Node.
"""

from __future__ import annotations

from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.languages.compiled import Toolchain, compiled_language

_TRANSLATE = r"""
const fs = require('fs');
process.env.NODE_PATH = '/usr/share/nodejs:/usr/lib/node_modules:/usr/local/lib/node_modules';
require('module').Module._initPaths();
const source = fs.readFileSync('main.ts', 'utf8');
let made;
try {
  const ts = require('typescript');
  if (!ts.transpileModule) throw Object.assign(new Error(), {code: 'MODULE_NOT_FOUND'});
  const compilerOptions = {target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, esModuleInterop: true};
  const done = ts.transpileModule(source, {compilerOptions, reportDiagnostics: true});
  for (const found of done.diagnostics) {
    const line = ts.getLineAndCharacterOfPosition(found.file, found.start).line + 1;
    console.error(`main.ts:${line}: error: ${ts.flattenDiagnosticMessageText(found.messageText, ' ')}`);
  }
  if (done.diagnostics.length) process.exit(1);
  made = done.outputText;
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') throw error;
  const strip = require('module').stripTypeScriptTypes;
  if (!strip) process.exit(MISSING);
  try { made = strip(source, {mode: 'transform'}); }
  catch (error) { console.error('main.ts: error: ' + error.message); process.exit(1); }
}
fs.writeFileSync('main.js', made);
"""


def _sources(job: Job) -> dict[str, str]:
    return {"main.ts": job["source"]}


def _commands(names: list[str]) -> list[list[str]]:
    return [["node", "-e", _TRANSLATE.replace("MISSING", "77")]]


TOOLCHAIN = Toolchain("node", "main.js", _sources, _commands)
LANGUAGE = compiled_language(TOOLCHAIN, limits_address_space=False)  # V8 reserves more than it uses
