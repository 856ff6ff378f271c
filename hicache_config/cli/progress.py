"""A progress bar on standard error, for many sources and a person at a terminal; nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Fewer sources are done before a bar could be read.
_MANY = 20


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int, int], None] | None]:
    """A function to be told how many are done, and of how many; None where no bar is shown."""
    if total < _MANY or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking", total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)
