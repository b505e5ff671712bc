"""JavaScript source that both processes share: it sends messages over pipes and converts values to plain data.

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
function receive(fd) {
  const head = readExactly(fd, 4);
  const body = head && readExactly(fd, head.readUInt32LE(0));
  return body && parse(body.toString());
}
"""

# ``encode`` returns the same JSON forms as ``inside.plain.encode``.
VALUES = r"""// Makes an own property, also for the name `__proto__`.
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
