"""docs/sources.md names every format and every name that is read in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from hicache_config.cli.options import FORMATS as OFFERED
from hicache_config.sources import FORMATS
from hicache_config.sources.files import _READ_IN_FOLDERS
from hicache_config.sources.formats import READERS, reader

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text("utf-8")


def test_every_format_is_on_the_page_and_on_the_command_line() -> None:
    rows = [row for row in PAGE.split("## Other files")[0].splitlines() if row.startswith("| `")]
    assert sorted(re.findall(r"`([a-z-]+)`", "".join(row.split("|")[1] for row in rows))) == sorted(FORMATS)
    assert sorted(OFFERED) == sorted(FORMATS) == sorted(READERS)


def test_every_format_has_a_reader() -> None:
    for form in FORMATS:
        assert callable(reader(form).read)


def test_names_that_are_read_in_a_folder_are_on_the_page() -> None:
    paragraph = PAGE[PAGE.index("Of a folder,") :].split("\n\n")[0]
    assert set(re.findall(r"`\*(\.\w+)`", paragraph)) == set(_READ_IN_FOLDERS)
