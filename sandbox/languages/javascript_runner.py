"""JavaScript source of a small test runner: ``describe``, ``test``, ``expect`` and ``jest.fn`` as tests use them.

``javascript_driver`` and ``javascript_program`` include it. A feature of Jest that it does not have makes the tests
unusable (``Unusable``). It never makes a program fail.
"""

from __future__ import annotations

RUNNER = r"""class Unusable extends Error {}
// Returns an object that raises ``Unusable`` for each member that it does not have.
function strict(members, name) {
  return new Proxy(members, {get: (of, key) => {
    if (typeof key === 'symbol' || key in of || key === 'then') return of[key];
    throw new Unusable(`the sandbox's test runner has no ${name}.${key}`);
  }});
}
function makeRunner() {
  const root = {hooks: {}, parent: null}, tests = [];
  let suite = root;
  const add = (name, body) => { if (typeof body === 'function') tests.push({suite, body}); };
  const each = (define) => (table) => (name, body) => table.forEach((row) =>
    define(name, () => body(...(Array.isArray(row) ? row : [row]))));
  const test = Object.assign((name, body) => add(name, body), {only: add, skip() {}, todo() {}, each: each(add)});
  const group = (name, body) => {
    suite = {hooks: {}, parent: suite};
    try { body(); } finally { suite = suite.parent; }
  };
  const describe = Object.assign(group, {only: group, skip() {}, each: each(group)});
  const hook = (kind) => (body) => (suite.hooks[kind] ||= []).push(body);
  const hooks = (one, kind) => {
    const list = [];
    for (let at = one; at; at = at.parent) list.unshift(...(at.hooks[kind] || []));
    return list;
  };
  const perform = (body) => body.length === 0 ? body()
    : new Promise((done, fail) => body((error) => error ? fail(error) : done()));
  const once = new Set();
  async function run() {
    for (const one of tests.splice(0)) {
      for (const body of hooks(one.suite, 'beforeAll')) if (!once.has(body)) { once.add(body); await perform(body); }
      for (const body of hooks(one.suite, 'beforeEach')) await perform(body);
      await perform(one.body);
      for (const body of hooks(one.suite, 'afterEach')) await perform(body);
    }
  }
  const jest = strict(mocks(), 'jest');
  const names = {test, it: test, describe, suite: describe, expect, jest, vi: jest};
  for (const kind of ['beforeAll', 'beforeEach', 'afterAll', 'afterEach', 'before', 'after']) {
    names[kind] = hook({before: 'beforeAll', after: 'afterAll'}[kind] || kind);
  }
  return {names, run};
}
function mocks() {
  const spied = [];
  const fn = (body) => {
    let inner = body;
    const mock = {calls: [], results: []};
    const call = function (...args) {
      mock.calls.push(args);
      const queued = once.shift();
      const value = (queued || inner || (() => undefined)).apply(this, args);
      mock.results.push({type: 'return', value});
      return value;
    };
    const once = [];
    const set = (made) => { inner = made; return call; };
    return Object.assign(call, {
      mock, mockImplementation: set, mockReturnValue: (value) => set(() => value),
      mockResolvedValue: (value) => set(async () => value),
      mockRejectedValue: (value) => set(async () => { throw value; }),
      mockReturnValueOnce: (value) => { once.push(() => value); return call; },
      mockImplementationOnce: (made) => { once.push(made); return call; },
      mockClear() { mock.calls.length = mock.results.length = 0; return call; },
      mockReset() { inner = undefined; return call.mockClear(); }, mockRestore() {}, getMockName: () => 'jest.fn()',
    });
  };
  const spyOn = (owner, name) => {
    const before = owner[name], made = fn(before);
    made.mockRestore = () => { owner[name] = before; };
    spied.push(made);
    owner[name] = made;
    return made;
  };
  const restoreAllMocks = () => spied.splice(0).forEach((one) => one.mockRestore());
  const clearAllMocks = () => spied.forEach((one) => one.mockClear());
  return {fn, spyOn, restoreAllMocks, clearAllMocks, setTimeout() {}};
}
// Only the runner has this symbol, so no object of the program is a matcher such as ``expect.any``.
const MATCHES = Symbol('matches');
// Compares as ``toEqual`` does: properties that are undefined do not count. ``strict`` counts them and the classes.
function isEqual(a, b, strict = false) {
  if (Object.is(a, b)) return true;
  if (b && b[MATCHES]) return b[MATCHES](a);
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  if (a instanceof Error && b instanceof Error) return a.message === b.message;
  if (a instanceof Map || a instanceof Set || a instanceof Date || a instanceof RegExp) {
    return load('util').isDeepStrictEqual(a, b);
  }
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const keysOf = (item) => Object.keys(item).filter((key) => strict || item[key] !== undefined);
  const keys = keysOf(a);
  return keys.length === keysOf(b).length && (!Array.isArray(a) || a.length === b.length)
    && keys.every((key) => own.call(b, key) && isEqual(a[key], b[key], strict));
}
function contains(value, part) {
  if (typeof part !== 'object' || part === null || part[MATCHES]) return isEqual(value, part);
  return value !== null && typeof value === 'object' && Object.keys(part).every((key) => key in value
    && (Array.isArray(part[key]) ? isEqual(value[key], part[key]) : contains(value[key], part[key])));
}
function throws(body, wanted) {
  let error, thrown = false;
  if (typeof body === 'function') {
    try { body(); } catch (caught) { error = caught; thrown = true; }
  } else { error = body; thrown = true; }
  if (!thrown || wanted === undefined) return thrown;
  const message = String(error && error.message !== undefined ? error.message : error);
  if (typeof wanted === 'string') return message.includes(wanted);
  if (wanted instanceof RegExp) return wanted.test(message);
  if (typeof wanted === 'function') return error instanceof wanted;
  return message === wanted.message;
}
function at(value, path) {
  const keys = Array.isArray(path) ? path : String(path).replace(/\[(\w+)\]/g, '.$1').split('.');
  for (const key of keys) {
    if (value === null || value === undefined || !(key in Object(value))) return [];
    value = value[key];
  }
  return [value];
}
const MATCHERS = {
  toBe: (a, b) => Object.is(a, b), toEqual: (a, b) => isEqual(a, b), toStrictEqual: (a, b) => isEqual(a, b, true),
  toBeCloseTo: (a, b, digits = 2) => a === b || Math.abs(a - b) < 10 ** -digits / 2,
  toBeTruthy: (a) => Boolean(a), toBeFalsy: (a) => !a, toBeNull: (a) => a === null, toBeNaN: (a) => Number.isNaN(a),
  toBeUndefined: (a) => a === undefined, toBeDefined: (a) => a !== undefined,
  toBeGreaterThan: (a, b) => a > b, toBeGreaterThanOrEqual: (a, b) => a >= b,
  toBeLessThan: (a, b) => a < b, toBeLessThanOrEqual: (a, b) => a <= b,
  toContain: (a, b) => typeof a === 'string' ? a.includes(b) : [...a].includes(b),
  toContainEqual: (a, b) => [...a].some((item) => isEqual(item, b)),
  toHaveLength: (a, b) => a.length === b,
  toMatch: (a, b) => typeof a === 'string' && (typeof b === 'string' ? a.includes(b) : b.test(a)),
  toMatchObject: (a, b) => contains(a, b), toThrow: throws, toThrowError: throws,
  toBeInstanceOf: (a, b) => a instanceof b,
  toHaveProperty: (a, path, ...wanted) => at(a, path).some((found) => !wanted.length || isEqual(found, wanted[0])),
  toHaveBeenCalled: (a) => a.mock.calls.length > 0, toHaveBeenCalledTimes: (a, n) => a.mock.calls.length === n,
  toHaveBeenCalledWith: (a, ...args) => a.mock.calls.some((call) => isEqual(call, args)),
  toHaveBeenLastCalledWith: (a, ...args) => isEqual(a.mock.calls[a.mock.calls.length - 1], args),
};
function expect(value) {
  const matchers = (negated) => {
    const made = {};
    for (const [name, holds] of Object.entries(MATCHERS)) {
      made[name] = (...args) => {
        if (Boolean(holds(value, ...args)) === negated) throw new Error(`expect${negated ? '().not' : '()'}.${name}`);
      };
    }
    return made;
  };
  const settled = (kind) => {
    const wait = async () => {
      let result, failed = false;
      try { result = await (typeof value === 'function' ? value() : value); }
      catch (error) { result = error; failed = true; }
      if (failed !== (kind === 'rejects')) throw new Error(`the promise does not: ${kind}`);
      return result;
    };
    const call = (name, negated) => async (...args) => {
      const one = expect(await wait());
      return (negated ? one.not : one)[name](...args);
    };
    const names = Object.keys(MATCHERS);
    const later = (negated) => strict(Object.fromEntries(names.map((name) => [name, call(name, negated)])), kind);
    return Object.defineProperty(later(false), 'not', {get: () => later(true)});
  };
  const made = matchers(false);
  made.not = strict(matchers(true), 'expect().not');
  for (const kind of ['resolves', 'rejects']) Object.defineProperty(made, kind, {get: () => settled(kind)});
  return strict(made, 'expect()');
}
Object.assign(expect, {
  any: (kind) => ({[MATCHES]: (a) => Object(a) instanceof kind}), assertions() {}, hasAssertions() {},
  anything: () => ({[MATCHES]: (a) => a !== null && a !== undefined}),
  objectContaining: (part) => ({[MATCHES]: (a) => contains(a, part)}),
  arrayContaining: (part) => ({[MATCHES]: (a) => Array.isArray(a)
    && part.every((one) => a.some((item) => isEqual(item, one)))}),
  stringContaining: (part) => ({[MATCHES]: (a) => typeof a === 'string' && a.includes(part)}),
  stringMatching: (part) => ({[MATCHES]: (a) => typeof a === 'string' && new RegExp(part).test(a)}),
  closeTo: (b, digits = 2) => ({[MATCHES]: (a) => Math.abs(a - b) < 10 ** -digits / 2}),
});
// ``import`` statements of a test become calls of ``require``, because the test runs inside a function.
function withoutImports(source) {
  const named = /^\s*import\s*\{([^}]*)\}\s*from\s*(['"][^'"]+['"]);?/gm;
  const whole = /^\s*import\s+(?:\*\s+as\s+)?([\w$]+)\s+from\s*(['"][^'"]+['"]);?/gm;
  return source
    .replace(named, (_, list, from) => `const {${list.replace(/\bas\b/g, ':')}} = require(${from});`)
    .replace(whole, (_, name, from) => `const ${name} = requireDefault(${from});`);
}
const SOLUTION = /^\.{0,2}\/[^.]*(\.[cm]?js)?$|^(solution|index|main)(\.js)?$/;
const RUNNERS = new Set(['@jest/globals', 'vitest', 'node:test', 'mocha']);
// Returns the program as a module whose members are looked up by name.
function solutionOf(lookup) {
  return new Proxy({}, {get: (_, name) => typeof name === 'symbol' || name === 'then' ? undefined : lookup(name)});
}
// Returns ``require`` for tests: the program, the runner, or a module of Node.
function requireFor(solution, runner) {
  return (name) => {
    if (SOLUTION.test(name)) return solution;
    if (RUNNERS.has(name)) return Object.assign(runner.names.test, runner.names);
    try { return load(name); }
    catch (error) {
      if (name === 'lodash') return {isEqual: (a, b) => isEqual(a, b)};
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
      throw new Unusable(`the tests need a module that the sandbox does not have: ${name}`);
    }
  };
}
"""
