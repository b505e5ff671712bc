"""JavaScript source of the driver's process, which runs the test cases and decides per case whether the program passes.

``languages.javascript`` starts Node with this source.
"""

from __future__ import annotations

from bestofn.sandbox.languages.javascript_clock import CLOCK
from bestofn.sandbox.languages.javascript_lending import LENDING
from bestofn.sandbox.languages.javascript_matchers import MATCHERS
from bestofn.sandbox.languages.javascript_peer import PEER
from bestofn.sandbox.languages.javascript_proxies import PROXIES
from bestofn.sandbox.languages.javascript_runner import RUNNER
from bestofn.sandbox.languages.javascript_shared import SHARED
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
const writeLine = (line) => writeAll(3, Buffer.from(stringify({...line, key: job.key}) + '\n'));
let judged = 0, failed = false;
function judge(error) {
  judged++;
  failed ||= Boolean(error);
  writeLine({passed: !error, error: String(error).slice(0, 300)});
}
function end(error) { while (judged < job.cases.length) judge(error); process.reallyExit(0); }
function unusable(reason) { writeLine({broken: reason}); process.reallyExit(0); }
"""

_CASES = r"""const runner = makeRunner();
console.assert = assertOrThrow;
const program = new Lending(6, 4, 0);
program.sentGlobals = new Map();
program.clock = null;
program.readings = new Map();
const known = new Map(Object.entries({...runner.names, assert: load('assert')}));
known.delete(job.entry_point);  // the program may define a function with such a name
let programUsed = false;  // whether the tests have used a name of the program
// Work that is left, such as a timer, may still decide the test. It has this time. Work of the program may go on.
const PATIENCE_MS = 3000, {setTimeout: startTimer, clearTimeout: stopTimer} = globalThis;
let whenQuiet = null, asking = false, running = false;
// Called when this process has no work left: waits until the program has none either.
function atRest() {
  if (asking) return;
  const knowsTests = program.owned.length > 0 || program.promises.size > 0;
  if (!knowsTests || !programUsed) return quiet();
  const received = program.received;
  asking = true;
  program.socket.ref();
  program.askLater({op: 'idle'}, () => {
    asking = false;
    program.socket.unref();
    if (program.received === received + 1) quiet();
    else queueTask(() => {});
  });
}
function quiet() {
  if (whenQuiet) queueTask(whenQuiet);
  else if (running) end('the tests never finished');
}
async function settled() {
  const tooLate = `the tests still work ${PATIENCE_MS / 1000} s after their end`;
  const late = startTimer(() => asking ? whenQuiet() : unusable(tooLate), PATIENCE_MS);
  late.unref();
  await new Promise((resolve) => { whenQuiet = resolve; });
  whenQuiet = null;
  stopTimer(late);
}
const turnHere = runner.turn;
runner.turn = () => { if (programUsed) program.ask({op: 'tick'}); return turnHere(); };
// A program could define an assertion that the tests use and do not define.
function isOpenAssertion(name) {
  return name !== job.entry_point && /^assert([A-Z_]\w*)$/.test(name)
    && job.cases.some((source) => new RegExp(`\\b${name}\\s*\\(\\s*(await\\s+)?[\\w$.]+\\(`).test(source));
}
function lookup(name) {
  if (!known.has(name)) {
    if (isOpenAssertion(name)) throw new Unusable(`the tests use the function ${name}, but they do not define it`);
    const answer = program.ask({op: 'name', name});
    program.hasQueue ||= answer.hasQueue === true;
    const value = own.call(answer, 'ok') ? program.take(answer.ok) : undefined;
    program.refuseAllErrors(value, name);
    known.set(name, value === undefined ? known : value);
    programUsed ||= value !== undefined;
  }
  return known.get(name) === known ? undefined : known.get(name);
}
const exported = () => { const made = lookup('module.exports'); return typeof made === 'function' ? made : undefined; };
const solution = solutionOf(lookup, exported, (made, of) => program.keep(program.references.get(of), made));
const demand = requireFor(solution, runner, (name) => {
  const made = load(name);
  return HARMLESS.has(name.replace(/^node:/, '').replace(/\/strict$/, '')) ? made : refuse(made);
});
const demandDefault = (name, local) => {
  const found = demand(name);
  return found === solution() ? (job.entry_point || local) && lookup(job.entry_point || local) || found : found;
};
const given = new Map([['require', demand], ['requireDefault', demandDefault],
  ['requireLater', importer(demand, demandDefault)]]);
const scope = new Proxy({}, {
  has: (_, name) => {
    if (typeof name === 'symbol') return false;
    if (given.has(name)) return true;
    if (name in globalThis && name !== job.entry_point) return false;
    lookup(name);
    return known.get(name) !== known;
  },
  get: (_, name) => typeof name === 'symbol' ? undefined : given.get(name) ?? lookup(name),
});
for (const name of ['module', 'exports', '__filename', '__dirname', 'require']) delete globalThis[name];
process.on('uncaughtException', (error) => {
  if (error instanceof Unusable) unusable(error.message);
  end((error && error.stack || String(error)).split('\n').slice(0, 3).join(' '));
});
process.on('exit', () => end('the tests ended early'));
process.on('beforeExit', atRest);
(async () => {
  const bodies = [];
  for (const source of job.cases) {
    try {
      const tail = checkTail(job.entry_point, source);
      const body = `return (async function () {${job.setup || ''}\n${withoutImports(source)}${tail}\n})();`;
      bodies.push(new Function('__scope', `with (__scope) { ${body} }`));
    } catch (error) { unusable('the test source is not valid JavaScript: ' + error.message); }
  }
  program.listen();
  program.socket.unref();
  for (const body of bodies) {
    let error = '';
    running = true;
    try { await body(scope); await runner.run(); }
    catch (caught) {
      if (caught instanceof Unusable) unusable(caught.message);
      error = (caught && caught.message) || String(caught) || 'failed';
    }
    running = false;
    if (!error) await settled();
    judge(error);
  }
  if (!programUsed && !failed) writeLine({broken: 'the tests never use the program'});
  process.reallyExit(0);
})();
"""

# Inside a function: code that the tests create at run time cannot read the key of the verdicts.
DRIVE = (
    "(() => {"
    + "".join((LINK, VALUES, TESTING, CLOCK, MATCHERS, RUNNER, SHARED, PROXIES, PEER, _JOB, LENDING, _CASES))
    + "})();"
)
