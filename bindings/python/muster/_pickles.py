# SPDX-License-Identifier: MIT
"""Objects over a stream: pickles whose large blocks of memory (arrays of NumPy) are sent from where they are."""
import pickle
import struct

from . import _surface as c
from ._core import PeerGone

_HEAD = struct.Struct("<IQ")  # number of blocks besides the pickle, its size; then the sizes of the blocks, then all bytes
MAX_BLOCKS = 65536


def send(stream, value):
    """Sends one object. What cannot be pickled raises before anything is sent."""
    blocks = []
    body = pickle.dumps(value, protocol=5, buffer_callback=blocks.append)
    views = [block.raw() for block in blocks]
    if len(views) > MAX_BLOCKS:
        body, views = pickle.dumps(value, protocol=5), []
    sizes = b"".join(struct.pack("<Q", view.nbytes) for view in views)
    stream.write(_HEAD.pack(len(views), len(body)) + sizes + body)
    for view in views:
        if view.nbytes:
            stream.write(view)


def receive(stream, load=pickle.loads):
    """The next object; EOFError at the end of the stream."""
    head = stream.readexactly(_HEAD.size)
    count, size = _HEAD.unpack(head)
    if count > MAX_BLOCKS:
        raise PeerGone(c.MUSTER_E_PROTOCOL, f"an object with {count} blocks")
    sizes = struct.unpack(f"<{count}Q", stream.readexactly(8 * count)) if count else ()
    body = stream.readexactly(size)
    blocks = []
    for one in sizes:
        place = bytearray(one)
        view, done = memoryview(place), 0
        while done < one:
            moved = stream.readinto(view[done:])
            if moved == 0:
                raise EOFError("the stream ended in the middle of an object")
            done += moved
        blocks.append(place)
    return load(body, buffers=blocks)
