"""JavaScript source that sends messages over pipes and converts values to plain data.

``javascript_program`` and ``javascript_driver`` begin with this source.
"""

from __future__ import annotations

LINK = r"""
'use strict';
const load = require;  // a global under `node -e`; the program must not see it
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
// ``first`` contains the first byte of the message, if it has been read.
function receive(fd, first = null) {
  const rest = readExactly(fd, first ? 3 : 4), head = first && rest ? Buffer.concat([first, rest]) : rest;
  const body = head && readExactly(fd, head.readUInt32LE(0));
  return body && parse(body.toString());
}
"""

# ``encode`` returns the same JSON forms as ``inside.plain.encode``.
VALUES = r"""const {isProxy} = load('util').types;
// Makes an own property, also for the name `__proto__`.
function assign(made, key, value) {
  Object.defineProperty(made, key, {value, enumerable: true, writable: true, configurable: true});
}
// Returns whether a container has accessors or another class, or is a proxy, so that it cannot be copied.
function hasBehaviour(value) {
  if (isProxy(value) || Object.getPrototypeOf(value) === null) return true;
  for (const kind of [Array, Map, Set]) {
    if (value instanceof kind) return Object.getPrototypeOf(value) !== kind.prototype;
  }
  return Object.values(Object.getOwnPropertyDescriptors(value)).some((one) => !('value' in one));
}
// A container for which ``isLive`` returns true is not copied: ``other`` gets it. ``shared`` gets the containers that
// both processes have.
function encode(value, other, isLive = undefined, depth = 200, shared = undefined) {
  if (depth <= 0) throw new TypeError('nested too deep');
  const inner = (item) => encode(item, other, isLive, depth - 1, shared);
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
  const known = shared && shared.known(value);
  if (known) return known;
  const kind = Object.getPrototypeOf(value), isPlain = kind === Object.prototype || kind === null;
  const isContainer = isPlain || Array.isArray(value) || value instanceof Map || value instanceof Set;
  if (isLive && isContainer && isLive(value)) return other(value);
  if (isContainer || value instanceof Date) {
    return shared && shared.form(value, depth) || encodeContainer(value, inner, shared ? HOLE : {u: 0});
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    const plain = encode(value.valueOf(), other);
    return shared ? {boxed: plain} : plain;
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    const items = Array.from(value, inner);
    return shared ? {typed: [value.constructor.name, items]} : items;
  }
  return other(value);
}
const HOLE = {hole: 0};
function encodeContainer(value, inner, missing = HOLE) {
  if (Array.isArray(value)) {
    const list = [];
    for (let i = 0; i < value.length; i++) list.push(i in value ? inner(value[i]) : missing);
    return list;
  }
  if (value instanceof Map) return {m: Array.from(value, ([key, item]) => [inner(key), inner(item)])};
  if (value instanceof Set) return {s: Array.from(value, inner)};
  if (value instanceof Date) return {jsdate: inner(value.getTime())};
  return {d: Object.keys(value).map((key) => [key, inner(value[key])])};
}
const FLOATS = Object.assign(Object.create(null), {nan: NaN, inf: Infinity, '-inf': -Infinity, '-0': -0});
function check(holds) { if (!holds) throw new TypeError('malformed form'); }
function pairs(body) {
  check(Array.isArray(body) && body.every((item) => Array.isArray(item) && item.length === 2));
  return body;
}
// Returns the array of a form. Some items may be missing, as in `[1, , 3]`.
function arrayOf(forms, inner) {
  const made = new Array(forms.length);
  for (let i = 0; i < forms.length; i++) {
    if (forms[i] === null || typeof forms[i] !== 'object' || !own.call(forms[i], 'hole')) made[i] = inner(forms[i]);
  }
  return made;
}
// The form may come from untrusted code: every type is checked, and no table is read by an unchecked name.
function decode(form, other) {
  if (form === null || typeof form !== 'object') return form;
  const inner = (item) => decode(item, other);
  if (Array.isArray(form)) return arrayOf(form, inner);
  const tags = Object.keys(form);
  check(tags.length === 1);
  const tag = tags[0], body = form[tag];
  switch (tag) {
    case 'u': return undefined;
    case 'i':
      check(typeof body === 'string' && /^-?[0-9a-f]+$/.test(body));
      return body[0] === '-' ? -BigInt('0x' + body.slice(1)) : BigInt('0x' + body);
    case 'f': check(typeof body === 'string' && body in FLOATS); return FLOATS[body];
    case 't': check(Array.isArray(body)); return body.map(inner);
    case 'd': {
      const made = {};
      for (const [key, item] of pairs(body)) {
        const name = decode(key);
        check(['string', 'number', 'boolean'].includes(typeof name) || name === null);
        assign(made, name, inner(item));
      }
      return made;
    }
    case 'm': return new Map(pairs(body).map(([key, item]) => [inner(key), inner(item)]));
    case 's': check(Array.isArray(body)); return new Set(body.map(inner));
    case 'jsdate': { const time = inner(body); check(typeof time === 'number'); return new Date(time); }
    default: check(other); return other(tag, body);
  }
}
"""

# Source for both ways to run tests: a ``console.assert`` that throws, and a call of a test that only defines ``check``.
TESTING = r"""
function assertOrThrow(holds, ...messages) {
  if (!holds) throw new Error(messages.map(String).join(' ') || 'Assertion failed');
}
function checkTail(entry, source) {
  const defines = /\bfunction\s+check\b|\bcheck\s*=[^=]/.test(source), calls = /^\s*check\(/m.test(source);
  return /^[A-Za-z_$][\w$]*$/.test(entry) && defines && !calls ? `\nawait check(${entry});` : '';
}
"""
