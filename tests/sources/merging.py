"""What SGLang's own --config merger makes of YAML texts, printed as JSON lines to be recorded.

    python tools/oracle.py run --server --sglang 0.5.23 tests/sources/merging.py > tests/recorded/merging-0.5.23.jsonl

Runs inside an environment that has SGLang. A line holds a text and the words that the real merger puts in front of the
command line, or that it refuses the text; `test_merging.py` replays them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

_VALUES = (
    "true", "false", "yes", "no", "on", "OFF", "Yes", "y", "n", "TRUE", "null", "~", "", "None", "0", "8", "-3", "+4", "0100", "0o17",
    "0x1F", "0b101", "1_000", "1:30", "1:30:15", "1:30.5", "-1:10", "1.5", "1.", ".5", "1e3", "1.0e3", "1.0e+3", "1.5e-2", "-.5", "1_0.5",
    ".inf", "-.INF", ".nan", "2026-01-02", "text", "two words", "'on'", '"0100"', "'it''s'", '"a\\tb"', "!!str 5", "a: b", "[1, on, 0x10]",
    "[]", "[a, [b, 1.0]]", "[true, ~]", "{a: 1, b: on, c: [0100, ~, 1.50]}", "{}", "[{a: on}]", "- 1", "|\n  line\n  two", ">-\n  one\n  two",
    "1.10", "100.0", "1e400", "0.1", "12345678901234567890", "=", "<<", "007", "08", "0_8", "-", "--tp", "-1",
)  # fmt: skip
_KEYS = (
    "hicache-size", "hicache_size", "enable-hierarchical-cache", "enable_hierarchical_cache", "enable-hicache", "enable-dp-attention",
    "enable_dp_attention", "disable-cuda-graph", "lora-paths", "lora-strict-loading", "no-lora-strict-loading", "dllm-fdfo", "tp", "tp-size",
    "tensor-parallel-size", "cuda-graph-bs", "hicache-storage-backend-extra-config", "not-a-flag", "help", "config", "h", "model",
    "enable-metrics", "trust-remote-code", "bucket-inter-token-latency", "enable-fused-qk-norm-rope", "stream-output", "monokernel-backend",
)  # fmt: skip
#: Words beside the file, and whole files that are not one mapping of plain keys.
_TEXTS = (
    "", "# nothing\n", "---\n", "[a]\n", "text\n", "a: 1\n---\nb: 2\n", "hicache-size: 1\nhicache-size: 2\n", "a: &x 5\nb: *x\n",
    "base: &b {tp: 2}\n", "'quoted': 1\n", '"tp-size": 4\n', "hicache-size : 3\n", "hicache-size: 3 # why\n", "{hicache-size: 3, tp: 2}\n",
)  # fmt: skip


def texts() -> list[str]:
    """The texts, in order."""
    made = [f"hicache-ratio: {value}\n" for value in _VALUES if value != "- 1"] + ["hicache-ratio:\n- 1\n- two\n"]
    made += [f"{key}: {value}\n" for key in _KEYS for value in ("true", "false", "3", "[1, 2]")]
    return [*made, *_TEXTS]


def main() -> None:
    """Print the recording."""
    import sglang
    from sglang.srt.server_args import ServerArgs

    try:
        from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger
    except ImportError:  # until 0.5.18
        from sglang.srt.server_args_config_parser import ConfigArgumentMerger

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    merger = ConfigArgumentMerger(parser)
    print(json.dumps({"kind": "hicache-oracle", "version": 1, "what": "merging", "sglang": sglang.__version__}))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.yaml"
        for text in texts():
            path.write_text(text, "utf-8")
            try:
                words = merger.merge_config_with_args(["--config", str(path), "--port", "1"])[:-2]
            except Exception as error:
                print(json.dumps({"text": text, "refused": type(error).__name__}))
            else:
                print(json.dumps({"text": text, "words": words}))


if __name__ == "__main__":
    main()
