# SPDX-License-Identifier: MIT
"""A dealer for a ZeroMQ program: it exchanges messages with the sockets of Muster (muster/socket.h) through a broker,
without libmuster. It is written from docs/wire.md alone, with pyzmq for the connection and PyNaCl for the handshake.

    dealer = Dealer("tcp://head:8100", "router7", "", secret=b"...", address=5)
    dealer.send(Message(type=300, destination=1000, frames=[b"hello"]))
    answer = dealer.receive(timeout=10)

One thread uses a dealer. It ends with its peer: receive() and send() raise ConnectionError. A program that is silent is
not taken for dead: the handshake says that this process has no thread of its own for that."""
import dataclasses
import hashlib
import os
import struct
import time

import nacl.bindings as sodium
import zmq
from zmq.utils import z85

HELLO, READY, REFUSED, FIND, ANSWER, DATA, CREDIT, LOST = 1, 4, 5, 9, 10, 12, 13, 15
FRAME_DATA, FRAME_HEARTBEAT, FRAME_CREDIT, FRAME_FINISH, FRAME_ABORT, FRAME_GOODBYE = 1, 2, 3, 4, 5, 6
FRAME_OPEN, FRAME_ACCEPT, FRAME_REFUSE, FRAME_CLOSED, FRAME_PAIR_OFFER, FRAME_PAIR_ANSWER = 7, 8, 9, 10, 11, 12
WINDOW = 1 << 20
STREAM = 1
UNSUPPORTED = -9  # MUSTER_E_UNSUPPORTED


@dataclasses.dataclass
class Message:
    type: int = 256
    source: int = 0
    destination: int = 0
    target: int = 0
    target_version: int = 0
    hops: int = 0
    frames: list = dataclasses.field(default_factory=list)

    def encode(self):
        head = struct.pack("<IBBHIQQQqIQ", 0x4D54534D, 1, 2, len(self.frames), self.type, self.source, self.destination,
                           self.target, self.target_version, self.hops, sum(map(len, self.frames)))
        return head + b"".join(struct.pack("<Q", len(frame)) for frame in self.frames) + b"".join(self.frames)


def decode(data):
    """The first message in `data` and its length, or None if it is not complete."""
    if len(data) < 56:
        return None
    magic, version, flags, count, *fields, payload = struct.unpack_from("<IBBHIQQQqIQ", data)
    if magic != 0x4D54534D or version != 1 or flags & ~3:
        raise ConnectionError("no message begins here")
    at, wide = 56 + (28 if flags & 1 else 0), 8 if flags & 2 else 4
    end = at + count * wide + payload
    if len(data) < end:
        return None
    sizes = struct.unpack_from("<%d%s" % (count, "Q" if flags & 2 else "I"), data, at)
    if sum(sizes) != payload:
        raise ConnectionError("frames with other sizes than the message")
    at += count * wide
    frames = []
    for size in sizes:
        frames.append(bytes(data[at:at + size]))
        at += size
    return Message(*fields, frames), end


def hashed(key, *parts):
    """H(key; parts) of the page: every part is preceded by its length."""
    state = hashlib.blake2b(key=key, digest_size=32)
    for part in parts:
        state.update(struct.pack("<Q", len(part)) + part)
    return state.digest()


