"""What a comparison of releases says of the arguments that were given: every kind of change, in words."""

from __future__ import annotations

import json

import pytest

from hicache_config.app.checking import validate
from hicache_config.app.options import Options
from hicache_config.sources import read


def notes(release: str, other: str, **arguments: object) -> list[str]:
    document = read("a.json", text=json.dumps({"enable_hierarchical_cache": True, **arguments}))
    (source,) = validate([document], Options(sglang=release, compare=other, select=("HC110",))).sources
    return [placed.finding.message for placed in source.findings]


@pytest.mark.parametrize(
    ("arguments", "there", "back"),
    [
        (
            {"hicache_mem_layout": "page_first"},
            "0.5.10 has another default of hicache_mem_layout: layer_first instead of page_first",
            "0.5.23 has another default of hicache_mem_layout: page_first instead of layer_first",
        ),
        (
            {"kv_cache_dtype": "auto"},
            "0.5.10 has other choices of kv_cache_dtype: with fp4_e2m1 and without mxfp8, nvfp4, fp4_mx_block16",
            "0.5.23 has other choices of kv_cache_dtype: with mxfp8, nvfp4, fp4_mx_block16 and without fp4_e2m1",
        ),
        (
            {"speculative_algorithm": "EAGLE"},
            "0.5.10 takes only these values of speculative_algorithm: EAGLE, EAGLE3, NEXTN, STANDALONE, NGRAM",
            "0.5.23 takes any value of speculative_algorithm",
        ),
        (
            {"enable_dp_attention": True},
            "0.5.10 does not call enable_dp_attention deprecated",
            "0.5.23 calls enable_dp_attention deprecated",
        ),
    ],
)
def test_a_change_of_an_argument_is_said_in_words(arguments: dict[str, object], there: str, back: str) -> None:
    assert there in notes("0.5.23", "0.5.10", **arguments)
    assert back in notes("0.5.10", "0.5.23", **arguments)
