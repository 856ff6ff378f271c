"""Findings that no example can show, and why: several ranks or a running engine make them, or what is not said."""

from __future__ import annotations

from collections.abc import Mapping

_RANKS = "It takes several ranks that meet in the agreement on host pools"
_ENGINE = "It takes SGLang with the plugin, at the moment when it builds its pools"

WITHOUT_EXAMPLES: Mapping[str, str] = {
    "HC111": "Examples name a release; without --sglang a /server_info with another `version` leads there.",
    "HC405": f"{_RANKS}: one of them started with another argument or another SGLang.",
    "HC406": f"{_RANKS}: one of them fails before it has made its offer.",
    "HC407": f"{_RANKS}: one of them with another version of hicache-config installed.",
    "HC408": f"{_RANKS}: one of them sends numbers that can't be, such as a stage beyond the last.",
    "HC409": f"{_RANKS}: two of one stage whose device pools came out of different sizes.",
    "HC411": f"{_RANKS}: one of them has died, or comes after the others have stopped waiting.",
    "HC453": f"{_ENGINE}: device pools of a class that is not planned, such as those of a KV cache sharded over ranks.",
    "HC454": f"{_ENGINE}: what `validate` says of the same model before the start is HC420.",
    "HC455": f"{_ENGINE}: host buffers that came out of another size than the plan said.",
    "HC456": f"{_ENGINE}: device slots of pools that no float ratio scales to the planned pages.",
}
