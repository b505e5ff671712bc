"""JavaScript source of the proxies for objects and functions of the other process. ``javascript_peer`` creates them."""

from __future__ import annotations

PROXIES = r"""// Gives ``old``, an argument, the content that the other process has given it. Only data is changed.
function restore(old, made) {
  if (typeof old !== 'object' || !isObject(made)) return;
  const kind = Object.getPrototypeOf(old), isPlain = kind === Object.prototype || kind === null;
  if (!isPlain && !Array.isArray(old) && !(old instanceof Map) && !(old instanceof Set)) return;
  if (Array.isArray(old) && Array.isArray(made)) { old.length = 0; for (const item of made) old.push(item); }
  else if (old instanceof Map && made instanceof Map) { old.clear(); made.forEach((item, key) => old.set(key, item)); }
  else if (old instanceof Set && made instanceof Set) { old.clear(); made.forEach((item) => old.add(item)); }
  else if (!(old instanceof Map) && !(old instanceof Set)) {
    for (const key of Object.keys(old)) if (!own.call(made, key)) delete old[key];
    for (const key of Object.keys(made)) assign(old, key, made[key]);
  }
}
function iterator(peer, id) {
  const steps = {[Symbol.iterator]() { return this; }, [Symbol.asyncIterator]() { return this; }};
  for (const name of ['next', 'return', 'throw']) steps[name] = (...args) => peer.request('method', id, args, name);
  peer.references.set(steps, id);
  return steps;
}
// Converts as the operators do. ``of + ''`` would convert the result of ``valueOf`` to text.
function primitive(of, hint) {
  if (hint !== 'default') return hint === 'string' ? `${of}` : +of;
  const convert = of[Symbol.toPrimitive];
  if (convert) return convert.call(of, hint);
  const value = of.valueOf();
  return isObject(value) ? of.toString() : value;
}
// Returns whether the own property ``name`` is enumerable; null if there is no such property.
function isEnumerable(of, {name}) {
  const found = Object.getOwnPropertyDescriptor(of, name);
  return found ? found.enumerable : null;
}
function memberOfSymbol(peer, handle, name) {
  const {id} = handle;
  const start = (kind) => () => {
    const made = peer.request('iterate', id, [], kind), number = peer.references.get(made);
    return number === undefined ? made[Symbol.iterator]() : iterator(peer, number);
  };
  if (name === Symbol.iterator && handle.iterable === true) return start('iterator');
  if (name === Symbol.asyncIterator && handle.asyncIterable === true) return start('asyncIterator');
  if (name === Symbol.toPrimitive) return (hint) => {
    const value = peer.request('primitive', id, [hint]);
    check(!isObject(value));
    return value;
  };
  return undefined;
}
// Returns the descriptor of ``name`` in the classes of this process from which an object of the other one is derived.
function inherited(peer, proto, name) {
  for (let at = proto; at && !peer.references.has(at); at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, name);
    if (found) return found;
  }
  return undefined;
}
function remote(peer, handle) {
  const id = handle.id;
  check(Number.isInteger(id) && id >= 0);
  if (peer.remotes.has(id)) return peer.remotes.get(id);
  const callable = handle.callable === true, target = callable ? function () {} : {};
  if (callable && handle.makes) target.prototype = peer.prototypeOf(handle.makes);
  const isRoot = isObject(handle.proto) && own.call(handle.proto, 'root');
  const proto = callable && !isRoot ? Function.prototype : peer.prototypeOf(handle.proto);
  const isDerived = !callable && isObject(handle.proto) && own.call(handle.proto, 'theirs');
  const traps = {
    get: (of, name, receiver) => {
      const found = isDerived ? inherited(peer, proto, name) : undefined;
      if (found) return found.get ? found.get.call(receiver) : found.value;
      if (typeof name === 'symbol') return memberOfSymbol(peer, handle, name);
      if (name === '__proto__') return proto;
      if (name === 'then' && handle.thenable !== true) return undefined;
      if (callable && name === 'prototype') return of.prototype;
      if (callable && OF_FUNCTIONS.has(name)) return Function.prototype[name];
      if (name === 'constructor') return proto ? proto.constructor : undefined;
      return peer.request('get', id, [], name);
    },
    set: (_, name, value, receiver) => {
      const found = isDerived ? inherited(peer, proto, name) : undefined;
      if (found && found.set) { found.set.call(receiver, value); return true; }
      return typeof name === 'string' && peer.request('set', id, [value], name) === true;
    },
    has: (_, name) => Boolean(isDerived && inherited(peer, proto, name))
      || (typeof name === 'string' && peer.request('has', id, [], name) === true),
    deleteProperty: (_, name) => peer.request('delete', id, [], name) === true,
    defineProperty: (_, name, {value, configurable}) => typeof name === 'string' && configurable === true
      && peer.request('set', id, [value], name) === true,
    getPrototypeOf: () => proto,
  };
  if (callable) {
    traps.apply = (_, self, args) => peer.request('call', id, args, '', selfOf(peer, self));
    traps.construct = (_, args, maker) => {
      const more = peer.references.get(maker) === id ? {} : {derived: derivation(peer, maker)};
      const value = peer.request('new', id, args, '', more);
      return isObject(value) ? value : {};
    };
  } else {
    traps.ownKeys = () => {
      const keys = peer.request('keys', id);
      check(Array.isArray(keys));
      return keys.map(String);
    };
    traps.getOwnPropertyDescriptor = (_, name) => {
      const found = typeof name === 'string' ? peer.request('own', id, [], name) : null;
      if (typeof found !== 'boolean') return undefined;
      return {value: peer.request('get', id, [], name), enumerable: found, writable: true, configurable: true};
    };
  }
  const made = new Proxy(target, traps);
  return peer.keep(id, made);
}
function selfOf(peer, self) {
  if (self === undefined || self === null || self === globalThis) return {};
  try { return {self: peer.put(self)}; } catch { return {}; }
}
// Describes ``maker``, a class of this process that is derived from one of the other process.
function derivation(peer, maker) {
  const members = new Map();
  for (let at = maker.prototype; at && !peer.references.has(at); at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const {value, get, set} = Object.getOwnPropertyDescriptor(at, name);
      if (name === 'constructor' || members.has(name)) continue;
      members.set(name, [value, get, set].map((one) => typeof one === 'function' ? peer.refer(one) : null));
    }
  }
  return {maker: peer.number(maker), of: peer.refer(maker), name: maker.name, members: [...members]};
}
// Creates the counterpart of a class of the other process that is derived from ``base``.
function derivedClass(peer, base, {maker, of, name, members}) {
  peer.derived ||= new Map();
  peer.theirs ||= new Map();
  if (peer.derived.has(maker)) return peer.derived.get(maker);
  const made = class extends base {};
  Object.defineProperty(made, 'name', {value: name, configurable: true});
  peer.derived.set(maker, made);
  peer.theirs.set(made.prototype, maker);
  peer.take(of);
  peer.references.set(made, maker);
  for (const [key, forms] of members) {
    const [value, get, set] = forms.map((form) => form === null ? undefined : peer.take(form));
    const member = value ? {value, writable: true} : {get, set};
    Object.defineProperty(made.prototype, key, {...member, configurable: true});
  }
  return made;
}
"""