class Dealer:
    def __init__(self, broker, name, service, secret, address, timeout=20):
        """Connects to the socket that is bound at zmq://name@broker/service; `broker` is a tcp address of ZeroMQ."""
        self.address, self._secret = address, secret
        self._deadline = time.monotonic() + timeout
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.curve_serverkey = zmq.curve_public(self._curve_key("broker"))
        own_key = self._curve_key("member")
        self._socket.curve_secretkey, self._socket.curve_publickey = own_key, zmq.curve_public(own_key)
        self._socket.connect(broker)
        self._number = self._peer = self._in_flight = 0  # bytes of cost that the peer has not granted again
        self._window = self._found = None
        self._bytes, self._is_open = bytearray(), False  # of the session; it has frames
        self._stream, self._taken = bytearray(), 0       # of the stream; bytes to be granted again
        self._credit = self._ended = None
        self._messages = []
        self._star(HELLO, payload=b"\0")
        self._run_until(lambda: self._window is not None)
        self._star(FIND, word=1, payload=name.encode())
        self._run_until(lambda: self._found is not None)
        if not self._found:
            raise ConnectionError("the broker does not know " + name)
        self._peer = self._found
        self._handshake()
        hello = struct.pack("<IBBQQ", 0x4B53534D, 1, 1, address, int.from_bytes(os.urandom(8), "little"))
        self._frame(FRAME_OPEN, struct.pack("<QH", WINDOW, len(service)) + service.encode() + hello)
        self._run_until(lambda: self._credit is not None)

    # ---- messages ----

    def send(self, message, timeout=20):
        self._deadline = time.monotonic() + timeout
        message.source = message.source or self.address
        data = memoryview(message.encode())
        while data:
            self._run_until(lambda: self._credit > 0)
            size = min(len(data), self._credit, 128 * 1024)
            self._credit -= size
            self._frame(FRAME_DATA, data[:size])
            data = data[size:]

    def receive(self, timeout=20):
        self._deadline = time.monotonic() + timeout
        self._run_until(lambda: self._messages)
        return self._messages.pop(0)

    def close(self):
        """What was sent is still delivered."""
        if self._ended is None:
            for kind in FRAME_FINISH, FRAME_CLOSED:
                self._frame(kind, b"")
            self._frame(FRAME_GOODBYE, b"", stream=0)
            self._socket.linger = 2000
        self._socket.close()

    # ---- the star: messages of one ZeroMQ frame ----

    def _curve_key(self, role):
        root = hashlib.blake2b(self._secret, key=b"muster plug-in key 1", digest_size=64).digest()
        return z85.encode(hashlib.blake2b(b"star curve %s 1" % role.encode(), key=root, digest_size=32).digest())

    def _star(self, kind, word=0, to=0, payload=b""):
        self._socket.send(struct.pack("<BBBBIQQ", 0xB7, 1, kind, 0, word, to, self._number) + bytes(payload))

    def _run_until(self, condition):
        while not condition():
            if self._ended is not None:
                raise ConnectionError(self._ended)
            left = self._deadline - time.monotonic()
            if left <= 0 or not self._socket.poll(left * 1000):
                raise TimeoutError("nothing arrived from the broker in time")
            self._star_message(self._socket.recv())

    def _star_message(self, message):
        mark, version, kind, zero, word, to, sender = struct.unpack_from("<BBBBIQQ", message)
        payload = message[24:]
        if (mark, version, zero) != (0xB7, 1, 0):
            self._ended = "the broker has sent something else"
        elif kind == READY:
            self._number, self._window = to, struct.unpack("<Q", payload)[0]
        elif kind == REFUSED:
            self._ended = "refused by the broker: " + payload.decode()
        elif kind == ANSWER:
            self._found = sender if struct.unpack_from("<i", payload)[0] == 0 else 0
        elif sender != self._peer:
            pass
        elif kind == CREDIT:
            self._in_flight -= word
        elif kind == LOST:
            self._ended = payload.decode() or "the peer is gone"
        elif kind == DATA:
            self._star(CREDIT, word=len(message) + 256, to=self._peer)
            if payload[1] & 8:
                self._ended = "the peer does not know this session"
            self._bytes += payload[8:]
            if self._is_open:
                self._take_frames()

    def _data(self, payload, flags=1):
        """Bytes of the session, within the window of the star."""
        cost = 24 + 8 + len(payload) + 256
        self._run_until(lambda: self._in_flight == 0 or self._in_flight + cost <= self._window)
        self._in_flight += cost
        self._star(DATA, to=self._peer, payload=struct.pack("<BBHI", 0xB5, flags, 1, 1) + bytes(payload))

    # ---- the session of two members: the handshake, then frames ----

    def _handshake(self):
        private = os.urandom(32)
        body = b"\x93Muster\n" + struct.pack("<HHI", 1, 1, 1) + os.urandom(32) + sodium.crypto_scalarmult_base(private)
        own_hello = struct.pack("<BBH", 1, 0, len(body)) + body
        self._data(own_hello, flags=1 | 4)
        peer_hello = self._handshake_message(1)
        shared = sodium.crypto_scalarmult(private, peer_hello[-32:])
        transcript = hashed(b"", b"muster hello 1", own_hello, peer_hello)
        root = hashed(hashed(b"", b"muster secret 1", self._secret), b"muster root 1", shared, transcript)
        proof = hashed(root, b"muster proof dialer", transcript)
        # 2: no thread of its own; 64: encrypted by CURVE. No flag of shared memory, and a host that equals no other.
        details = struct.pack("<IQq16sQQIHB32sB", 2 | 64, WINDOW, 1000000000, b"", 0, 0, 0, 0, 0, b"", 0)
        key = hashed(root, b"muster details dialer", transcript)
        body = proof + sodium.crypto_aead_chacha20poly1305_ietf_encrypt(details, proof, b"\0" * 12, key)
        self._data(struct.pack("<BBH", 2, 0, len(body)) + body)
        answer = self._handshake_message(2)
        if answer[4:36] != hashed(root, b"muster proof listener", transcript):
            raise ConnectionError("the peer has another secret")
        key = hashed(root, b"muster details listener", transcript)
        details = sodium.crypto_aead_chacha20poly1305_ietf_decrypt(answer[36:], answer[4:36], b"\0" * 12, key)
        if not struct.unpack_from("<I", details)[0] & 64:
            raise ConnectionError("the peer is connected without CURVE, so the session would be sealed")
        self._is_open = True

    def _handshake_message(self, wanted):
        size = lambda: 4 + struct.unpack_from("<H", self._bytes, 2)[0] if len(self._bytes) >= 4 else 4
        self._run_until(lambda: len(self._bytes) > 4 and len(self._bytes) >= size())
        message = bytes(self._bytes[:size()])
        del self._bytes[:size()]
        if message[0] != wanted:
            raise ConnectionError("refused by the peer, reason %d" % message[4])
        return message

    def _frame(self, kind, payload, stream=STREAM):
        self._data(struct.pack("<II", kind | stream << 8, len(payload)) + bytes(payload))

    def _take_frames(self):
        while len(self._bytes) >= 8:
            word, size = struct.unpack_from("<II", self._bytes)
            if len(self._bytes) < 8 + size:
                return
            body = bytes(self._bytes[8:8 + size])
            del self._bytes[:8 + size]
            self._take_frame(word & 0xFF, body)

    def _take_frame(self, kind, body):
        if kind == FRAME_ACCEPT:
            self._credit = struct.unpack_from("<Q", body)[0]
            magic, version, self.peer_kind, self.peer_address, self.peer_incarnation = struct.unpack("<IBBQQ", body[8:])
            if (magic, version) != (0x4B53534D, 1):
                self._ended = "the other side is no socket for messages"
        elif kind == FRAME_DATA:
            self._stream += body
            self._taken += len(body)
            while (found := decode(self._stream)) is not None:
                self._messages.append(found[0])
                del self._stream[:found[1]]
            if self._taken >= WINDOW // 4:
                granted, self._taken = self._taken, 0
                self._frame(FRAME_CREDIT, struct.pack("<Q", granted))
        elif kind == FRAME_CREDIT:
            self._credit += struct.unpack("<Q", body)[0]
        elif kind == FRAME_HEARTBEAT:
            self._frame(FRAME_HEARTBEAT, b"", stream=0)
        elif kind == FRAME_PAIR_OFFER:  # shared memory, which this program does not use
            self._frame(FRAME_PAIR_ANSWER, struct.pack("<i", UNSUPPORTED), stream=0)
        elif kind == FRAME_REFUSE:
            self._ended = "refused: " + body[4:].decode()
        elif kind == FRAME_ABORT:
            self._ended = "ended by the peer: " + body[8:].decode()
        elif kind in (FRAME_FINISH, FRAME_CLOSED, FRAME_GOODBYE):
            self._ended = self._ended or "the peer has finished"
