"""The JavaScript that Node is started with: for the program, and for the driver of its tests."""

from __future__ import annotations

_SHARED = r"""
'use strict';
const load = require;  // a global under `node -e`, and not to be seen by the program
const fs = load('fs');
const {parse, stringify} = JSON;
const own = Object.prototype.hasOwnProperty;
function readExactly(fd, count) {
  const buffer = Buffer.alloc(count);
  for (let at = 0; at < count;) {
    let got;
    try { got = fs.readSync(fd, buffer, at, count - at, null); }
    catch (error) { if (error.code === 'EAGAIN') continue; throw error; }
    if (!got) return null;
    at += got;
  }
  return buffer;
}
const writeSync = fs.writeSync;
function writeAll(fd, data) {
  for (let at = 0; at < data.length;) {
    try { at += writeSync(fd, data, at); }
    catch (error) { if (error.code !== 'EAGAIN') throw error; }
  }
}
function send(fd, message) {
  const body = Buffer.from(stringify(message)), head = Buffer.alloc(4);
  head.writeUInt32LE(body.length);
  writeAll(fd, Buffer.concat([head, body]));
}
function receive(fd) {
  const head = readExactly(fd, 4);
  const body = head && readExactly(fd, head.readUInt32LE(0));
  return body && parse(body.toString());
}
// Values as plain typed data; the same forms as bestofn.sandbox.inside.plain.
// An own property whatever the name: `__proto__` too.
function assign(made, key, value) {
  Object.defineProperty(made, key, {value, enumerable: true, writable: true, configurable: true});
}
function encode(value, other, depth = 200) {
  if (depth <= 0) throw new TypeError('nested too deep');
  const inner = (item) => encode(item, other, depth - 1);
  switch (typeof value) {
    case 'boolean': case 'string': return value;
    case 'undefined': return {u: 0};
    case 'bigint': return {i: value.toString(16)};
    case 'number': return Object.is(value, -0) ? {f: '-0'} : Number.isFinite(value) ? value
      : {f: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'};
    case 'object': break;
    default: return other(value);
  }
  if (value === null) return null;
  if (Array.isArray(value)) {
    const list = [];
    for (let i = 0; i < value.length; i++) list.push(inner(value[i]));
    return list;
  }
  if (value instanceof Map) return {m: Array.from(value, ([key, item]) => [inner(key), inner(item)])};
  if (value instanceof Set) return {s: Array.from(value, inner)};
  if (value instanceof Date) return {jsdate: encode(value.getTime(), other)};
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return encode(value.valueOf(), other);
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value, inner);
  const kind = Object.getPrototypeOf(value);
  if (kind === Object.prototype || kind === null) return {d: Object.keys(value).map((key) => [key, inner(value[key])])};
  return other(value);
}
function decode(form, other) {
  if (form === null || typeof form !== 'object') return form;
  const inner = (item) => decode(item, other);
  if (Array.isArray(form)) return form.map(inner);
  const [tag] = Object.keys(form), body = form[tag];
  switch (tag) {
    case 'u': return undefined;
    case 'i': return body[0] === '-' ? -BigInt('0x' + body.slice(1)) : BigInt('0x' + body);
    case 'f': return {nan: NaN, inf: Infinity, '-inf': -Infinity, '-0': -0}[body];
    case 't': return body.map(inner);
    case 'd': {
      const made = {};
      for (const [key, item] of body) assign(made, decode(key), inner(item));
      return made;
    }
    case 'm': return new Map(body.map(([key, item]) => [inner(key), inner(item)]));
    case 's': return new Set(body.map(inner));
    case 'jsdate': return new Date(inner(body));
    default: return other(tag, body);
  }
}
"""

