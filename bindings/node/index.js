// SPDX-License-Identifier: MIT
// Muster for Node: streams over any transport as Duplex streams of Node, and stores with promises.
//
//   const muster = require('muster');
//   const context = new muster.Context({ secret: process.env.MUSTER_SECRET });
//   const stream = await context.dial('tcp://10.0.0.7:4100');
//   stream.write('hello');
//   for await (const chunk of stream) console.log(chunk);
//
// Failures are Errors with a `code` (MUSTER_TIMEOUT, MUSTER_E_PEER and others) and the number `status`. Nothing here blocks
// the thread. A context keeps the process alive while streams and listeners are open or operations are in progress; see unref().
'use strict';

const { Duplex } = require('node:stream');
const { EventEmitter } = require('node:events');
const path = require('node:path');

const native = require(process.env.MUSTER_NODE_ADDON || path.join(__dirname, 'build', 'Release', 'muster.node'));

const READABLE = 1, WRITABLE = 2, PEER_SILENT = 4, PEER_BACK = 8, ENDED = 16;
const IF_ABSENT = 1, IF_PRESENT = 2, IF_VALUE = 3, IF_VERSION = 4;
const OP = { GET: 1, READ: 2, SET: 3, ADD: 4, APPEND: 5, DELETE: 6, CHECK: 7, WAIT: 8, COUNT: 9, LIST: 10, KEYS: 11, PUSH: 12, POP: 13,
  TRY_POP: 14, LENGTH: 15, WATCH: 16, BARRIER: 17 };
const PRESENT = 1, FAILED = 2, MORE = 4;
const CHANGED = 'MUSTER_E_CHANGED'; // a condition did not hold: the result says which
const ABORTED = 'MUSTER_E_ABORTED'; // by this side: nothing is lost that was to arrive
const read_size = 65536;

function failure(status, name, message) {
  return Object.assign(new Error(message || name), { code: name, status });
}

// Milliseconds, as everywhere in Node; undefined and Infinity: no limit.
function nanoseconds(ms, otherwise = -1) {
  if (ms === undefined || ms === Infinity) return otherwise;
  if (typeof ms !== 'number' || !(ms >= 0)) throw new RangeError(`a timeout is a number of milliseconds, not ${ms}`);
  return Math.max(1, Math.min(Math.round(ms * 1e6), Number.MAX_SAFE_INTEGER));
}

class Context {
  #native; #handlers = new Map(); #tags = 0; #held = 0; #ref = true; #streams = new Set(); #closed;

