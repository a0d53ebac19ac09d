# SPDX-License-Identifier: MIT
"""`python3 -m muster.exporter --of tcp://host:29400` answers Prometheus with what the processes of a job publish: over HTTP
on the loopback interface, for requests that have a token."""
import argparse
import hmac
import http.server
import os
import secrets
import sys

from ._core import Error
from .metrics import published
from .store import Store


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version, timeout = "HTTP/1.1", 10
    server_version = "muster-exporter"

    def do_GET(self):  # pylint: disable=invalid-name
        """/metrics, with the header `Authorization: Bearer TOKEN`."""
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), b"Bearer " + self.server.token):
            return self._answer(401, "the token is missing or another one\n", {"WWW-Authenticate": "Bearer"})
        if self.path.partition("?")[0] != "/metrics":
            return self._answer(404, "metrics are at /metrics\n")
        try:
            return self._answer(200, published(self.server.store))
        except Error as problem:
            return self._answer(503, f"the store does not answer: {problem}\n")

    def _answer(self, status, text, headers=None):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        """One line for what was refused; Prometheus asks every few seconds."""
        if len(args) > 1 and str(args[1]) != "200":
            print("muster.exporter:", format % args, file=sys.stderr)


def serve(store: Store, address=("127.0.0.1", 9464), token: bytes = b"") -> http.server.ThreadingHTTPServer:
    """A server that answers with published(store) at /metrics; the caller calls its serve_forever()."""
    if not token:
        raise ValueError("an empty token: every user of this host could read the metrics")
    server = http.server.ThreadingHTTPServer(address, _Answers)
    server.daemon_threads, server.store, server.token = True, store, token
    return server


def _token_of(file):
    if file is None:
        token = secrets.token_urlsafe(24)
        print(f"token {token}", flush=True)
        return token.encode()
    with open(file, "rb") as opened:
        if os.fstat(opened.fileno()).st_mode & 0o077:
            sys.exit(f"muster.exporter: other users can read {file}: chmod 600 {file}")
        token = opened.read().strip()
    if not token:
        sys.exit(f"muster.exporter: {file} is empty")
    return token


def main():
    """The command."""
    parser = argparse.ArgumentParser(prog="python3 -m muster.exporter", description=(
        "Answers Prometheus with the metrics that the processes of a job publish in a store: GET /metrics with the header "
        "`Authorization: Bearer TOKEN`. Prints one line when it listens."))
    parser.add_argument("--of", required=True, metavar="STORE", help="the store, as tcp://host:29400")
    parser.add_argument("--listen", default="127.0.0.1:9464", metavar="HOST:PORT",
                        help="default 127.0.0.1:9464; port 0: any. Nothing is encrypted, so it is an address of loopback")
    parser.add_argument("--token-file", metavar="FILE", help="the token, not readable by others; without it a new one is printed")
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit():
        parser.error(f"--listen {options.listen}: it is host:port")
    try:
        store = Store(options.of, timeout=10)
        server = serve(store, (host.strip("[]"), int(port)), _token_of(options.token_file))
    except (Error, OSError) as problem:
        sys.exit(f"muster.exporter: {problem}")
    print(f"listening http://{options.listen.rpartition(':')[0]}:{server.server_address[1]}/metrics", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