PROGRAM = (
    _SHARED
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
  try { main._compile(job.source + tail, file, 'commonjs'); }  // newer Nodes would guess
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
// An instance of the program's own class counts as its fields.
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
  const put = (value) => encode(value, keep);
  const target = (reference) => typeof reference === 'number' ? objects[reference] : find(reference);
  const take = (form) => decode(form, (tag, body) => {
    if (tag === 'mine') return target(body);
    if (tag === 'yours') return (...args) => {
      send(3, {callback: body, args: args.map(put)});
      for (;;) {
        const answer = receive(4);
        if (!answer) process.exit(0);
        if ('ok' in answer) return take(answer.ok);
        if ('raise' in answer) throw new Error(answer.raise.message);
        send(3, answerSync(answer));
      }
    };
    throw new TypeError('unknown form ' + tag);
  });
  const wrong = (error) => error instanceof Error
    ? {name: String(error.name), message: String(error.message)} : {thrown: encode(error, String)};
  const isContainer = (item) => item && typeof item === 'object' && (Array.isArray(item) || item instanceof Map
    || item instanceof Set || Object.getPrototypeOf(item) === Object.prototype);
  const changed = (args) => args.map((item) => isContainer(item) ? put(item) : null);
  function perform(request, args) {
    if (request.op === 'get') return target(request.target)[request.name];
    if (request.op === 'set') return void (target(request.target)[request.name] = args[0]);
    if (request.op === 'new') return new (target(request.target))(...args);
    if (request.op === 'method') { const of = target(request.target); return of[request.name](...args); }
    return target(request.target)(...args);
  }
  function answerSync(request) {
    try {
      const args = (request.args || []).map(take);
      return {ok: put(perform(request, args)), args: changed(args)};
    } catch (error) { return {raise: wrong(error)}; }
  }
  await begin(LOOKUP);
  for (;;) {
    const request = receive(4);
    if (!request) process.exit(0);
    if (request.op === 'name') {
      const value = find(request.name);
      const form = typeof value === 'function' ? {function: request.name} : put(value);
      send(3, value === undefined ? {missing: 1} : {ok: form});
      continue;
    }
    let promised = false;
    try {
      const args = (request.args || []).map(take);
      let value = perform(request, args);
      if (value && typeof value.then === 'function') { promised = true; value = await value; }
      send(3, {ok: put(value), args: changed(args), promised});
    } catch (error) { send(3, {raise: wrong(error), promised}); }
  }
}
const modes = {run: () => begin(''), calls, serve};
modes[job.mode]();
"""
)

DRIVE = (
    _SHARED
    + r"""
