"""The environment of the real SGLang, for the test marked `live`."""

from ..engines.conftest import sglang_python

__all__ = ["sglang_python"]
