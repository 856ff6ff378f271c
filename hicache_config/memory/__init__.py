"""What this machine leaves to the ranks on it: memory, cgroup limits, huge pages, pinning limits.

Facts are read from /proc and /sys and returned as values; a fact that can't be read is None with the reason beside
it. Must not import anything of the project but core; psutil is imported where it is used.
"""

from .cgroup import CgroupError, Headroom, headroom
from .host import HostFacts, examine_host
from .pages import HugePages, huge_pages

__all__ = ["CgroupError", "Headroom", "HostFacts", "HugePages", "examine_host", "headroom", "huge_pages"]
