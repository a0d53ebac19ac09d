// SPDX-License-Identifier: MIT
/// <reference types="node" />
import { Duplex } from 'node:stream';
import { EventEmitter } from 'node:events';

/** A text is given as UTF-8. */
export type Bytes = string | Uint8Array;

/** An error of Muster: `code` is the name of its status, MUSTER_TIMEOUT or MUSTER_E_PEER say. */
export interface MusterError extends Error {
  code: string;
  status: number;
}

/** Milliseconds; without a timeout a call waits until it is answered. */
export interface CallOptions {
  timeout?: number;
  signal?: AbortSignal;
}

/** What has a secret: the streams, listeners and stores of a job. The functions of the module use one of the process. */
export class Context {
  /** secret: of the job, 16 bytes at least; without it MUSTER_SECRET_FILE, MUSTER_SECRET, or a random one. */
  constructor(options?: { secret?: Bytes });
  dial(address: string, options?: { timeout?: number }): Promise<Stream>;
  listen(address: string): Listener;
  pair(): [Stream, Stream];
  openStore(url: string, options?: { timeout?: number }): Promise<Store>;
  /** What is open and in progress does not keep the process alive; ref(): it does again. */
  unref(): this;
  ref(): this;
  close(options?: { timeout?: number }): Promise<void>;
}

/** Events beside those of Duplex: 'silent' and 'back', when nothing was received for some seconds, and when it is again. */
export class Stream extends Duplex {
  readonly peer: string | undefined;
  /** The other side's read fails with MUSTER_E_ABORTED and the text. */
  abort(reason?: number | bigint, text?: string): void;
}

/** Events: 'connection' (stream: Stream), 'error' (problem: MusterError), 'close'. */
export class Listener extends EventEmitter implements AsyncIterable<Stream> {
  readonly address: string;
  [Symbol.asyncIterator](): AsyncIterator<Stream>;
  close(): void;
}

/** One operation of Store.request(): a kind of OP, and the fields that it needs, as muster_store_op of C. */
export interface Operation {
  kind: number;
  key?: Bytes;
  value?: Bytes;
  condition?: number;
  expected?: Bytes;
  version?: number | bigint;
  number?: number | bigint;
  count?: number;
  rank?: number;
}

/** What an operation has found. */
export interface Entry {
  present: boolean;
  /** Its condition does not hold; then no operation of the request has changed anything. */
  failed: boolean;
  more: boolean;
  version: number | bigint;
  number: number | bigint;
  key: Buffer;
  value: Buffer;
}

/** Keys and values that the processes of a job share. Without a timeout a call waits until it is answered; a signal withdraws it. */
export class Store {
  request(ops: Operation[], options?: CallOptions): Promise<Entry[] & { revision: number | bigint }>;
  set(key: Bytes, value: Bytes, options?: CallOptions): Promise<number | bigint>;
  get(key: Bytes, options?: CallOptions): Promise<Buffer | undefined>;
  wait(key: Bytes, options?: CallOptions): Promise<Buffer>;
  has(key: Bytes, options?: CallOptions): Promise<boolean>;
  add(key: Bytes, summand?: number | bigint, options?: CallOptions): Promise<number | bigint>;
  append(key: Bytes, value: Bytes, options?: CallOptions): Promise<number | bigint>;
  delete(key: Bytes, options?: CallOptions): Promise<boolean>;
  compareSet(key: Bytes, expected: Bytes | undefined, value: Bytes, options?: CallOptions): Promise<boolean>;
  count(prefix?: Bytes, options?: CallOptions): Promise<number | bigint>;
  list(prefix?: Bytes, options?: CallOptions): AsyncGenerator<[Buffer, Buffer]>;
  watch(prefix?: Bytes, options?: CallOptions): AsyncGenerator<{ key: Buffer; value: Buffer | undefined }>;
  push(queue: Bytes, value: Bytes, options?: CallOptions): Promise<number | bigint>;
  pop(queue: Bytes, options?: CallOptions): Promise<Buffer>;
  barrier(name: Bytes, count: number, rank: number, options?: CallOptions): Promise<void>;
  view(prefix: Bytes): Store;
  close(): void;
}

/** Kinds of operations. */
export const OP: Record<'GET' | 'READ' | 'SET' | 'ADD' | 'APPEND' | 'DELETE' | 'CHECK' | 'WAIT' | 'COUNT' | 'LIST' | 'KEYS' | 'PUSH' |
  'POP' | 'TRY_POP' | 'LENGTH' | 'WATCH' | 'BARRIER', number>;
/** Conditions of operations. */
export const IF_ABSENT: number, IF_PRESENT: number, IF_VALUE: number, IF_VERSION: number;
/** Version of the library. */
export const version: string;
