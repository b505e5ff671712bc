"""JavaScript source of the connection between the driver and the program: messages, references and proxies.

Both processes include this source. A *peer* is one end of the connection. A peer sends requests, and replies to the
requests of the other peer, also while it waits for a reply. An object that is not plain data stays in its process. The
other process gets a proxy, which requests each property when it is read. Prototypes are mirrored, so ``instanceof``
works without a request. A promise settles in both processes.
"""

from __future__ import annotations

PEER = r"""const EventEmitter = load('events');
const CONSTRUCTORS = [Object, Function, Array, Map, Set, Promise, Date, RegExp, Error, TypeError, RangeError,
  SyntaxError, ReferenceError, EvalError, URIError, EventEmitter];
const ROOTS = new Map(CONSTRUCTORS.map((kind) => [kind.prototype, kind.name]));
const ROOT_OF = new Map(CONSTRUCTORS.map((kind) => [kind.name, kind.prototype]));
// Functions that both processes have. ``Function`` is not one of them, because it creates code.
const BUILTINS = new Map([...CONSTRUCTORS, String, Number, Boolean, BigInt, Symbol, WeakMap, WeakSet, parseInt,
  parseFloat, isNaN, isFinite].filter((one) => one !== Function).map((one) => [one.name, one]));
for (const name of Object.getOwnPropertyNames(Math)) {
  if (typeof Math[name] === 'function') BUILTINS.set('Math.' + name, Math[name]);
}
for (const make of [async () => {}, function* () {}, async function* () {}]) {
  const proto = Object.getPrototypeOf(make);
  ROOTS.set(proto, proto.constructor.name);
  ROOT_OF.set(proto.constructor.name, proto);
}
const BUILTIN_NAMES = new Map(Array.from(BUILTINS, ([name, value]) => [value, name]));
const TYPED = new Map([Buffer, Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array,
  Uint32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array].map((kind) => [kind.name, kind]));
const OF_FUNCTIONS = new Set(['call', 'apply', 'bind']);
const queueTask = setImmediate;
const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function');
class Peer {
  constructor(reads, writes, first) {
    Object.assign(this, {reads, writes, asked: 0, received: 0, waiting: 0});
    this.owned = [];  // what the other process knows of this one, by number
    this.numbers = new Map();
    this.described = new Set();
    this.remotes = new Map();  // proxies of the other process's objects, by number
    this.references = new WeakMap();  // number of the other process's object
    this.protos = new Map();
    this.promises = new Map();  // unsettled promises of the other process
    this.answers = new Map();
    this.shared = new Shared(first, this);
  }
  // -- messages
  ask(request) {
    const id = this.asked++;
    send(this.writes, {...request, id});
    this.pause();
    this.waiting++;
    try { while (!this.answers.has(id)) this.handle(this.next()); } finally { this.waiting--; }
    const answer = this.answers.get(id);
    this.answers.delete(id);
    return answer;
  }
  // Sends a request without waiting; ``done`` is called after the answer.
  askLater(request, done) {
    this.later = {id: this.asked++, done};
    send(this.writes, {...request, id: this.later.id});
  }
  next(first = null) {
    let message = null;
    try { message = receive(this.reads, first); } catch { }
    if (message === null || typeof message !== 'object') this.gone();
    this.received++;
    return message;
  }
  handle(message) {
    if (own.call(message, 'answer')) {
      const id = message.answer;
      if (!Number.isInteger(id) || id < 0 || id >= this.asked) this.gone();
      if (this.later && this.later.id === id) { const {done} = this.later; this.later = null; done(); }
      else this.answers.set(id, message);
    } else if (own.call(message, 'settled')) this.settle(message);
    else this.respond(message);
  }
  // Handles messages that arrive while this process does not wait for an answer.
  listen() {
    const byte = Buffer.alloc(1);
    const callback = () => { this.pause(); this.handle(this.next(Buffer.from(byte))); return false; };
    const {Socket} = load('net');
    this.socket = new Socket({fd: this.reads, readable: true, writable: false, onread: {buffer: byte, callback}});
    this.socket.on('end', () => this.gone());
    this.socket.on('error', () => this.gone());
    this.socket._handle.setBlocking(true);
    this.socket.resume();
  }
  // The event loop must not read a message that this process reads itself.
  pause() {
    if (!this.socket || this.paused) return;
    this.paused = true;
    this.socket._handle.readStop();
    queueTask(() => { this.paused = false; this.socket._handle.readStart(); });
  }
  respond(message) {
    let answer;
    try {
      this.accept(message);
      this.shared.apply(message);
      const args = (Array.isArray(message.args) ? message.args : []).map((form) => this.take(form));
      const result = this.perform(message, args), changes = this.shared.attach({});
      let sent;
      try { sent = {ok: this.put(result), args: this.changed(args)}; }
      catch (error) { sent = {refused: error.message}; }  // of this connection, so it is no error of the function
      answer = {...changes, ...sent};
    } catch (error) {
      this.caught(error);
      answer = {...this.shared.attach({}), raise: this.put(error)};
    }
    send(this.writes, {...answer, ...this.state(), answer: message.id});
  }
  accept() {}
  caught() {}
  changed() { return []; }
  state() { return {}; }
  request(op, target, args = [], name = '', more = {}) {
    let message, forms;
    try {
      message = this.shared.attach({op, target, name, ...more});
      forms = args.map((item) => this.put(item));
    } catch (error) { return this.refused(error); }
    const answer = this.ask({...message, ...this.state(), args: forms});
    this.asynchronous();
    if (own.call(answer, 'refused')) return this.refused(new TypeError(String(answer.refused)));
    let result;
    try { result = this.resultOf(answer, args); } catch (error) { return this.refused(error); }
    if (own.call(answer, 'raise')) throw result;
    return result;
  }
  // Returns the result of a request, or the error that it raised.
  resultOf(answer, args) {
    this.accept(answer);
    this.shared.apply(answer);
    if (Array.isArray(answer.args)) {
      answer.args.forEach((form, place) => {
        if (form !== null && args[place]) restore(args[place], this.take(form));
      });
    }
    return this.take(own.call(answer, 'raise') ? answer.raise : answer.ok);
  }
  refused(error) { throw error; }
  asynchronous() {}
  // -- values
  number(value) {
    if (!this.numbers.has(value)) { this.numbers.set(value, this.owned.length); this.owned.push(value); }
    return this.numbers.get(value);
  }
  ownedBy(number) {
    check(Number.isInteger(number) && number >= 0 && number < this.owned.length);
    return this.owned[number];
  }
  isLive(value) { return hasBehaviour(value); }
  known(value) { return this.references.has(value) ? {mine: this.references.get(value)} : undefined; }
  put(value, depth = 200) { return encode(value, (item) => this.refer(item), this.isLive, depth, this.shared); }
  refer(value) {
    if (typeof value === 'symbol') return {symbol: symbolName(value)};
    if (this.references.has(value)) return {mine: this.references.get(value)};
    if (BUILTIN_NAMES.has(value)) return {builtin: BUILTIN_NAMES.get(value)};
    if (value instanceof Promise) return this.promise(value);
    if (value instanceof Error) return this.error(value);
    const parent = Object.getPrototypeOf(value), callable = typeof value === 'function';
    if (parent === RegExp.prototype) return {regexp: [value.source, value.flags, value.lastIndex]};
    const handle = {id: this.number(value), callable, proto: this.prototype(parent)};
    if (callable && own.call(value, 'prototype') && value.prototype) handle.makes = this.prototype(value.prototype);
    handle.iterable = typeof value[Symbol.iterator] === 'function';
    handle.asyncIterable = typeof value[Symbol.asyncIterator] === 'function';
    handle.thenable = typeof value.then === 'function';
    return {handle};
  }
  error(error) {
    const proto = this.prototype(Object.getPrototypeOf(error)), known = this.numbers.has(error);
    const form = {id: this.number(error), name: String(error.name), message: String(error.message), proto};
    if (!known) form.fields = Object.keys(error).map((key) => [key, this.put(error[key])]);
    if (!known && own.call(error, 'cause')) form.cause = this.put(error.cause);
    return {error: form};
  }
  promise(value) {
    const known = this.numbers.has(value), number = this.number(value);
    const settle = (how) => (result) => {
      const changes = this.shared.attach({});
      send(this.writes, {...changes, [how]: this.put(result), ...this.state(), settled: number});
    };
    if (!known) value.then(settle('ok'), settle('raise'));
    return {promise: number};
  }
  settle(message) {
    const waiting = this.promises.get(message.settled);
    if (!waiting) return;
    this.promises.delete(message.settled);
    this.accept(message);
    this.shared.apply(message);
    if (own.call(message, 'raise')) waiting.reject(this.take(message.raise));
    else waiting.resolve(this.take(message.ok));
  }
  // Describes a prototype once: its parent, its constructor, and the names of its members.
  prototype(value) {
    if (value === null) return null;
    if (ROOTS.has(value)) return {root: ROOTS.get(value)};
    if (this.theirs && this.theirs.has(value)) return {theirs: this.theirs.get(value)};
    if (this.references.has(value)) return {mine: this.references.get(value)};
    const id = this.number(value);
    if (this.described.has(id)) return {id};
    this.described.add(id);
    const made = Object.getOwnPropertyDescriptor(value, 'constructor');
    const maker = made && typeof made.value === 'function' ? this.refer(made.value) : null;
    const names = Object.getOwnPropertyNames(value).filter((name) => name !== 'constructor');
    return {id, parent: this.prototype(Object.getPrototypeOf(value)), maker, names};
  }
  prototypeOf(form) {
    if (form === null || form === undefined) return null;
    check(typeof form === 'object');
    if (own.call(form, 'root')) { check(ROOT_OF.has(form.root)); return ROOT_OF.get(form.root); }
    if (own.call(form, 'theirs')) {
      const of = this.ownedBy(form.theirs);
      check(typeof of === 'function');
      return of.prototype;
    }
    if (own.call(form, 'mine')) return this.ownedBy(form.mine);
    check(Number.isInteger(form.id));
    if (!this.protos.has(form.id)) this.mirror(form);
    return this.protos.get(form.id);
  }
  mirror({id, parent, maker, names}) {
    const made = Object.create(this.prototypeOf(parent));
    this.protos.set(id, made);
    this.references.set(made, id);
    const self = (value) => value === made ? {} : {self: this.put(value)};
    const peer = this;
    for (const name of Array.isArray(names) ? names : []) {
      check(typeof name === 'string');
      Object.defineProperty(made, name, {configurable: true,
        get() { return peer.request('get', id, [], name, self(this)); },
        set(value) {
          if (this === made) peer.request('set', id, [value], name);
          else Object.defineProperty(this, name, {value, writable: true, enumerable: true, configurable: true});
        }});
    }
    if (maker) Object.defineProperty(made, 'constructor', {get: () => peer.take(maker), configurable: true});
  }
  take(form) { return decode(form, (tag, body) => this.decodeObject(tag, body)); }
  decodeObject(tag, body) {
    switch (tag) {
      case 'mine': return this.ownedBy(body);
      case 'shared': return this.shared.take(body);
      case 'builtin': check(BUILTINS.has(body)); return BUILTINS.get(body);
      case 'symbol': check(typeof body === 'string'); return symbolOf(body);
      case 'promise': return this.promiseOf(body);
      case 'regexp': return regexpOf(body);
      case 'typed': return this.typedOf(body);
      case 'boxed': check(!isObject(body) && body !== null); return Object(body);
      case 'error': check(isObject(body)); return this.errorOf(body);
      case 'handle': check(isObject(body)); return remote(this, body);
      default: throw new TypeError('unknown form ' + tag);
    }
  }
  typedOf(body) {
    check(Array.isArray(body) && TYPED.has(body[0]) && Array.isArray(body[1]));
    return TYPED.get(body[0]).from(body[1], (item) => this.take(item));
  }
  keep(number, made) {
    this.remotes.set(number, made);
    this.references.set(made, number);
    return made;
  }
  promiseOf(number) {
    check(Number.isInteger(number) && number >= 0);
    return this.remotes.get(number) || this.keep(number, new Promise((resolve, reject) => {
      this.promises.set(number, {resolve, reject});
    }));
  }
  errorOf(form) {
    check(Number.isInteger(form.id));
    const known = this.remotes.get(form.id);
    const error = known instanceof Error ? known : this.keep(form.id, new Error(String(form.message)));
    if (error === known) return error;
    Object.setPrototypeOf(error, this.prototypeOf(form.proto) || Error.prototype);
    for (const [key, item] of pairs(form.fields)) assign(error, String(key), this.take(item));
    const hidden = {configurable: true, writable: true, enumerable: false};
    if (!own.call(error, 'name') && (!form.proto || !form.proto.root || error.name !== form.name)) {
      Object.defineProperty(error, 'name', {value: String(form.name), ...hidden});
    }
    if (own.call(form, 'cause')) Object.defineProperty(error, 'cause', {value: this.take(form.cause), ...hidden});
    return error;
  }
}
function regexpOf(body) {
  check(Array.isArray(body) && typeof body[0] === 'string' && typeof body[1] === 'string' && Number.isInteger(body[2]));
  return Object.assign(new RegExp(body[0], body[1]), {lastIndex: body[2]});
}
const SYMBOLS = new Map(['iterator', 'asyncIterator', 'hasInstance', 'toPrimitive', 'toStringTag'].map((name) =>
  [Symbol[name], name]));
function symbolName(value) {
  if (SYMBOLS.has(value)) return '@' + SYMBOLS.get(value);
  if (Symbol.keyFor(value) === undefined) throw new TypeError('a symbol cannot be sent');
  return '=' + Symbol.keyFor(value);
}
function symbolOf(name) {
  if (name[0] === '=') return Symbol.for(name.slice(1));
  check([...SYMBOLS.values()].includes(name.slice(1)));
  return Symbol[name.slice(1)];
}
"""
