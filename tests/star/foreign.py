# SPDX-License-Identifier: MIT
"""foreign.py <broker>: a ZeroMQ program without libmuster exchanges messages with a router of Muster through a broker."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "zmq"))
from muster_dealer import Dealer, Message  # noqa: E402

broker = "tcp://" + sys.argv[1]
secret = os.environ["MUSTER_SECRET"].encode()


def exchange(dealer, message):
    dealer.send(message)
    answer = dealer.receive()
    assert (answer.source, answer.destination) == (1000, dealer.address), answer
    assert (answer.type, answer.target, answer.target_version) == (message.type, message.target,
                                                                   message.target_version), answer
    assert answer.frames == message.frames


first = Dealer(broker, "router", "messages", secret, address=5)
assert (first.peer_kind, first.peer_address) == (2, 1000)
exchange(first, Message(destination=1000, frames=[b"hello"]))
exchange(first, Message(destination=1000, type=300, target=7, target_version=-3))
exchange(first, Message(destination=1000, frames=[b"", b"x" * 70000, b"end"]))
# larger than every window on the way
exchange(first, Message(destination=1000, frames=[os.urandom(5 << 20), os.urandom(3 << 20)]))
second = Dealer(broker, "router", "messages", secret, address=6)
for number in range(500):  # many at once, and both dealers
    for dealer in first, second:
        dealer.send(Message(destination=1000, type=301, target=number, frames=[b"%d" % number]))
for number in range(500):
    for dealer in first, second:
        answer = dealer.receive()
        assert (answer.target, answer.frames) == (number, [b"%d" % number])
second.close()
again = Dealer(broker, "router", "messages", secret, address=6)  # the same address, another incarnation
exchange(again, Message(destination=1000, frames=[b"again"]))

for wrong, why in ((("nobody", "messages", secret), "does not know"), (("router", "other", secret), "refused")):
    try:
        Dealer(broker, *wrong, address=8)
    except ConnectionError as error:
        assert why in str(error), error
    else:
        raise AssertionError("connected to " + wrong[0])
try:
    Dealer(broker, "router", "messages", b"another secret", address=9, timeout=1)
except TimeoutError:
    pass  # CURVE does not answer a process without the secret
else:
    raise AssertionError("connected with another secret")
# bytes that are no message end this connection only
bad = Dealer(broker, "router", "messages", secret, address=10)
bad._frame(1, b"z" * 100)
try:
    bad.receive()
except ConnectionError as error:
    assert "no message begins here" in str(error), error
else:
    raise AssertionError("the router has accepted bytes that are no message")
exchange(again, Message(destination=1000, type=999))
try:
    first.receive()
except ConnectionError:
    pass
else:
    raise AssertionError("the end of the router was not noticed")
print("ok")
