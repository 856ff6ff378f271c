"""The typed server arguments, their JSON Schema, and what each SGLang release knows of them.

May import core, nothing above.
"""

from __future__ import annotations

from .given import Given, Place
from .server_args import CapacityChoice, ServerArgs

__all__ = ["CapacityChoice", "Given", "Place", "ServerArgs"]
