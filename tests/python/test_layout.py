# SPDX-License-Identifier: MIT
"""The generated part: sizes and offsets as in C, every function in the library, and its constants."""
import ctypes
import unittest

from helpers import muster
from muster import _core, _surface


class Layout(unittest.TestCase):
    def test_structures(self):
        self.assertGreater(len(_surface.LAYOUT), 50)
        for name, (size, fields) in _surface.LAYOUT.items():
            structure = getattr(_surface, name)
            self.assertEqual(ctypes.sizeof(structure), size, name)
            self.assertEqual({field: getattr(structure, field).offset for field in fields}, fields, name)

    def test_functions(self):
        for name in _surface.FUNCTIONS:
            self.assertTrue(hasattr(_core.lib, name), name)

    def test_errors(self):
        for status in range(-28, 0):
            problem = _core.error_of(status)
            self.assertTrue(problem.name.startswith("MUSTER_E_") and str(problem), status)
        self.assertIsInstance(_core.error_of(_surface.MUSTER_TIMEOUT), TimeoutError)

    def test_every_call_is_described(self):
        for name in muster.__all__:
            self.assertTrue(getattr(muster, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
