"""JavaScript source that decides which objects of the tests the program may use, and how. It belongs to the driver.

``javascript_driver`` includes it. The program is untrusted. It can call functions that the tests pass, and can read
attributes and set data of objects of the tests. It cannot reach the constructor of a library, or the record of a mock.
"""

from __future__ import annotations

LENDING = r"""const HARMLESS = new Set(['assert', 'buffer', 'crypto', 'events', 'path', 'perf_hooks', 'querystring',
  'string_decoder', 'timers', 'timers/promises', 'url', 'util']);
const LIBRARIES = new WeakSet();  // modules, functions and classes that the program must not get
function refuse(members) {
  if (!isObject(members) || LIBRARIES.has(members)) return members;
  LIBRARIES.add(members);
  const descriptors = Object.values(Object.getOwnPropertyDescriptors(members));
  for (const {value} of descriptors) if (isObject(value)) LIBRARIES.add(value);
  return members;
}
for (const members of [process, fs, fs.promises, globalThis.WebAssembly, load('module'), load('vm')]) refuse(members);
for (const value of [eval, Function, load]) LIBRARIES.add(value);
const HIDDEN = /^(__.*|constructor|caller|callee|arguments)$/;
const ITERATION = new Set(['next', 'return', 'throw']);
class Lending extends Peer {
  refer(value) {
    if (isObject(value) && !this.references.has(value)) {
      const proto = Object.getPrototypeOf(value);
      const maker = proto && Object.getOwnPropertyDescriptor(proto, 'constructor');
      if (LIBRARIES.has(value) || (maker && LIBRARIES.has(maker.value) && typeof value !== 'function')) {
        throw new TypeError('this value cannot be passed to the program');
      }
    }
    return super.refer(value);
  }
  gone() { end('the program gave no answer'); }
  // A test may expect an error. A refusal of the strict run must not count as this error, so it ends the tests.
  refused(error) { end(error.message); }
  // A test may catch its own failed assertion, and then ask whether the error is an instance of ``kind``.
  refuseAllErrors(kind, name) {
    if (typeof kind === 'function' && [Error.prototype, Object.prototype].includes(kind.prototype)) {
      this.refused(new TypeError(`${name} of the program is a class of errors to which failed assertions belong`));
    }
  }
  request(op, target, args = [], name = '', more = {}) {
    const value = super.request(op, target, args, name, more);
    if (op === 'get') this.refuseAllErrors(value, name);
    if (ORDERS) this.compareReadings(op, value, stringify([op, target, name, args.map(String), more.self]));
    return value;
  }
  // An object could answer differently when the tests ask whether it is greater than 1 and less than 2.
  compareReadings(op, value, key) {
    if (op !== 'get' && op !== 'primitive') return this.readings.clear();
    if (isObject(value)) return;
    if (!this.readings.size) queueJob(() => this.readings.clear());
    if (!this.readings.has(key)) this.readings.set(key, value);
    else if (!Object.is(this.readings.get(key), value)) {
      this.refused(new TypeError('a value of the program changed between two readings, so it could be forged'));
    }
  }
  caught(error) { if (error instanceof Unusable) unusable(error.message); }
  perform({op, target, name, self}, args) {
    const of = this.ownedBy(target);
    switch (op) {
      case 'call': {
        const bound = self === undefined ? undefined : this.take(self);
        check(typeof of === 'function' && !records.has(bound));
        return Reflect.apply(of, bound, args);
      }
      case 'new': check(typeof of === 'function'); return Reflect.construct(of, args);
      case 'keys': return Reflect.ownKeys(of).filter((key) => typeof key === 'string' && !HIDDEN.test(key));
      case 'iterate': check(name === 'iterator' || name === 'asyncIterator'); return of[Symbol[name]]();
      case 'primitive': return primitive(of, args[0]);
      case 'method': this.allow(of, name); check(ITERATION.has(name)); return of[name](...args);
      case 'get': this.allow(of, name); return self === undefined ? of[name] : Reflect.get(of, name, this.take(self));
      case 'has': this.allow(of, name); return name in of;
      case 'own': this.allow(of, name); return isEnumerable(of, {name});
      case 'set': this.allowChange(of, name); return Reflect.set(of, name, args[0]);
      case 'delete': this.allowChange(of, name); return Reflect.deleteProperty(of, name);
      default: throw new TypeError('unknown operation');
    }
  }
  allow(of, name) {
    check(typeof name === 'string');
    const isData = typeof of !== 'function' || name === 'name' || name === 'length';
    if (HIDDEN.test(name) || (!isData && (records.has(of) || !own.call(of, name)))) {
      throw new TypeError(`in a strict run, the program cannot use the attribute ${name} of an object of the tests`);
    }
  }
  allowChange(of, name) {
    this.allow(of, name);
    if (typeof of === 'function' || typeof of[name] === 'function') {
      throw new TypeError('the program cannot replace a method');
    }
  }
  // After a request, the program performs the work that waits in its queue of promises, before that of this process.
  asynchronous() {
    if (!this.hasQueue || this.draining) return;
    this.draining = true;
    queueJob(() => { this.draining = false; this.ask({op: 'tick'}); });
  }
  state() {
    const changes = this.replaced(), state = changes.length ? {globals: changes} : {};
    const now = runner.clock.now();
    if (now === this.clock) return state;
    this.clock = now;
    return {...state, clock: now};
  }
  // Returns the functions and globals that the tests have replaced or restored since the last message.
  replaced() {
    const changes = [];
    for (const [path, owner, name, before] of WATCHED) this.compare(changes, path, owner()[name], before);
    for (const name of Object.keys(globalThis)) {
      if (!ACCESSORS.has(name)) this.compare(changes, 'globalThis.' + name, globalThis[name], GLOBALS.get(name));
    }
    for (const path of this.sentGlobals.keys()) {
      const [place, name] = path.split('.');
      if (place === 'globalThis' && !(name in globalThis)) this.compare(changes, path, undefined, undefined);
    }
    return changes;
  }
  compare(changes, path, now, before) {
    const sent = this.sentGlobals.has(path) ? this.sentGlobals.get(path) : before;
    if (now === sent) return;
    this.sentGlobals.set(path, now);
    try { changes.push([path, now === before ? null : {is: this.put(now)}]); } catch { }
  }
}
const queueJob = queueMicrotask;
const ORDERS = /[\w)\]]\s*[<>]=?\s*[-\w(.]|Greater|Less/.test(job.cases.join('\n').replaceAll('=>', ''));
// A global with an accessor is loaded when it is first read, which takes long.
const GLOBALS = new Map(), ACCESSORS = new Set(['global']);
for (const name of Object.keys(globalThis)) {
  const {value, get} = Object.getOwnPropertyDescriptor(globalThis, name);
  if (get) ACCESSORS.add(name); else GLOBALS.set(name, value);
}
const WATCHED = [];
for (const [name, owner, members] of [
  ['console', () => console, ['log', 'info', 'warn', 'error', 'debug', 'table']], ['process', () => process, ['exit']],
  ['stdout', () => process.stdout, ['write']], ['stderr', () => process.stderr, ['write']],
  ['Math', () => Math, ['random']], ['Date', () => RealDate, ['now']]]) {
  for (const member of members) WATCHED.push([`${name}.${member}`, owner, member, owner()[member]]);
}
"""
