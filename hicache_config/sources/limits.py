"""Memory limits as they are written: Docker's `64g`, Kubernetes' `64Gi`, Slurm's and systemd's `64G`.

Docker, Compose, Slurm and systemd count in powers of 1024 whatever the letter; in Kubernetes G is 10**9 bytes and Gi is
2**30. Zero stands for no limit.
Must not import anything above this floor.
"""

from __future__ import annotations

import re
from fractions import Fraction

_DOCKER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>[bkmgtp]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_KUBERNETES = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>[EPTGMk]|[EPTGMK]i|m|[eE][-+]?[0-9]{1,2})?", re.ASCII
)
_SYSTEMD = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>[BKMGTPE]?)", re.ASCII)
_SLURM = re.compile(r"(?P<number>[0-9]+)(?P<unit>[KMGT]?)B?", re.ASCII | re.IGNORECASE)
_POWERS = "bkmgtpe"
_LONGEST = 40


class LimitError(ValueError):
    """The text is no memory limit; the message says what would be one."""


def docker_bytes(text: str) -> int:
    """Bytes of `512g`, `1.5t`, `64gb`, `1073741824` as docker run and Compose read them. Raises LimitError."""
    match = _DOCKER.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        raise LimitError("a number with b, k, m, g or t is expected, such as 512g (512 GiB)")
    return int(Fraction(match["number"]) * 1024 ** _POWERS.index((match["unit"] or "b").lower()))


def kubernetes_bytes(text: str) -> int:
    """Bytes of a Kubernetes quantity: `64Gi` (2**30), `64G` (10**9), `1e9`, `128974848`. Raises LimitError."""
    match = _KUBERNETES.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        raise LimitError("a Kubernetes quantity is expected, such as 512Gi (2**30 bytes) or 512G (10**9 bytes)")
    number, unit = Fraction(match["number"].rstrip(".")), match["unit"] or ""
    if unit == "m":
        return int(number / 1000)
    if unit[:1] in "eE" and unit[1:]:
        return int(number * Fraction(10) ** int(unit[1:]))
    if unit.endswith("i"):
        return int(number * 1024 ** _POWERS.index(unit[0].lower()))
    return int(number * 1000 ** _POWERS.index(unit.lower() or "b"))


def systemd_bytes(text: str) -> int:
    """Bytes of `500G`, `1.5T`, `1073741824`, `infinity` as MemoryMax= and MemoryHigh= have them. Raises LimitError."""
    if text.strip() == "infinity":
        return 0
    match = _SYSTEMD.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if text.strip().endswith("%"):
        raise LimitError("how much memory the machine has is not known here; an amount is, such as 512G (512 GiB)")
    if match is None:
        raise LimitError("a number with K, M, G or T is expected, such as 512G (512 GiB), or infinity")
    return int(Fraction(match["number"]) * 1024 ** _POWERS.index((match["unit"] or "b").lower()))


def slurm_bytes(text: str) -> int:
    """Bytes of `500G` or `500000` (MiB) as --mem of sbatch and srun has them. Raises LimitError."""
    match = _SLURM.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        raise LimitError("a number with K, M, G or T is expected, such as 512G (512 GiB)")
    return int(Fraction(match["number"]) * 1024 ** _POWERS.index((match["unit"] or "m").lower()))
