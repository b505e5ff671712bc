"""JavaScript source of the program's process.

This process loads the program. Then it either makes the calls of the job or answers the driver's requests.
``languages.javascript`` starts Node with this source.
"""

from __future__ import annotations

from bestofn.sandbox.languages.javascript_clock import CLOCK
from bestofn.sandbox.languages.javascript_matchers import MATCHERS
from bestofn.sandbox.languages.javascript_peer import PEER
from bestofn.sandbox.languages.javascript_proxies import PROXIES
from bestofn.sandbox.languages.javascript_runner import RUNNER
from bestofn.sandbox.languages.javascript_shared import SHARED
from bestofn.sandbox.languages.javascript_values import LINK, TESTING, VALUES

# Inside a function: the program cannot refer to these names.
PROGRAM = (
    "(() => {"
    + LINK
    + VALUES
    + TESTING
    + CLOCK
    + MATCHERS
    + RUNNER
    + SHARED
    + PROXIES
    + PEER
    + r"""
// Otherwise `process.exit` drops output that the pipe could not take yet, which depends on the load of the machine.
for (const {_handle} of [process.stdout, process.stderr]) if (_handle && _handle.setBlocking) _handle.setBlocking(true);
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
const identifier = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
let lookup = () => undefined;
// Such a program may read its own file, or start a worker with it.
const needsFile = /__filename|import\.meta|argv\[1\]/.test(job.source);
if (needsFile) fs.writeFileSync(file, job.source);
function begin(tail) {
  try { main._compile(job.source + tail, file, 'commonjs'); }  // stated, because newer versions of Node would guess it
  catch (error) {
    const isModule = /import statement|'export'|import.meta|await is only/;
    if (!(error instanceof SyntaxError) || !isModule.test(error.message)) throw error;
    fs.writeFileSync('main.mjs', job.source);
    return import('/tmp/main.mjs').then((made) => {
      main.exports = made;
      if (!needsFile) fs.unlinkSync('main.mjs');
    });
  }
}
function find(name) {
  if (name === 'module.exports') return typeof main.exports === 'function' ? main.exports : undefined;
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
  return {d: Object.keys(item).map((key) => [key, encode(item[key], ofClass)])};
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

const OPERATIONS = {
  get: (of, {name}, _, self) => self === undefined ? of[name] : Reflect.get(of, name, self),
  set: (of, {name}, [value]) => Reflect.set(of, name, value),
  delete: (of, {name}) => Reflect.deleteProperty(of, name),
  has: (of, {name}) => name in of,
  keys: (of) => Reflect.ownKeys(of).filter((key) => typeof key === 'string'),
  own: isEnumerable,
  method: (of, {name}, args) => of[name](...args),
  iterate: (of, {name}) => of[Symbol[name]](),
  primitive: (of, _, [hint]) => primitive(of, hint),
  call: (of, _, args, self) => of.apply(self, args),
};
// Answers the driver's requests.
class Exported extends Peer {
  constructor() {
    super(4, 3, 1);
    this.before = new Map();  // what the tests have replaced, by path
    this.time = null;
    this.RealDate = Date;
    this.FakeDate = dateAt(() => this.time);
  }
  gone() { process.exit(0); }
  isLive(value) {
    return hasBehaviour(value) || Object.values(value).some((item) => typeof item === 'function');
  }
  respond(message) {
    const answer = (more = {}) => send(3, {...more, answer: message.id});
    if (message.op === 'name') {
      const value = find(message.name);
      return answer(value === undefined ? {} : {ok: this.put(value), hasQueue: IS_ASYNCHRONOUS.test(job.source)});
    }
    if (message.op === 'tick') return this.waiting ? answer() : queueTask(answer);
    if (message.op === 'idle') return this.rest(answer);
    return super.respond(message);
  }
  // Answers when this process has no work left.
  rest(answer) {
    this.socket.unref();
    process.once('beforeExit', () => { this.socket.ref(); answer(); });
  }
  perform(message, args) {
    const of = this.ownedBy(message.target);
    if (message.op === 'new') {
      return message.derived ? Reflect.construct(derivedClass(this, of, message.derived), args) : new of(...args);
    }
    const self = message.self === undefined ? undefined : this.take(message.self);
    return OPERATIONS[message.op](of, message, args, self);
  }
  changed(args) {
    const isContainer = (item) => item && typeof item === 'object' && (Array.isArray(item) || item instanceof Map
      || item instanceof Set || Object.getPrototypeOf(item) === Object.prototype);
    const isCopy = (item) => isContainer(item) && !this.numbers.has(item) && !this.shared.known(item);
    return args.map((item) => isCopy(item) ? this.put(item) : null);
  }
  // Replaces the globals and the time as the tests have done it.
  accept({globals = [], clock}) {
    for (const [path, replaced] of globals) this.replace(path, replaced);
    if (clock === undefined) return;
    this.time = clock;
    globalThis.Date = clock === null ? this.RealDate : this.FakeDate;
  }
  replace(path, replaced) {
    const [place, name] = path.split('.');
    const owner = {globalThis, stdout: process.stdout, stderr: process.stderr}[place] || globalThis[place];
    if (!this.before.has(path)) this.before.set(path, Object.getOwnPropertyDescriptor(owner, name));
    const before = this.before.get(path);
    if (replaced) assign(owner, name, this.take(replaced.is));
    else if (before) Object.defineProperty(owner, name, before);
    else delete owner[name];
  }
}
const IS_ASYNCHRONOUS = /\b(async|await|Promise|then|set(Timeout|Interval|Immediate)|queueMicrotask|nextTick|import)\b/;
async function serve() {
  await begin(LOOKUP);
  new Exported().listen();
}

// Runs the tests in this process, as benchmarks do. They have passed if no work and no error is left at the end.
async function sameProcess() {
  const runner = makeRunner();
  console.assert = assertOrThrow;
  await begin(LOOKUP);
  const solution = solutionOf(find, () => find('module.exports')), demand = requireFor(solution, runner);
  const given = {assert: load('assert'), ...runner.names, require: demand};
  delete given[job.entry_point];  // the program may define a function with such a name
  given.requireDefault = (name, local) => {
    const made = demand(name);
    return made === solution() ? find(job.entry_point || local || '') || made : made;
  };
  given.requireLater = importer(demand, given.requireDefault);
  const evaluate = main.__lookup || ((source) => (0, eval)(source));
  if (!main.__lookup) Object.assign(globalThis, main.exports);
  for (const source of job.cases) {
    const body = `${job.setup || ''}\n${withoutImports(source)}${checkTail(job.entry_point, source)}`;
    await evaluate(`(async function (${Object.keys(given)}) {${body}\n})`)(...Object.values(given));
    await runner.run();
    await new Promise((resolve) => process.once('beforeExit', () => queueTask(resolve)));
    writeAll(3, Buffer.from('{"passed":true,"error":""}\n'));
  }
  process.exit(0);
}
// Ends Node at once when the program has no work left, without the 2 ms in which Node frees its memory. If the program
// listens to its own end, Node ends as usual. Status 13 means that a module waits for a promise that is never settled.
const leave = process.reallyExit;
function run() {
  let isLoaded = true;
  process.on('beforeExit', () => {
    const isHeard = process.listenerCount('exit') || process.listenerCount('beforeExit') > 1;
    if (leave && !isHeard) leave.call(process, process.exitCode || (isLoaded ? 0 : 13));
  });
  const loading = begin('');
  if (!loading) return;
  isLoaded = false;
  loading.then(() => { isLoaded = true; });
}
const modes = {run, calls, serve, same_process: sameProcess};
modes[job.mode]();
})();
"""
)
