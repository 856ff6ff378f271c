"""A shell script, also one for Slurm. Must not import anything above this floor."""

from __future__ import annotations

import re

from ..container import Surroundings, engines_of_script, limit_of
from ..document import in_order
from ..limits import slurm_bytes
from ..text import Lines, Traced
from .content import Content, Result

_BATCH_MEMORY = re.compile(r"^#SBATCH[ \t]+(?:[^\n#]*[ \t])?--mem[= \t]([^\s#]+)", re.MULTILINE)


def read(content: Content) -> Result:
    """The servers that a script starts."""
    script = Traced.of(content.text)
    around = batch_limit(script, content.lines)
    return "shell", in_order(engines_of_script(script, content.lines, content.release, around)), ()


def batch_limit(script: Traced, lines: Lines) -> Surroundings | None:
    """The memory of a node that `#SBATCH --mem=` asks for; the last one counts, as sbatch has it."""
    asked = list(_BATCH_MEMORY.finditer(script.text))
    if not asked:
        return None
    return limit_of(script.part(*asked[-1].span(1)), lines, slurm_bytes)
