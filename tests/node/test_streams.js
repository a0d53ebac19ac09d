// SPDX-License-Identifier: MIT
// Streams as Duplex streams of Node: bytes, both ends of a stream, failures, and what keeps a process alive.
'use strict';

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { pipeline } = require('node:stream/promises');
const { test, after } = require('node:test');
const { createHash } = require('node:crypto');
const { Readable } = require('node:stream');

const binding = path.join(__dirname, '..', '..', 'bindings', 'node');
const muster = require(binding);

const secret = 'a secret of the test';
const contexts = [];
function make(options = { secret }) {
  const context = new muster.Context(options);
  contexts.push(context);
  return context;
}
after(() => Promise.all(contexts.map((one) => one.close())));

const bytes_of = async (stream) => { const all = []; for await (const one of stream) all.push(one); return Buffer.concat(all); };

test('a stream carries bytes both ways, and each side ends its own', async () => {
  for (const at of ['tcp://127.0.0.1:0', 'tcp://127.0.0.1:0?upgrade=no&seal=yes', `shm://node-${process.pid}`]) {
    const listener = make().listen(at);
    listener.on('connection', (stream) => stream.pipe(stream)); // echo
    const stream = await make().dial(listener.address);
    assert.match(stream.peer, /:\/\//);
    stream.write('hello ');
    stream.end(Buffer.from('there'));
    assert.strictEqual((await bytes_of(stream)).toString(), 'hello there');
    listener.close();
  }
});

test('64 MiB arrive unchanged, with back-pressure on both sides', async () => {
  const size = 64 << 20, piece = Buffer.alloc(1 << 20, (i) => i);
  const listener = make().listen('tcp://127.0.0.1:0?upgrade=no');
  const sums = new Promise((resolve) => listener.on('connection', async (stream) => {
    const sum = createHash('sha256');
    let got = 0;
    for await (const chunk of stream) { // slower than the writer
      if (got % (8 << 20) < chunk.length) await new Promise((next) => setImmediate(next));
      got += chunk.length;
      sum.update(chunk);
    }
    resolve([got, sum.digest('hex')]);
  }));
  const stream = await make().dial(listener.address);
  const expected = createHash('sha256');
  await pipeline(Readable.from((function* () {
    for (let i = 0; i < size / piece.length; i++) { const one = Buffer.from(piece); one[0] = i; expected.update(one); yield one; }
  })()), stream);
  assert.deepStrictEqual(await sums, [size, expected.digest('hex')]);
  listener.close();
});

test('a reader that is slow after end() and destroy() gets all bytes', async () => {
  // Longer than the two seconds after which a closed stream once dropped what was not read.
  for (const [end, size] of [['end', 3 << 20], ['destroy', 512 << 10]]) {
    const listener = make().listen('tcp://127.0.0.1:0?upgrade=no');
    const arrived = once(listener, 'connection');
    const stream = await make().dial(listener.address);
    const [other] = await arrived;
    other.on('error', () => {}); // a loss would be one; then the size is wrong, too
    const written = new Promise((resolve) => stream.write(Buffer.alloc(size, 7), resolve));
    if (end === 'end') stream.end(); // what waits in Node goes out, too
    else await written.then(() => stream.destroy()); // the library has all of it
    await new Promise((next) => setTimeout(next, 3000));
    const all = await bytes_of(other);
    assert.strictEqual(all.length, size);
    assert.ok(all.every((byte) => byte === 7));
    listener.close();
  }
});

test('failures have a code and a sentence', async () => {
  const context = make();
  await assert.rejects(context.dial('nothing://x'), { code: 'MUSTER_E_NOT_FOUND' });
  await assert.rejects(context.dial('tcp://127.0.0.1:1', { timeout: 3000 }), (problem) => problem.message.includes('127.0.0.1:1'));
  assert.throws(() => context.listen('tcp://'), { code: 'MUSTER_E_ADDRESS' });
  assert.throws(() => new muster.Context({ secret: 'short' }), { code: 'MUSTER_E_ARG' });
  assert.throws(() => new muster.Context({ secret: 7 }), TypeError);
  await assert.rejects(context.dial('tcp://127.0.0.1:1', { timeout: -1 }), RangeError);
  const listener = context.listen('tcp://127.0.0.1:0');
  await assert.rejects(make({ secret: 'another secret here' }).dial(listener.address, { timeout: 5000 }), /secret/);
  listener.close();
});

test('an abort, and the death of the other side', async () => {
  const [here, there] = make().pair();
  there.on('error', () => {});
  here.abort(7, 'enough');
  const [problem] = await once(there, 'error');
  assert.strictEqual(problem.code, 'MUSTER_E_ABORTED');
  assert.match(problem.message, /enough/);

  const listener = make().listen('tcp://127.0.0.1:0');
  const child = spawn(process.execPath, ['-e', `
    const muster = require(${JSON.stringify(binding)});
    new muster.Context({ secret: '${secret}' }).dial('${listener.address}').then((stream) => stream.write('x'));
  `], { stdio: 'inherit' });
  const [stream] = await once(listener, 'connection');
  await once(stream, 'data');
  child.kill('SIGKILL');
  const [end] = await once(stream, 'error');
  assert.strictEqual(end.code, 'MUSTER_E_PEER');
  listener.close();
});

test('a listener is an async iterator, and ends it when it is closed', async () => {
  const listener = make().listen('tcp://127.0.0.1:0'), context = make();
  const dialled = Promise.all([1, 2, 3].map(() => context.dial(listener.address)));
  let seen = 0;
  for await (const stream of listener) {
    stream.end();
    if (++seen === 3) listener.close();
  }
  assert.strictEqual(seen, 3);
  for (const stream of await dialled) { stream.end(); await bytes_of(stream); }
});

test('a closed context ends its streams and operations, and calls on it fail', async () => {
  const context = make(), other = make();
  const listener = other.listen('tcp://127.0.0.1:0');
  const accepted = once(listener, 'connection');
  const stream = await context.dial(listener.address), [far] = await accepted;
  stream.write('the last words');
  const received = bytes_of(far);
  await context.close();
  assert.ok(stream.destroyed);
  assert.strictEqual((await received).toString(), 'the last words');
  assert.throws(() => context.listen('tcp://127.0.0.1:0'), { code: 'MUSTER_E_CLOSED' });
  await assert.rejects(context.dial(listener.address), { code: 'MUSTER_E_CLOSED' });
  far.destroy();
  listener.close();
});

// A program: it ends by itself when nothing is open, and not before.
async function program(code) {
  const child = spawn(process.execPath, ['-e', `const muster = require(${JSON.stringify(binding)});
    const context = new muster.Context({ secret: '${secret}' }); ${code}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), 20000);
  const [output, [status]] = await Promise.all([bytes_of(child.stdout), once(child, 'exit')]);
  clearTimeout(timer);
  assert.strictEqual(status, 0);
  return output.toString();
}

test('what is open keeps a process alive, unless it is unref()ed', async () => {
  assert.strictEqual(await program('console.log("idle")'), 'idle\n');
  assert.strictEqual(await program(`
    const listener = context.listen('tcp://127.0.0.1:0');
    listener.on('connection', (stream) => { stream.resume().end('bye'); listener.close(); });
    context.dial(listener.address).then((stream) => { stream.end(); stream.on('data', (data) => console.log(String(data))); });`), 'bye\n');
  assert.strictEqual(await program('context.listen("tcp://127.0.0.1:0"); context.unref(); console.log("done")'), 'done\n');
  assert.strictEqual(await program(`
    const { Worker } = require('node:worker_threads');
    new Worker(${JSON.stringify(`const muster = require(${JSON.stringify(binding)});
      const context = new muster.Context({ secret: 'a secret of the test' });
      const [a, b] = context.pair(); a.end('from a worker');
      b.on('data', (data) => { console.log(String(data)); process.exit(0); });`)}, { eval: true });`), 'from a worker\n');
});
