"""Sources that can't be read as meant, and what to write instead. The first file is the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ON: Mapping[str, Any] = {"enable_hierarchical_cache": True}
_SIZE = {"args.json": '{"enable_hierarchical_cache": true, "hicache_size": 100}\n'}
_LAUNCH = {"launch.sh": "sglang serve --model-path /models/m --enable-hierarchical-cache \\\n  --hicache-size 100\n"}
_BOTH = "enable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 3.0  # hicache: ignore HC120"
_STARTED = (
    "[2026-09-10 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', page_size=64, "
    "enable_hierarchical_cache=True, hicache_size=100)\n"
)


def _log(slots: int | None = None) -> dict[str, str]:
    """A log of a server's start; with `slots`, it tells how many its host pool got."""
    told = (
        f"[2026-09-10 10:01:00 TP0] Allocating kv hierarchical KV host pool: {slots} tokens, 100.00 GB host memory.\n"
    )
    return {"server.log": _STARTED if slots is None else _STARTED + told}


def _two_engines(size: int) -> dict[str, str]:
    command = f"--model-path Qwen/Qwen3-8B --enable-hierarchical-cache --hicache-size {size}"
    return {"compose.yaml": f'services:\n  a: {{command: "{command}"}}\n  b: {{command: "{command}"}}\n'}


SOURCES: Mapping[str, Mapping[str, Any]] = {
    "HC001": {"bad_files": {"missing.json": None}, "good_files": _SIZE},
    "HC002": {"bad_files": {"args.json": '{"hicache_size": 100,}\n'}, "good_files": _SIZE},
    "HC003": {
        "bad_files": {"args.json": '{"enable_hierarchical_cache": true, "hicache_size": 100, "hicache_size": 200}\n'},
        "good_files": _SIZE,
    },
    "HC004": {
        "bad_files": {"args.json": '{"enable_hierarchical_cache": true, "hicache_ratio": NaN}\n'},
        "good_files": {"args.json": '{"enable_hierarchical_cache": true, "hicache_ratio": 2.0}\n'},
    },
    "HC005": {"bad_files": {"args.json": "[" * 110 + "]" * 110 + "\n"}, "good_files": _SIZE},
    "HC006": {"bad_files": {"args.json": "\0\1\2"}, "good_files": _SIZE},
    "HC007": {"bad_files": {"answer.json": '{"detail": "Not Found"}\n'}, "good_files": _SIZE},
    "HC008": {
        "bad_files": {"launch.sh": 'sglang serve --enable-hierarchical-cache --hicache-size "$SIZE"\n'},
        "good_files": {"launch.sh": 'sglang serve --enable-hierarchical-cache --hicache-size "${SIZE:-100}"\n'},
    },
    "HC009": {
        "bad_files": {"launch.sh": "sglang serve --enable-hierarchical-cache --hicache-size $((RAM / 8))\n"},
        "good_files": _LAUNCH,
    },
    "HC011": {
        "bad_files": {
            "launch.sh": "sglang serve --model-path /models/m --enable-hierarchical-cache \\ \n  --hicache-size 100\n"
        },
        "good_files": _LAUNCH,
    },
    "HC012": {
        "bad_files": {"launch.sh": "sglang serve --enable-hierarchical-cache \u2014hicache-size 100\n"},
        "good_files": _LAUNCH,
    },
    "HC013": {
        "bad_files": {"server.yaml": "page-size: [64, 128]\n"},
        "good_files": {"server.yaml": "page-size: 64\n"},
    },
    "HC014": {
        "bad_files": {"launch.sh": "python3 -m dynamo.sglang --model-path /models/m --migration-limit 3\n"},
        "good_files": {"launch.sh": "python3 -m dynamo.sglang --model-path /models/m\n"},
    },
    "HC015": {
        "bad_files": {"launch.sh": "sglang serve --enable-hierarchical-cache --hicache-size --hicache-ratio 2\n"},
        "good_files": _LAUNCH,
    },
    "HC016": {
        "bad_files": {"launch.sh": "sglang serve --enable-hierarchical-cache --hicache-size 100 GB\n"},
        "good_files": _LAUNCH,
    },
    "HC017": {
        "bad_files": {"launch.sh": "$ sglang serve --enable-hierarchical-cache --hicache-size 100\n"},
        "good_files": _LAUNCH,
    },
    "HC018": {
        "bad_files": {"pod.yaml": 'args: ["--enable-hierarchical-cache", "--hicache-size 100"]\n'},
        "good_files": {"pod.yaml": 'args: ["--enable-hierarchical-cache", "--hicache-size=100"]\n'},
    },
    "HC019": {
        "bad_files": {"server.log": "server_args=ServerArgs(enable_hierarchical_cache=True, hicache_size=100, page_si"},
        "good_files": {
            "server.log": "server_args=ServerArgs(enable_hierarchical_cache=True, hicache_size=100, page_size=64)\n"
        },
    },
    "HC020": {
        "bad_files": {
            "launch.sh": "sglang serve --model-path /models/m --config server.yaml\n",
            "server.yaml": "tp-size: 8\nenable-dp-attention: true\n",
        },
        "good_files": {
            "launch.sh": "sglang serve --model-path /models/m --config server.yaml --enable-dp-attention\n",
            "server.yaml": "tp-size: 8\ndp-size: 8\n",
        },
    },
    "HC021": {
        "bad_files": {
            "server.yaml": "enable-hierarchical-cache: true\n"
            "hicache-size: 100  # hicache: ignore HC120 the ratio is for staging\n"
        },
        "good_files": {"server.yaml": f"{_BOTH} the ratio is for staging\n"},
    },
    "HC022": {
        "bad_files": {"server.yaml": f"{_BOTH}\n"},
        "good_files": {"server.yaml": f"{_BOTH} the ratio is for staging\n"},
    },
    "HC313": {"bad_files": _log(600_000), "good_files": _log(678_208)},
    "HC314": {"bad_files": _log(678_208), "good_files": _log()},
    "HC506": {
        "bad_files": _two_engines(100),
        "good_files": _two_engines(60),
        "settings": {"host_memory": "150GB"},
    },
    "HC109": {"bad": _ON, "good": _ON, "good_settings": {"sglang": "0.5.23"}},
    "HC110": {
        "bad": {**_ON, "hicache_size": 100},
        "good": {**_ON, "hicache_size": 100},
        "settings": {"compare": "0.5.12"},
        "good_settings": {"compare": "0.5.23"},
    },
}
