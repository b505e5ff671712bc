"""JavaScript source for containers that the driver and the program share: arrays, objects, maps, sets and dates.

Both processes run this source, and send each other the changes of the containers. Without it, every array would be
copied between the processes. A test could then not check whether a function changes, stores or returns the array that
it gets.
"""

from __future__ import annotations

SHARED = r"""const MOST_ITEMS = 2000, MOST_ITEMS_TOGETHER = 20000, MOST_CONTAINERS = 300;
const textOf = (item) => { try { return stringify(item); } catch { return ''; } };
const sizeOf = (value) => value instanceof Map || value instanceof Set ? value.size
  : value instanceof Date ? 1 : Array.isArray(value) ? value.length : Object.keys(value).length;
// The shared containers of one process. Each message brings the changes since the last one. ``first`` is 0 or 1: this
// process gives every second number, the other process the numbers between. ``peer`` encodes and decodes the items.
class Shared {
  constructor(first, peer) {
    this.next = this.first = first;
    Object.assign(this, {peer, size: 0});
    this.items = new Map();
    this.numbers = new Map();
    this.sent = new Map();  // what the other process knows, by number
  }
  known(value) {
    return this.numbers.has(value) ? {shared: [this.numbers.get(value)]} : this.peer.known(value);
  }
  form(value, depth) {
    const size = sizeOf(value);
    if (size > MOST_ITEMS || this.size + size > MOST_ITEMS_TOGETHER) return undefined;
    const number = this.next;
    this.next += 2;
    this.size += size;
    this.keep(number, value);
    const content = this.content(value, depth);
    this.sent.set(number, this.snapshot(value));
    return {shared: [number, content, Object.isFrozen(value)]};
  }
  content(value, depth = 200) { return encodeContainer(value, (item) => this.peer.put(item, depth - 1)); }
  // Returns the parts of a container. An item that is not shared itself is a copy, so its text counts.
  snapshot(value) {
    const parts = value instanceof Date ? [value.getTime()] : Array.isArray(value) ? value.slice()
      : value instanceof Map ? [...value].flat() : value instanceof Set ? [...value] : Object.entries(value).flat();
    for (let i = 0; i < parts.length; i++) if (this.isCopied(parts[i])) parts[i] = textOf(parts[i]);
    parts.push(Object.isFrozen(value));
    return parts;
  }
  isCopied(item) {
    return item !== null && typeof item === 'object' && !this.numbers.has(item) && !this.peer.references.has(item)
      && !this.peer.numbers.has(item);
  }
  isChanged(number, value) {
    const before = this.sent.get(number), now = this.snapshot(value);
    return before === undefined || before.length !== now.length
      || now.some((part, place) => !Object.is(part, before[place]));
  }
  take(body) {
    check(Array.isArray(body) && Number.isInteger(body[0]) && body[0] >= 0);
    const [number, content, frozen] = body;
    if (!this.items.has(number)) {
      check(body.length === 3 && number % 2 !== this.first && content !== null && typeof content === 'object');
      const make = {d: () => ({}), m: () => new Map(), s: () => new Set(), jsdate: () => new Date(0)};
      const tag = Object.keys(content)[0];
      check(Array.isArray(content) || own.call(make, tag));
      this.keep(number, Array.isArray(content) ? [] : make[tag]());
      this.set(number, content, frozen);
    }
    return this.items.get(number);
  }
  attach(message) {
    const changes = [], unused = [];
    for (const [number, value] of this.items) {
      if (!this.isChanged(number, value)) continue;
      changes.push([number, this.content(value), Object.isFrozen(value)]);
      this.sent.set(number, this.snapshot(value));
    }
    const numbers = this.items.size > MOST_CONTAINERS ? [...this.items.keys()] : [];
    const mine = numbers.filter((number) => number % 2 === this.first);
    for (const number of mine.slice(0, Math.max(0, mine.length - MOST_CONTAINERS))) {
      unused.push(number);
      this.forget(number);
    }
    return changes.length || unused.length ? {...message, changes, unused} : message;
  }
  apply(message) {
    for (const [number, content, frozen] of message.changes || []) {
      if (this.items.has(number)) this.set(number, content, frozen);
    }
    for (const number of message.unused || []) this.forget(number);
  }
  keep(number, value) {
    this.items.set(number, value);
    this.numbers.set(value, number);
  }
  forget(number) {
    if (!this.items.has(number)) return;
    if (number % 2 === this.first) this.size -= Math.min(this.size, sizeOf(this.items.get(number)));
    this.numbers.delete(this.items.get(number));
    this.items.delete(number);
    this.sent.delete(number);
  }
  set(number, content, frozen) {
    const old = this.items.get(number);
    if (Object.isFrozen(old)) return;
    if (Array.isArray(old)) {
      check(Array.isArray(content));
      const made = arrayOf(content, (item) => this.peer.take(item));
      old.length = made.length;
      for (let i = 0; i < made.length; i++) if (i in made) old[i] = made[i]; else delete old[i];
    } else {
      const made = decode(content, (tag, body) => this.peer.take({[tag]: body}));
      if (old instanceof Date) { check(made instanceof Date); old.setTime(made.getTime()); }
      else if (old instanceof Map || old instanceof Set) {
        check(Object.getPrototypeOf(made) === Object.getPrototypeOf(old));
        old.clear();
        made.forEach((item, key) => old instanceof Map ? old.set(key, item) : old.add(item));
      } else {
        for (const key of Object.keys(old)) if (!own.call(made, key)) delete old[key];
        for (const key of Object.keys(made)) assign(old, key, made[key]);
      }
    }
    if (frozen === true) Object.freeze(old);
    this.sent.set(number, this.snapshot(old));
  }
}
"""
