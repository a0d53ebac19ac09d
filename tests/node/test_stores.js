// SPDX-License-Identifier: MIT
// Stores: every call, transactions, waits with timeouts and signals, and a server in another process.
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const { test, after } = require('node:test');

const muster = require(path.join(__dirname, '..', '..', 'bindings', 'node'));

const context = new muster.Context({ secret: 'a secret of the test' });
after(() => context.close());
const urls = ['memory:', ...(process.env.MUSTER_TEST_STORE ? [process.env.MUSTER_TEST_STORE] : [])];

for (const url of urls) {
  test(`${url.replace(/\d+$/, '...')}: keys, sums, conditions and lists`, async () => {
    const whole = await context.openStore(url), store = whole.view(`keys-${process.pid}/`);
    assert.strictEqual(await store.get('absent'), undefined);
    const version = await store.set('k', 'värde');
    assert.ok(version > 0);
    assert.strictEqual((await store.get('k')).toString(), 'värde');
    assert.strictEqual(await store.has('k'), true);
    assert.strictEqual(await store.add('n', 41), 41);
    assert.strictEqual(await store.add('n'), 42);
    assert.strictEqual(await store.add('big', 2n ** 60n), 2n ** 60n);
    assert.strictEqual(await store.append('k', Buffer.from([0, 255])), 8);
    assert.deepStrictEqual([...(await store.get('k'))].slice(-2), [0, 255]);
    assert.strictEqual(await store.compareSet('k2', undefined, 'new'), true);
    assert.strictEqual(await store.compareSet('k2', undefined, 'newer'), false);
    assert.strictEqual(await store.compareSet('k2', 'new', 'newer'), true);
    assert.strictEqual(await store.compareSet('k2', 'new', 'newest'), false);
    assert.strictEqual(await store.delete('k2'), true);
    assert.strictEqual(await store.delete('k2'), false);
    for (let i = 0; i < 30; i++) await store.set(`list/${String(i).padStart(2, '0')}`, String(i));
    const seen = [];
    for await (const [key, value] of store.list('list/')) seen.push(`${key}=${value}`);
    assert.strictEqual(seen.length, 30);
    assert.strictEqual(seen[7], 'list/07=7');
    for await (const one of store.list('nothing/')) assert.fail(`${one}`);
    assert.strictEqual(await store.count('list/'), 30);
    store.close();
    whole.close();
    await assert.rejects(store.get('k'), { code: 'MUSTER_E_CLOSED' });
  });

  test(`${url.replace(/\d+$/, '...')}: transactions change all or nothing`, async () => {
    const whole = await context.openStore(url), store = whole.view(`tx-${process.pid}/`);
    await store.set('a', '1');
    const wrong = await store.request([{ kind: muster.OP.SET, key: 'a', value: '2' },
      { kind: muster.OP.SET, key: 'b', value: '2', condition: muster.IF_PRESENT }]);
    assert.deepStrictEqual(wrong.map((one) => one.failed), [false, true]);
    assert.strictEqual((await store.get('a')).toString(), '1');
    const [first, second] = await store.request([{ kind: muster.OP.SET, key: 'a', value: '2' },
      { kind: muster.OP.SET, key: 'b', value: '2', condition: muster.IF_ABSENT }]);
    assert.ok(first.version > 0 && second.version === first.version);
    await assert.rejects(store.request([]), { code: 'MUSTER_E_ARG' });
    await assert.rejects(store.request([{ kind: 99, key: 'a' }]), { code: 'MUSTER_E_ARG' });
    await assert.rejects(store.set('a', 7), TypeError);
    await assert.rejects(store.add('a', 2n ** 64n), RangeError);
    await assert.rejects(store.set('x'.repeat(9000), ''), { code: 'MUSTER_E_LIMIT', message: /8192/ });
    whole.close();
  });

  test(`${url.replace(/\d+$/, '...')}: waits, queues, barriers and watches`, async () => {
    const whole = await context.openStore(url), store = whole.view(`wait-${process.pid}/`);
    const waiting = store.wait('later');
    await store.set('later', 'here');
    assert.strictEqual((await waiting).toString(), 'here');
    await assert.rejects(store.wait('never', { timeout: 30 }), { code: 'MUSTER_TIMEOUT', message: /never/ });
    const stop = new AbortController(), stopped = store.wait('never', { signal: stop.signal });
    stop.abort();
    await assert.rejects(stopped, { name: 'AbortError' });
    await assert.rejects(store.get('later', { signal: AbortSignal.abort() }), { name: 'AbortError' });
    const popped = store.pop('queue');
    assert.strictEqual(await store.push('queue', 'one') >= 0, true);
    assert.strictEqual((await popped).toString(), 'one');
    const members = [0, 1, 2].map((rank) => store.barrier('all', 3, rank));
    await Promise.all(members);
    await assert.rejects(store.barrier('all', 2, 0, { timeout: 30 }), /1/); // the rank that is missing
    const changes = store.watch('w/'), next = changes.next();
    // The watch begins with a request of its own, so a change may come before it: change until it is seen.
    let seen;
    next.then((one) => { seen = one.value; });
    for (let i = 0; !seen; i++) await store.set('w/k', String(i));
    assert.strictEqual(seen.key.toString(), 'w/k');
    await store.delete('w/k');
    for (let change = seen; change.value !== undefined;) change = (await changes.next()).value;
    whole.close();
  });
}

test('a hundred requests at once', async () => {
  const store = await context.openStore(urls[urls.length - 1]);
  const sums = await Promise.all(Array.from({ length: 100 }, () => store.add(`sum-${process.pid}`)));
  assert.deepStrictEqual(sums.sort((a, b) => a - b), Array.from({ length: 100 }, (_, i) => i + 1));
  store.close();
  await assert.rejects(context.openStore('tcp://127.0.0.1:1', { timeout: 500 }), { code: 'MUSTER_E_UNREACHABLE' });
});
