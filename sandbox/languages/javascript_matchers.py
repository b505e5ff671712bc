"""JavaScript source of ``expect`` and its matchers, as tests of Jest use them.

``javascript_runner`` uses it.
"""

from __future__ import annotations

MATCHERS = r"""// Only the runner has this symbol, so no object of the program is a matcher such as ``expect.any``.
const MATCHES = Symbol('matches');
// Compares as ``toEqual`` does: properties that are undefined do not count. ``strict`` counts them and the classes.
const kindOf = (value) => Object.prototype.toString.call(value);
const WITH_VALUE = new Set(['Boolean', 'String', 'Number', 'BigInt', 'Date'].map((name) => `[object ${name}]`));
function isEqual(a, b, strict = false) {
  if (Object.is(a, b)) return true;
  if (b && b[MATCHES]) return b[MATCHES](a);
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return false;
  const kind = kindOf(a), isSame = (one, other) => isEqual(one, other, strict);
  if (kind !== kindOf(b) || (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b))) return false;
  if (a instanceof Error && b instanceof Error) return a.message === b.message;
  if (WITH_VALUE.has(kind)) return Object.is(a.valueOf(), b.valueOf());
  if (kind === '[object RegExp]') return a.source === b.source && a.flags === b.flags;
  if (kind === '[object Map]' || kind === '[object Set]') return a.size === b.size && haveSameItems(a, b, isSame);
  const keysOf = (item) => Object.keys(item).filter((key) => strict || item[key] !== undefined);
  const keys = keysOf(a);
  return keys.length === keysOf(b).length && (!Array.isArray(a) || a.length === b.length)
    && keys.every((key) => own.call(b, key) && isSame(a[key], b[key]));
}
// Compares two maps or two sets. The order does not count, and keys may be equal objects.
function haveSameItems(a, b, isSame) {
  const others = new Map(b.entries());
  return [...a.entries()].every(([key, item]) => {
    const isOther = ([otherKey, other]) => isSame(key, otherKey) && (a instanceof Set || isSame(item, other));
    const found = others.has(key) && isOther([key, others.get(key)]) ? [key] : [...others].find(isOther);
    return found !== undefined && others.delete(found[0]);
  });
}
// Compares as ``toMatchObject`` does: objects may have further properties.
function contains(value, part) {
  if (!isObject(part) || part[MATCHES]) return isEqual(value, part);
  if (Array.isArray(part)) {
    return Array.isArray(value) && value.length === part.length
      && Array.from(part).every((one, place) => contains(value[place], one));
  }
  if (kindOf(part) !== '[object Object]') return isEqual(value, part);
  return isObject(value) && Object.keys(part).every((key) => key in value && contains(value[key], part[key]));
}
function throws(body, wanted) {
  if (typeof body !== 'function') throw new Error('the value is not a function');
  let error, thrown = false;
  try { body(); } catch (caught) { error = caught; thrown = true; }
  if (!thrown || wanted === undefined) return thrown;
  const message = String(error && error.message !== undefined ? error.message : error);
  if (typeof wanted === 'string') return message.includes(wanted);
  if (wanted instanceof RegExp) return wanted.test(message);
  if (typeof wanted === 'function') return error instanceof wanted;
  return wanted[MATCHES] ? wanted[MATCHES](error) : message === wanted.message;
}
// Returns a function that throws if a promise was rejected with ``result``, or if ``result`` is an error.
function throwerOf(result, isRejected) {
  if (isRejected || result instanceof Error) return () => { throw result; };
  return typeof result === 'function' ? result : () => {};
}
function at(value, path) {
  const keys = Array.isArray(path) ? path : String(path).replace(/\[(\w+)\]/g, '.$1').split('.');
  for (const key of keys) {
    if (value === null || value === undefined || !(key in Object(value))) return [];
    value = value[key];
  }
  return [value];
}
// Only a mock of the runner has a record of its calls.
function recordOf(mock) {
  if (!isObject(mock) || !records.has(mock)) throw new Error('the value is not a mock or spy');
  return records.get(mock);
}
const callsOf = (mock) => recordOf(mock).calls;
const returnsOf = (mock) => recordOf(mock).results.filter((one) => one.type === 'return').map((one) => one.value);
const MATCHERS = {
  toBe: (a, b) => Object.is(a, b), toEqual: (a, b) => isEqual(a, b), toStrictEqual: (a, b) => isEqual(a, b, true),
  toBeCloseTo: (a, b, digits = 2) => numeric(a) === b || Math.abs(a - b) < 10 ** -digits / 2,
  toBeTruthy: (a) => Boolean(a), toBeFalsy: (a) => !a, toBeNull: (a) => a === null, toBeNaN: (a) => Number.isNaN(a),
  toBeUndefined: (a) => a === undefined, toBeDefined: (a) => a !== undefined,
  toBeGreaterThan: (a, b) => numeric(a) > b, toBeGreaterThanOrEqual: (a, b) => numeric(a) >= b,
  toBeLessThan: (a, b) => numeric(a) < b, toBeLessThanOrEqual: (a, b) => numeric(a) <= b,
  toContain: (a, b) => typeof a === 'string' ? a.includes(b) : [...a].includes(b),
  toContainEqual: (a, b) => [...a].some((item) => isEqual(item, b)),
  toHaveLength: (a, b) => a.length === b,
  toMatch: (a, b) => typeof a === 'string' && (typeof b === 'string' ? a.includes(b) : b.test(a)),
  toMatchObject: (a, b) => contains(a, b), toThrow: throws, toThrowError: throws,
  toBeInstanceOf: (a, b) => a instanceof b,
  toHaveProperty: (a, path, ...wanted) => at(a, path).some((found) => !wanted.length || isEqual(found, wanted[0])),
  toHaveBeenCalled: (a) => callsOf(a).length > 0, toHaveBeenCalledTimes: (a, n) => callsOf(a).length === n,
  toHaveBeenCalledOnce: (a) => callsOf(a).length === 1,
  toHaveBeenCalledWith: (a, ...args) => callsOf(a).some((call) => isEqual(call, args)),
  toHaveBeenLastCalledWith: (a, ...args) => isEqual(callsOf(a)[callsOf(a).length - 1], args),
  toHaveBeenNthCalledWith: (a, n, ...args) => isEqual(callsOf(a)[n - 1], args),
  toHaveReturned: (a) => returnsOf(a).length > 0, toHaveReturnedTimes: (a, n) => returnsOf(a).length === n,
  toHaveReturnedWith: (a, b) => returnsOf(a).some((one) => isEqual(one, b)),
  toHaveLastReturnedWith: (a, b) => isEqual(returnsOf(a)[returnsOf(a).length - 1], b),
  toBeTypeOf: (a, b) => typeof a === b, toSatisfy: (a, holds) => Boolean(holds(a)),
};
// Counts the assertions of a test for ``expect.assertions`` and ``expect.hasAssertions``.
const assertions = {
  start() { Object.assign(this, {made: 0, wanted: null}); },
  end() {
    if (this.wanted !== null && !(this.wanted === true ? this.made : this.made === this.wanted)) {
      throw new Error(`the test made ${this.made} assertions; expected ${this.wanted === true ? 'one' : this.wanted}`);
    }
    this.start();
  },
};
assertions.start();
function numeric(value) {
  if (typeof value !== 'number' && typeof value !== 'bigint') throw new Error('the value is not a number');
  return value;
}
function expect(value) {
  const matchers = (negated) => {
    const made = {};
    for (const [name, holds] of Object.entries(MATCHERS)) {
      made[name] = (...args) => {
        assertions.made++;
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
      const result = await wait();
      const one = expect(name.startsWith('toThrow') ? throwerOf(result, kind === 'rejects') : result);
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
  any: (kind) => ({[MATCHES]: (a) => kind === Object ? typeof a === 'object' : Object(a) instanceof kind}),
  assertions(count) { assertions.wanted = count; }, hasAssertions() { assertions.wanted = true; },
  extend(made) {
    for (const [name, match] of Object.entries(made)) {
      MATCHERS[name] = (a, ...args) => Boolean(match.call({equals: isEqual}, a, ...args).pass);
    }
  },
  anything: () => ({[MATCHES]: (a) => a !== null && a !== undefined}),
  objectContaining: (part) => ({[MATCHES]: (a) => isObject(a)
    && Object.keys(part).every((key) => key in a && isEqual(a[key], part[key]))}),
  arrayContaining: (part) => ({[MATCHES]: (a) => Array.isArray(a)
    && part.every((one) => a.some((item) => isEqual(item, one)))}),
  stringContaining: (part) => ({[MATCHES]: (a) => typeof a === 'string' && a.includes(part)}),
  stringMatching: (part) => ({[MATCHES]: (a) => typeof a === 'string' && new RegExp(part).test(a)}),
  closeTo: (b, digits = 2) => ({[MATCHES]: (a) => typeof a === 'number'
    && (a === b || Math.abs(a - b) < 10 ** -digits / 2)}),
});
expect.not = Object.fromEntries(['objectContaining', 'arrayContaining', 'stringContaining', 'stringMatching', 'closeTo']
  .map((name) => [name, (...args) => ({[MATCHES]: (a) => !expect[name](...args)[MATCHES](a)})]));
"""