  // secret: of the job, 16 bytes at least; without it MUSTER_SECRET_FILE, MUSTER_SECRET, or a random one.
  constructor({ secret } = {}) {
    this.#native = native.open(secret, (tag, status, events, object, message, name) => {
      const handler = this.#handlers.get(tag);
      if (handler) handler(status, events, object, message, name);
    });
  }

  // Of this package: a number for what happens later.
  _tag(handler) {
    this.#handlers.set(++this.#tags, handler);
    return this.#tags;
  }

  _forget(tag) { this.#handlers.delete(tag); }

  get _native() { return this.#native; }

  // One more thing, or one less, keeps the process alive.
  _hold(by) {
    this.#held += by;
    if (!this.#closed) native.hold(this.#native, this.#ref && this.#held > 0);
  }

  _opened(stream) { this.#streams.add(stream); this._hold(1); }

  _ended(stream) { if (this.#streams.delete(stream)) this._hold(-1); }

  // The result of an operation: `begin(tag)` begins it, `take(object)` makes what the promise gets.
  _begin(begin, take, signal, stop) {
    return new Promise((resolve, reject) => {
      let abort;
      const tag = this._tag((status, events, object, message, name) => {
        this._forget(tag);
        this._hold(-1);
        if (signal) signal.removeEventListener('abort', abort);
        if (status === 0 || (name === CHANGED && object !== undefined)) resolve(take(object));
        else if (signal && signal.aborted) reject(signal.reason);
        else reject(failure(status, name, message));
      });
      try {
        if (signal) signal.throwIfAborted();
        const id = begin(tag);
        this._hold(1);
        if (signal) signal.addEventListener('abort', abort = () => stop(id));
      } catch (problem) {
        this._forget(tag);
        reject(problem);
      }
    });
  }

  // A Stream to a listener, when both sides have proved the secret.
  dial(address, { timeout = 60000 } = {}) {
    return this._begin((tag) => native.dial(this.#native, address, nanoseconds(timeout), tag), (stream) => new Stream(this, stream));
  }

  // A Listener, which emits 'connection' with a Stream.
  listen(address) { return new Listener(this, address); }

  // Two Streams, the ends of one.
  pair() { return native.pair(this.#native).map((stream) => new Stream(this, stream)); }

  // A Store: memory:, file:///path, tcp://host:port, etcd://host:port.
  openStore(url, { timeout = 60000 } = {}) {
    return this._begin((tag) => native.openStore(this.#native, url, nanoseconds(timeout), tag), (store) => new Store(this, store));
  }

  // What is open and in progress does not keep the process alive; ref(): it does again.
  unref() { this.#ref = false; this._hold(0); return this; }

  ref() { this.#ref = true; this._hold(0); return this; }

  // Ends the streams, with what was written to them sent first, for at most so long, and then everything else.
  close({ timeout = 5000 } = {}) {
    this.#closed ??= (async () => {
      const streams = [...this.#streams];
      const ended = Promise.all(streams.map((one) => new Promise((resolve) => { one.once('close', resolve).destroy(); })));
      let timer;
      await Promise.race([ended, new Promise((resolve) => { timer = setTimeout(resolve, timeout); })]);
      clearTimeout(timer);
      native.close(this.#native);
      for (const handler of [...this.#handlers.values()])
        handler(-1, ENDED, undefined, 'the context is closed', 'MUSTER_E_CLOSED');
      this.#handlers.clear();
    })();
    return this.#closed;
  }
}

// A Duplex stream of Node. end() finishes the writing side alone; the end of the other side is the event 'end'. Other events:
// 'silent' and 'back', when nothing was received from the peer for some seconds, and when it sends again.
class Stream extends Duplex {
  #context; #native; #tag; #reads = false; #waiting = null; #place = null;

  constructor(context, handle) {
    super({ allowHalfOpen: true, readableHighWaterMark: read_size, writableHighWaterMark: read_size });
    this.#context = context;
    this.#native = handle;
    this.#tag = context._tag((status, events) => this.#ready(events));
    native.watch(handle, context._native, READABLE | WRITABLE | PEER_SILENT | PEER_BACK | ENDED, this.#tag);
    context._opened(this);
    process.nextTick(() => this.read(0)); // as sockets of Node: its end is noticed before anything reads
  }

  // The other side, as text for people.
  get peer() { return this.#native ? native.peer(this.#native) : undefined; }

  #ready(events) {
    if (events & PEER_SILENT) this.emit('silent');
    if (events & PEER_BACK) this.emit('back');
    if (events & (WRITABLE | ENDED) && this.#waiting) {
      const { chunk, from, done } = this.#waiting;
      this.#waiting = null;
      this.#send(chunk, from, done);
    }
    if (events & (READABLE | ENDED) && this.#reads) this._read();
  }

  _read() {
    this.#reads = false;
    try {
      for (;;) {
        if (!this.#native || this.destroyed) return;
        const place = this.#place ??= Buffer.allocUnsafeSlow(read_size);
        const moved = native.read(this.#native, place);
        if (moved < 0) { this.#reads = true; return; }
        if (moved === 0) { this.push(null); return; }
        const is_small = moved < read_size / 2; // a copy, so that a few bytes do not keep 64 KiB
        if (!is_small) this.#place = null;
        if (!this.push(is_small ? Buffer.from(place.subarray(0, moved)) : place.subarray(0, moved))) return;
      }
    } catch (problem) {
      this.destroy(problem);
    }
  }

  _write(chunk, encoding, done) { this.#send(chunk, 0, done); }

  #send(chunk, from, done) {
    try {
      if (!this.#native) throw failure(-1, 'MUSTER_E_CLOSED', 'the stream is closed');
      const sent = from + native.write(this.#native, chunk, from);
      if (sent < chunk.length) this.#waiting = { chunk, from: sent, done };
      else done();
    } catch (problem) {
      done(problem);
    }
  }

  _final(done) {
    try {
      native.finish(this.#native);
      done();
    } catch (problem) {
      done(problem);
    }
  }

  // The other side gets a reason: its read fails with MUSTER_E_ABORTED and the text.
  abort(reason = 0, text = '') {
    if (this.#native) native.abort(this.#native, reason, text);
    this.destroy();
  }

  // What was written is sent first, however long the other side takes, as long as it lives; after a failure nothing is waited
  // for. Bytes that may be lost are an error of the stream.
  _destroy(problem, done) {
    const handle = this.#native, over = (loss) => {
      native.release(handle);
      this.#native = null;
      this.#context._forget(this.#tag);
      this.#context._ended(this);
      done(problem ?? loss);
    };
    if (this.#waiting) this.#waiting.done(problem ?? failure(-1, 'MUSTER_E_CLOSED', 'the stream was destroyed'));
    this.#waiting = null;
    try {
      native.watch(handle, this.#context._native, 0, 0);
      const tag = this.#context._tag((status, events, object, message, name) => {
        this.#context._forget(tag);
        over(status === 0 || name === ABORTED ? null : failure(status, name, message));
      });
      native.closeStream(handle, this.#context._native, problem ? 1 : -1, tag);
    } catch (closed) {
      over(closed); // the context is closed, and the stream with it
    }
  }
}

// Emits 'connection' with a Stream for each that has proved the secret, and 'error'. Also `for await (const stream of listener)`.
class Listener extends EventEmitter {
  #context; #native; #tag;

  constructor(context, address) {
    super();
    this.#context = context;
    this.#tag = context._tag((status) => (status === 0 ? this.#accept() : this.close()));
    this.#native = native.listen(context._native, address, this.#tag);
    this.address = native.listenerAddress(this.#native);
    context._hold(1);
    setImmediate(() => this.#accept());
  }

  #accept() {
    try {
      for (let stream; this.#native && (stream = native.accept(this.#native));)
        this.emit('connection', new Stream(this.#context, stream));
    } catch (problem) {
      if (this.#native) this.emit('error', problem);
    }
  }

  async *[Symbol.asyncIterator]() {
    const waiting = [];
    let wake = () => {};
    this.on('connection', (stream) => { waiting.push(stream); wake(); });
    this.once('close', () => wake());
    for (;;) {
      while (waiting.length > 0) yield waiting.shift();
      if (!this.#native) return;
      await new Promise((resolve) => { wake = resolve; });
    }
  }

  close() {
    if (!this.#native) return;
    native.release(this.#native);
    this.#native = null;
    this.#context._forget(this.#tag);
    this.#context._hold(-1);
    this.emit('close');
  }
}

// Keys are strings or bytes, values are bytes (a string is its UTF-8); what is read is a Buffer, or undefined where a key is absent.
// Each call takes { timeout: milliseconds, signal: AbortSignal }.
class Store {
  #context; #native;

  constructor(context, handle) {
    this.#context = context;
    this.#native = handle;
  }

  // Operations as one transaction: [{ kind: muster.OP.SET, key, value, condition, expected, version, number }, ...]. Gives the
  // entries, a list with `revision`, each with `present`, `failed` (its condition does not hold; then nothing was changed), `more`, `version`, `number`,
  // `key` and `value`.
  async request(ops, { timeout, signal } = {}) {
    const store = this.#native;
    if (!store) throw failure(-1, 'MUSTER_E_CLOSED', 'the store is closed');
    const entries = await this.#context._begin(
      (tag) => native.request(store, this.#context._native, ops, nanoseconds(timeout), tag), (list) => list, signal,
      (id) => native.cancel(store, id));
    const result = entries.map(({ flags, ...entry }) => ({
      ...entry, present: (flags & PRESENT) !== 0, failed: (flags & FAILED) !== 0, more: (flags & MORE) !== 0 }));
    return Object.assign(result, { revision: entries.revision });
  }

  async #one(op, options) { return (await this.request([op], options))[0]; }

  async set(key, value, options) { return (await this.#one({ kind: OP.SET, key, value }, options)).version; }

  // Of a key that may be absent.
  async get(key, options) {
    const entry = await this.#one({ kind: OP.READ, key }, options);
    return entry.present ? entry.value : undefined;
  }

  // Waits until the key is present.
  async wait(key, options) { return (await this.#one({ kind: OP.GET, key }, options)).value; }

  async has(key, options) { return (await this.#one({ kind: OP.CHECK, key }, options)).present; }

  // The sum.
  async add(key, summand = 1, options) { return (await this.#one({ kind: OP.ADD, key, number: summand }, options)).number; }

  // The new length.
  async append(key, value, options) { return (await this.#one({ kind: OP.APPEND, key, value }, options)).number; }

  // Was it present?
  async delete(key, options) { return (await this.#one({ kind: OP.DELETE, key }, options)).present; }

  // Sets the key if it has the expected value (undefined: if it is absent). Was it set?
  async compareSet(key, expected, value, options) {
    const condition = expected === undefined ? { condition: IF_ABSENT } : { condition: IF_VALUE, expected };
    return !(await this.#one({ kind: OP.SET, key, value, ...condition }, options)).failed;
  }

  async count(prefix = '', options) { return (await this.#one({ kind: OP.COUNT, key: prefix }, options)).number; }

  // All keys with a prefix, in the order of their bytes: `for await (const [key, value] of store.list('a/'))`.
  async *list(prefix = '', options) {
    for (let after, more = true; more;) {
      const entries = await this.request([{ kind: OP.LIST, key: prefix, value: after }], options);
      more = entries.length > 0 && entries[entries.length - 1].more;
      for (const { key, value } of entries) {
        if (key.length === 0) return; // no key has the prefix
        yield [key, value];
        after = key;
      }
    }
  }

  // Changes of keys with a prefix, from now on: { key, value }, value undefined: it was deleted.
  async *watch(prefix = '', options) {
    let { revision } = await this.request([{ kind: OP.COUNT, key: prefix }], options);
    for (;;) {
      const entries = await this.request([{ kind: OP.WATCH, key: prefix, version: revision }], options);
      revision = entries.revision;
      for (const { key, value, present } of entries) yield { key, value: present ? value : undefined };
    }
  }

  async push(queue, value, options) { return (await this.#one({ kind: OP.PUSH, key: queue, value }, options)).number; }

  // Waits until the queue has a value.
  async pop(queue, options) { return (await this.#one({ kind: OP.POP, key: queue }, options)).value; }

  // Until `count` members have called it, each with its rank.
  async barrier(name, count, rank, options) { await this.#one({ kind: OP.BARRIER, key: name, count, rank }, options); }

  // The part of the store whose keys begin so; keys in it are without the prefix.
  view(prefix) { return new Store(this.#context, native.view(this.#native, prefix)); }

  close() {
    if (this.#native) native.release(this.#native);
    this.#native = null;
  }
}

module.exports = { Context, Stream, Listener, Store, OP, IF_ABSENT, IF_PRESENT, IF_VALUE, IF_VERSION, version: native.version() };
