"""Pages for what readers find (sources/): nothing here is checked by the runner.

The examples are sources, not arguments: the name of a file (its ending names the format) and its text.
Must not import anything above this floor.
"""

from __future__ import annotations

from ..sources.notes import KINDS
from .registry import Rule, declare


def _page(code: str, why: str, bad: dict[str, str], good: dict[str, str]) -> None:
    name, severity = KINDS[code]
    declare(Rule(code, name, severity, why=why, bad=bad, good=good))


_SIZE = {"args.json": '{"enable_hierarchical_cache": true, "hicache_size": 100}'}
_LAUNCH = {"launch.sh": "sglang serve --model-path /models/m --enable-hierarchical-cache \\\n  --hicache-size 100\n"}

_page(
    "HC001",
    "The source can't be opened: it is not there, may not be read, is a link to nothing, or standard input is closed.",
    {"missing.json": ""},
    _SIZE,
)
_page(
    "HC002",
    "The text breaks the rules of its format, so nothing of it can be trusted. Every error that can be told is named.",
    {"args.json": '{"hicache_size": 100,}'},
    _SIZE,
)
_page(
    "HC003",
    "A key is written twice in one mapping. Readers keep the last value and say nothing, so the first one is lost.",
    {"args.json": '{"hicache_size": 100, "hicache_size": 200}'},
    _SIZE,
)
_page(
    "HC004",
    "NaN, infinity and numbers beyond every float are no amounts. The value is left out, and the rest is checked.",
    {"args.json": '{"hicache_ratio": NaN}'},
    {"args.json": '{"hicache_ratio": 2.0}'},
)
_page(
    "HC005",
    "A configuration is small. Files far beyond that, deep nesting and aliases that stand for endless values are "
    "refused, so that reading takes bounded time and memory.",
    {"args.json": "[" * 200 + "]" * 200},
    _SIZE,
)
_page(
    "HC006",
    "The bytes are no text: a binary file, or text in another encoding than UTF-8 (UTF-16 with a mark is read too).",
    {"args.json": "\0\1\2"},
    _SIZE,
)
_page(
    "HC007",
    "Nothing in the source starts an SGLang server or looks like its arguments: an empty file, the error page of a web "
    "server, a manifest of something else.",
    {"answer.json": '{"detail": "Not Found"}'},
    _SIZE,
)
_page(
    "HC008",
    "A variable has no value in the file, so the argument that it fills is not known and not checked. This "
    "process's own "
    "environment is never looked at.",
    {"launch.sh": 'sglang serve --model-path /models/m --hicache-size "$SIZE"\n'},
    {"launch.sh": 'sglang serve --model-path /models/m --hicache-size "${SIZE:-100}"\n'},
)
_page(
    "HC009",
    "What only running a script would tell (the output of a command, arithmetic, a loop, a value that depends "
    "on an if) "
    "is not followed. The rest is checked.",
    {"launch.sh": "sglang serve --model-path /models/m --hicache-size $((RAM / 8))\n"},
    _LAUNCH,
)
_page(
    "HC011",
    "A command that goes on in the next line needs a backslash as the very last character. With a blank behind it, a "
    "comment or an empty line in between, the server starts without the flags that follow.",
    {"launch.sh": "sglang serve --model-path /models/m --enable-hierarchical-cache\n  --hicache-size 100\n"},
    _LAUNCH,
)
_page(
    "HC012",
    "Rendered pages turn two hyphens into a dash. SGLang takes such a word for a stray value, not for a flag.",
    {"launch.sh": "sglang serve --model-path /models/m \u2014hicache-size 100\n"},
    _LAUNCH,
)
_page(
    "HC013",
    "SGLang's own reader of --config writes keys and values as words of a command line: lists become several words, "
    "empty lists vanish, null becomes the text None, mappings are Python text until 0.5.13, keys keep their "
    "underscores, "
    "and it reads YAML 1.1.",
    {"server.yaml": "page-size: [64, 128]\n"},
    {"server.yaml": "page-size: 64\n"},
)
_page(
    "HC014",
    "Launchers around SGLang (Dynamo, the router) have flags of their own. They are not checked.",
    {"launch.sh": "python3 -m dynamo.sglang --model-path /models/m --migration-limit 3\n"},
    {"launch.sh": "python3 -m dynamo.sglang --model-path /models/m\n"},
)
_page(
    "HC015",
    "A flag that takes a value stands at the end, or right before another flag. SGLang's parser ends the launch.",
    {"launch.sh": "sglang serve --model-path /models/m --hicache-size --hicache-ratio 2\n"},
    _LAUNCH,
)
_page(
    "HC016",
    "A word that no flag takes. SGLang's parser ends the launch.",
    {"launch.sh": "sglang serve --model-path /models/m --hicache-size 100 GB\n"},
    _LAUNCH,
)
_page(
    "HC017",
    "The prompt of a terminal was copied together with the command; a shell would take it for something else.",
    {"launch.sh": "$ sglang serve --model-path /models/m --hicache-size 100\n"},
    _LAUNCH,
)
_page(
    "HC018",
    "A list of words holds a flag and its value as one item. No shell is in between to split them, and SGLang's parser "
    "takes such a word for neither.",
    {"pod.yaml": 'args: ["--model-path=/models/m", "--hicache-size 100"]\n'},
    {"pod.yaml": 'args: ["--model-path=/models/m", "--hicache-size=100"]\n'},
)
_page(
    "HC019",
    "The printed arguments in a log end early or are broken, so those that would follow are not known.",
    {"server.log": "server_args=ServerArgs(model_path='/models/m', hicache_size=100, hicache_ra"},
    {"server.log": "server_args=ServerArgs(model_path='/models/m', hicache_size=100, hicache_ratio=2.0)"},
)
