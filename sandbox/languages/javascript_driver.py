"""JavaScript source of the driver's process, which runs the test cases and decides per case if the program passes.

``languages.javascript`` starts Node with this source.
"""

from __future__ import annotations

from bestofn.sandbox.languages.javascript_client import CLIENT
from bestofn.sandbox.languages.javascript_values import LINK, TESTING, VALUES

_JOB = r"""
const [count, programCount] = process.argv.slice(1).map(Number);
const job = parse(readExactly(5, count).toString());
fs.closeSync(5);
const go = Buffer.alloc(4);
go.writeUInt32LE(programCount);
writeAll(4, go);  // before any request: the program may read its part of the wire now
writeAll(7, Buffer.from('1'));
fs.closeSync(7);
const writeLine = (line) => writeAll(3, Buffer.from(stringify(line) + '\n'));
let judged = 0, failed = false;
function judge(error) {
  judged++;
  failed ||= Boolean(error);
  writeLine({passed: !error, error: String(error).slice(0, 300)});
}
function end(error) { while (judged < job.cases.length) judge(error); process.reallyExit(0); }
"""

_CASES = r"""function isEqual(a, b) {
  if (a === b || (a !== a && b !== b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  if (a instanceof Map || a instanceof Set || a instanceof Date) return load('util').isDeepStrictEqual(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => own.call(b, key) && isEqual(a[key], b[key]));
}
function demand(name) {
  try { return load(name); }
  catch (error) { if (name === 'lodash') return {isEqual}; throw error; }
}
const known = new Map([['assert', load('assert')]]);
let programUsed = false;  // whether the tests have used a name of the program
console.assert = assertOrThrow;
const MISSING_RUNNER = /^(test|it|describe|suite|expect|jest|vi|beforeEach|beforeAll) is not defined$/;
// A test may end in a timer, so it has passed only when no timer is left, or after this wait.
const PATIENCE_MS = 3000;
async function settled() {
  const until = Date.now() + PATIENCE_MS;
  do await new Promise((resolve) => setImmediate(resolve));
  while (process.getActiveResourcesInfo().includes('Timeout') && Date.now() < until);
}
const scope = new Proxy({}, {
  has: (_, name) => {
    if (typeof name === 'symbol') return false;
    if (name === 'require') return true;
    if (name in globalThis && name !== job.entry_point) return false;
    if (!known.has(name)) {
      const answer = ask({op: 'name', name});
      known.set(name, answer.missing ? known : take(answer.ok));
      programUsed ||= !answer.missing;
    }
    return known.get(name) !== known;
  },
  get: (_, name) => typeof name === 'symbol' ? undefined : name === 'require' ? demand : known.get(name),
});
for (const name of ['module', 'exports', '__filename', '__dirname', 'require']) delete globalThis[name];
process.on('uncaughtException', (error) => {
  end((error && error.stack || String(error)).split('\n').slice(0, 3).join(' '));
});
process.on('exit', () => end('the tests ended early'));
let finished = false;
process.on('beforeExit', () => { if (!finished) end('the tests never finished'); });
(async () => {
  const bodies = [];
  for (const source of job.cases) {
    try {
      const tail = checkTail(job.entry_point, source);
      const body = `return (async function () {${job.setup || ''}\n${source}${tail}\n})();`;
      bodies.push(new Function('__scope', '__source', `with (__scope) { ${body} }`));
    } catch (error) {
      writeLine({broken: 'the test source is not valid JavaScript: ' + error.message});
      process.reallyExit(0);
    }
  }
  for (let place = 0; place < bodies.length; place++) {
    let error = '';
    try { await bodies[place](scope, job.cases[place]); await settled(); }
    catch (caught) { error = (caught && caught.message) || String(caught) || 'failed'; }
    if (MISSING_RUNNER.test(error)) {
      writeLine({broken: 'the tests need a test runner that the sandbox does not have: ' + error});
      process.reallyExit(0);
    }
    judge(error);
  }
  if (!programUsed && !failed) writeLine({broken: 'the tests never use the program'});
  finished = true;
  process.reallyExit(0);
})();
"""

DRIVE = LINK + VALUES + TESTING + _JOB + CLIENT + _CASES