const [count, programCount] = process.argv.slice(1).map(Number);
const job = parse(readExactly(5, count).toString());
fs.closeSync(5);
const go = Buffer.alloc(4);
go.writeUInt32LE(programCount);
writeAll(4, go);  // before any request: it tells the program that the wire is its own now
writeAll(7, Buffer.from('1'));
fs.closeSync(7);
const say = (line) => writeAll(3, Buffer.from(stringify(line) + '\n'));
let said = 0, failed = false;
function judge(error) { said++; failed ||= Boolean(error); say({passed: !error, error: String(error).slice(0, 300)}); }
function end(error) { while (said < job.cases.length) judge(error); process.reallyExit(0); }
const functions = [];
const realm = {Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError};
function ask(request) {
  let answer;
  try {
    send(4, request);
    for (;;) {
      answer = receive(6);
      if (!answer || !('callback' in answer)) break;
      let reply;
      try { reply = {ok: put(functions[answer.callback](...answer.args.map(take)))}; }
      catch (error) { reply = {raise: {message: String(error && error.message)}}; }
      send(4, reply);
    }
  } catch { answer = null; }
  if (!answer) end('the program gave no answer');
  return answer;
}
const references = new WeakMap();
function put(value) {
  return encode(value, (item) => {
    if (references.has(item)) return {mine: references.get(item)};
    if (typeof item === 'function') return (functions.push(item), {yours: functions.length - 1});
    throw new TypeError('this value cannot be handed to the program');
  });
}
function request(op, target, args, name = '') {
  const answer = ask({op, target, name, args: args.map(put)});
  (answer.args || []).forEach((form, place) => { if (form !== null && args[place]) restore(args[place], take(form)); });
  if (answer.raise) {
    const form = answer.raise;
    let error;
    if ('thrown' in form) error = decode(form.thrown, String);
    else {
      error = new (own.call(realm, form.name) ? realm[form.name] : Error)(form.message);
      error.name = form.name;
    }
    if (answer.promised) return Promise.reject(error);
    throw error;
  }
  const value = take(answer.ok);
  return answer.promised ? Promise.resolve(value) : value;
}
function restore(old, made) {
  if (Array.isArray(old) && Array.isArray(made)) { old.length = 0; old.push(...made); }
  else if (old instanceof Map && made instanceof Map) { old.clear(); made.forEach((item, key) => old.set(key, item)); }
  else if (old instanceof Set && made instanceof Set) { old.clear(); made.forEach((item) => old.add(item)); }
  else if (!(old instanceof Map) && !(old instanceof Set) && typeof made === 'object') {
    for (const key of Object.keys(old)) if (!own.call(made, key)) delete old[key];
    for (const key of Object.keys(made)) assign(old, key, made[key]);
  }
}
// Names that a comparison or a conversion would ask for are never answered by the program.
const silent = new Set([
  'valueOf', 'toString', 'toJSON', 'constructor', 'then', 'inspect', 'length', 'name', 'prototype', '__proto__',
]);
function remote(reference, callable) {
  const target = callable ? function () {} : {};
  target['<object of the program>'] = reference;
  const proxy = new Proxy(target, {
    apply: (_, self, args) => request('call', reference, args),
    construct: (_, args) => {
      const made = request('new', reference, args);
      return made !== null && typeof made === 'object' ? made : {};
    },
    get: (of, name) => {
      if (typeof name === 'symbol' || silent.has(name)) return name === 'prototype' ? of.prototype : undefined;
      const value = request('get', reference, [], name);
      return typeof value === 'function' ? (...args) => request('method', reference, args, name) : value;
    },
    set: (_, name, value) => { request('set', reference, [value], name); return true; },
  });
  references.set(proxy, reference);
  return proxy;
}
function take(form) {
  return decode(form, (tag, body) => {
    if (tag === 'handle') return remote(Number(body.id), Boolean(body.callable));
    if (tag === 'function') return remote(String(body), true);
    throw new TypeError('unknown form ' + tag);
  });
}
function isEqual(a, b) {
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
let asked = false;  // whether the tests have wanted anything of the program
console.assert = (holds, ...told) => { if (!holds) throw new Error(told.map(String).join(' ') || 'Assertion failed'); };
const RUNNER = /^(test|it|describe|suite|expect|jest|vi|beforeEach|beforeAll) is not defined$/;
// A test may end in a timer: it has not passed before that.
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
      asked ||= !answer.missing;
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
      const entry = /^[A-Za-z_$][\w$]*$/.test(job.entry_point) ? job.entry_point : '';
      const checked = '/\\bfunction\\s+check\\b|\\bcheck\\s*=[^=]/.test(__source) && !/^\\s*check\\(/m.test(__source)';
      const tail = entry ? `\nif (${checked}) await check(${entry});` : '';
      const body = `return (async function () {${job.setup || ''}\n${source}${tail}\n})();`;
      bodies.push(new Function('__scope', '__source', `with (__scope) { ${body} }`));
    } catch (error) {
      say({broken: 'the test source is not JavaScript: ' + error.message});
      process.reallyExit(0);
    }
  }
  for (let place = 0; place < bodies.length; place++) {
    let error = '';
    try { await bodies[place](scope, job.cases[place]); await settled(); }
    catch (caught) { error = (caught && caught.message) || String(caught) || 'failed'; }
    if (RUNNER.test(error)) {
      say({broken: 'the tests need a test runner: ' + error});
      process.reallyExit(0);
    }
    judge(error);
  }
  if (!asked && !failed) say({broken: 'the tests ask nothing of the program'});
  finished = true;
  process.reallyExit(0);
})();
"""
)
