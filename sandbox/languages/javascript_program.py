"""JavaScript source of the program's process.

This process loads the program. Then it either makes the calls of the job or answers the driver's requests.
``languages.javascript`` starts Node with this source.
"""

from __future__ import annotations

from bestofn.sandbox.languages.javascript_values import LINK, TESTING, VALUES

PROGRAM = (
    LINK
    + VALUES
    + TESTING
    + r"""
const head = readExactly(4, 4);
if (!head) process.exit(0);
const job = parse(readExactly(5, head.readUInt32LE(0)).toString());
fs.closeSync(5);
const input = Buffer.from(job.stdin);
for (let at = 0; at < input.length;) at += fs.writeSync(0, input, at, input.length - at, at);
for (const [name, text] of Object.entries(job.files)) {
  if (name.includes('/')) fs.mkdirSync(load('path').dirname(name), {recursive: true});
  fs.writeFileSync(name, text);
}
const Module = load('module');
const file = '/tmp/main.js', main = new Module(file, null);
main.filename = file;
main.paths = Module._nodeModulePaths('/tmp');
process.mainModule = main;
process.argv = [process.argv[0], file];
for (const name of ['require', 'module', 'exports', '__filename', '__dirname']) delete globalThis[name];
const identifier = /^[A-Za-z_$][\w$]*$/;
let lookup = () => undefined;
function begin(tail) {
  try { main._compile(job.source + tail, file, 'commonjs'); }  // stated, because newer versions of Node would guess it
  catch (error) {
    const isModule = /import statement|'export'|import.meta|await is only/;
    if (!(error instanceof SyntaxError) || !isModule.test(error.message)) throw error;
    fs.writeFileSync('main.mjs', job.source);
    return import('/tmp/main.mjs').then((made) => { main.exports = made; fs.unlinkSync('main.mjs'); });
  }
}
function find(name) {
  if (!identifier.test(name)) return undefined;
  let value;
  try { value = main.__lookup && main.__lookup(name); } catch { }
  if (value === undefined && main.exports) value = main.exports[name];
  if (value === undefined && typeof main.exports === 'function' && main.exports.name === name) value = main.exports;
  if (value === undefined) {
    let solution;
    try { solution = main.__lookup && main.__lookup('Solution'); } catch { }
    if (typeof solution === 'function' && name in (solution.prototype || {})) {
      const made = new solution();
      value = made[name].bind(made);
    }
  }
  return value;
}
const LOOKUP = '\n;module.__lookup = (__name) => eval(__name);';

function notPlain() { throw new TypeError('not plain data'); }
// An instance of the program's own class is returned as its fields.
function ofClass(item) {
  if (typeof item !== 'object') notPlain();
  return {d: Object.keys(item).map((key) => [key, encode(item[key], notPlain)])};
}
async function calls() {
  await begin(LOOKUP);
  for (const call of job.calls) {
    let line;
    try {
      const target = find(call.name);
      if (target === undefined) throw new ReferenceError(call.name + ' is not defined');
      const options = call.kwargs.d && call.kwargs.d.length ? [decode(call.kwargs)] : [];
      let value = target(...decode(call.args), ...options);
      if (value && typeof value.then === 'function') value = await value;
      line = {value: encode(value, ofClass)};
    } catch (error) {
      const text = String((error && error.message) || error).slice(0, 500);
      line = {error: [String((error && error.name) || typeof error), text]};
    }
    writeAll(3, Buffer.from(stringify(line) + '\n'));
  }
  process.exit(0);
}

async function serve() {
  const objects = [];
  const keep = (value) => {
    objects.push(value);
    return {handle: {id: objects.length - 1, callable: typeof value === 'function'}};
  };
  const encodeValue = (value) => encode(value, keep);
  const target = (reference) => typeof reference === 'number' ? objects[reference] : find(reference);
  const decodeValue = (form) => decode(form, (tag, body) => {
    if (tag === 'mine') return target(body);
    if (tag === 'yours') return (...args) => {
      send(3, {callback: body, args: args.map(encodeValue)});
      for (;;) {
        const answer = receive(4);
        if (!answer) process.exit(0);
        if ('ok' in answer) return decodeValue(answer.ok);
        if ('raise' in answer) throw new Error(answer.raise.message);
        send(3, answerSync(answer));
      }
    };
    throw new TypeError('unknown form ' + tag);
  });
  const errorForm = (error) => error instanceof Error
    ? {name: String(error.name), message: String(error.message)} : {thrown: encode(error, String)};
  const isContainer = (item) => item && typeof item === 'object' && (Array.isArray(item) || item instanceof Map
    || item instanceof Set || Object.getPrototypeOf(item) === Object.prototype);
  const changed = (args) => args.map((item) => isContainer(item) ? encodeValue(item) : null);
  function perform(request, args) {
    if (request.op === 'get') return target(request.target)[request.name];
    if (request.op === 'set') return void (target(request.target)[request.name] = args[0]);
    if (request.op === 'new') return new (target(request.target))(...args);
    if (request.op === 'method') { const of = target(request.target); return of[request.name](...args); }
    return target(request.target)(...args);
  }
  function answerSync(request) {
    try {
      const args = (request.args || []).map(decodeValue);
      return {ok: encodeValue(perform(request, args)), args: changed(args)};
    } catch (error) { return {raise: errorForm(error)}; }
  }
  await begin(LOOKUP);
  for (;;) {
    const request = receive(4);
    if (!request) process.exit(0);
    if (request.op === 'name') {
      const value = find(request.name);
      const form = typeof value === 'function' ? {function: request.name} : encodeValue(value);
      send(3, value === undefined ? {missing: 1} : {ok: form});
      continue;
    }
    let promised = false;
    try {
      const args = (request.args || []).map(decodeValue);
      let value = perform(request, args);
      if (value && typeof value.then === 'function') { promised = true; value = await value; }
      send(3, {ok: encodeValue(value), args: changed(args), promised});
    } catch (error) { send(3, {raise: errorForm(error), promised}); }
  }
}
// Runs the tests in this process, as benchmarks do. They have passed if no work and no error is left at the end.
async function sameProcess() {
  globalThis.assert = load('assert');
  console.assert = assertOrThrow;
  await begin(LOOKUP);
  const solution = /^\.{0,2}\/?(solution|index|main)(\.js)?$/;
  const demand = (name) => solution.test(name) ? main.exports : load(name);
  globalThis.require ??= demand;
  const evaluate = main.__lookup || ((source) => (0, eval)(source));
  if (!main.__lookup) Object.assign(globalThis, main.exports);
  for (const source of job.cases) {
    const body = `${job.setup || ''}\n${source}${checkTail(job.entry_point, source)}`;
    await evaluate(`(async function (require) {${body}\n})`)(demand);
    await new Promise((resolve) => process.once('beforeExit', () => setImmediate(resolve)));
    writeAll(3, Buffer.from('{"passed":true,"error":""}\n'));
  }
  process.exit(0);
}
const modes = {run: () => begin(''), calls, serve, same_process: sameProcess};
modes[job.mode]();
"""
)
