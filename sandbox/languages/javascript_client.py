"""JavaScript source of the driver's connection to the program: requests, answers and proxies.

``javascript_driver`` includes this source. The program's side is ``serve`` in ``javascript_program``.
"""

from __future__ import annotations

CLIENT = r"""const functions = [];
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
    throw new TypeError('this value cannot be passed to the program');
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
// A comparison or a conversion reads these names by itself, so the program never answers them.
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
"""
