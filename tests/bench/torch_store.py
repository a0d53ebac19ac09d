#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch's TCPStore under the load of store.c: the same options and figures. The server and each client are processes."""

import argparse
import ctypes
import datetime
import multiprocessing
import os
import resource
import signal
import socket
import statistics
import time

import torch.distributed

context = multiprocessing.get_context("fork")


def store(port, server):
    return torch.distributed.TCPStore("127.0.0.1", port, None, server, timeout=datetime.timedelta(seconds=60),
                                      wait_for_workers=False)


def one_of(op, s, me):
    key = f"client/{me}"
    s.set(key, "v" * 64)
    s.add(f"sum/{me}", 1)
    return {"add": lambda: s.add(f"sum/{me}", 1), "get": lambda: s.get(key)}[op]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--over")
    parser.add_argument("--what", default="sync")
    parser.add_argument("--op", default="add")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--scale", type=int, default=100)
    options = parser.parse_args()
    options.idle = options.idle * min(options.scale, 100) // 100  # its server takes seconds for thousands
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ready, go, stop = context.Semaphore(0), context.Event(), context.Value(ctypes.c_bool, False, lock=False)
    done = context.Value(ctypes.c_long, 0)
    samples = context.Queue()

    def serve():
        kept = store(port, True)
        ready.release()
        signal.pause()
        del kept

    def idle():  # connections are all that its server knows of such clients
        kept = [socket.create_connection(("127.0.0.1", port)) for _ in range(options.idle)]
        ready.release()
        signal.pause()
        del kept

    def work(me):
        ask = one_of(options.op, store(port, False), me)
        for _ in range(50):
            ask()
        ready.release()
        go.wait()
        count, times = 0, []
        clock = time.perf_counter
        while count == 0 or not stop.value:
            begun = clock()
            ask()
            times.append(clock() - begun)
            count += 1
        with done.get_lock():
            done.value += count
        samples.put(times[-1024:])
        samples.close()
        samples.join_thread()

    def start(body, *arguments):
        process = context.Process(target=body, args=arguments, daemon=True)
        process.start()
        return process

    def end(status):  # a child left behind would keep the pipe that the figures are read from open
        for process in multiprocessing.active_children():
            process.kill()
            process.join()
        os._exit(status)

    start(serve)
    ready.acquire()
    if options.what == "connect":
        begun = time.perf_counter()
        kept = [store(port, False) for _ in range(options.clients)]
        print(f"ms\t{(time.perf_counter() - begun) * 1e3:.1f}", flush=True)
        end(len(kept) == 0)
    if options.idle:
        start(idle)
        ready.acquire()
    workers = [start(work, me) for me in range(options.clients)]
    for _ in workers:
        ready.acquire()
    begun = time.perf_counter()
    go.set()
    time.sleep(options.scale / 100)
    stop.value = True
    seconds = time.perf_counter() - begun
    times = sorted(sum((samples.get() for _ in workers), []))
    for worker in workers:
        worker.join()
    print(f"rate\t{done.value / seconds:.0f}\np50_us\t{statistics.median(times) * 1e6:.2f}\n"
          f"p99_us\t{times[int(len(times) * 0.99)] * 1e6:.2f}", flush=True)
    end(0)


main()
