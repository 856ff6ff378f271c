"""Numbers that a storage backend reads with Python's own int() and float()."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.rules.backends.fields import number, whole


@pytest.mark.parametrize(("value", "read"), [("5.5", 5.5), ("x", "x"), (3, 3), (None, None)])
def test_a_number_or_its_text(value: Any, read: Any) -> None:
    assert number(value) == read


@pytest.mark.parametrize(("value", "read"), [(" 7 ", 7), ("7.5", "7.5"), (7, 7)])
def test_a_whole_number_or_its_text(value: Any, read: Any) -> None:
    assert whole(value) == read
