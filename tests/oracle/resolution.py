"""Argument sets through SGLang's own resolution: accepted with which values, or refused with which words and where.

    python tools/oracle.py record resolution                         all of them, into tests/recorded/
    python tools/oracle.py run resolution.py --sample 40 > RESULTS.jsonl     some of the list (--seed TEXT, --only ID…)
    python tools/oracle.py run resolution.py < CASES.jsonl > RESULTS.jsonl     any cases, such as those of resolution_wide.py

One entry a line: `{"id": …, "case": {"model", "gpu", "args"}, "result": …}`. A result is `{"changed": {field: value}}`
with the watched fields whose final value is another one than the one that came in, or `{"refused": {"type", "message",
"where"}}` with the first words of the message and the place (innermost of the wheel's own frames, relative to
`sglang/srt/`). Each case runs in a fork of its own, because resolution leaves values behind in the environment.
Runs in the environment of tools/oracle.py, never in the project's own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("SGLANG_PLUGINS", "none")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from resolution_cases import cases
from resolution_wide import configurations

WATCHED = (
    "enable_hierarchical_cache", "hicache_host_memory_mode", "hicache_ratio", "hicache_size", "hicache_host_memory_fraction",
    "hicache_write_policy", "hicache_io_backend", "hicache_mem_layout", "hicache_storage_backend",
    "hicache_storage_prefetch_policy", "hicache_storage_backend_extra_config",
    "hicache_storage_prefetch_retry_poll_interval", "hicache_storage_prefetch_retry_max_attempts",
    "disable_radix_cache", "enable_page_major_kv_layout", "enable_lmcache", "enable_flexkv", "page_size", "kv_cache_dtype",
    "swa_full_tokens_ratio", "disable_hybrid_swa_memory", "mamba_radix_cache_strategy", "attention_backend",
    "pp_size", "dp_size", "attn_dp_size", "enable_dp_attention", "attn_cp_size", "disable_overlap_schedule",
    "disaggregation_mode", "disaggregation_transfer_backend", "disaggregation_decode_retraction_backup", "optimistic_prefill_attempts",
    "speculative_algorithm",
)  # fmt: skip
WORDS = 110


def refusal(error: BaseException) -> dict[str, Any]:
    """What a person would be told, and by which function of the wheel."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/sglang/srt/" in frame.filename]
    where = f"{frames[-1].filename.split('/sglang/srt/')[-1]}:{frames[-1].name}" if frames else ""
    return {"refused": {"type": type(error).__name__, "message": str(error)[:WORDS], "where": where}}


def resolve(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The result of one case, in this process."""
    from harness import gpu
    from sglang.srt.arg_groups.overrides import resolution_result
    from sglang.srt.arg_groups.validation_hook import check_server_args
    from sglang.srt.server_args import ServerArgs

    os.environ.update(case.get("env", {}))
    arguments = {"load_format": "dummy", "device": "cuda", **case["args"]}
    if "speculative_draft_model_path" in arguments:
        arguments["speculative_draft_model_path"] = str(folder / arguments["speculative_draft_model_path"])
    with gpu(case["gpu"]):
        try:
            given = ServerArgs(model_path=str(folder / case["model"]), **arguments)
            given.resolve_once()
            check_server_args(given)
        except Exception as error:  # every refusal is a result
            return refusal(error)
        final = {name: resolution_result(given, name) for name in WATCHED if name in given._raw_input}
        return {"changed": {name: value for name, value in final.items() if value != given._raw_input[name]}}


def in_a_fork(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same in a child, so that nothing it leaves behind reaches the next case."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            with os.fdopen(writing, "w") as out:
                json.dump(resolve(case, folder), out)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    if not text:
        raise RuntimeError(f"the child of {case} ended without an answer")
    return json.loads(text)


def write_models(folder: Path) -> None:
    """Every model as a folder with its config.json."""
    for name, config in configurations().items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")


def chosen(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The cases that are asked for: of the list, or those on standard input."""
    if asked.sample is not None:
        yield from sorted(random.Random(asked.seed).sample(list(cases()), asked.sample), key=lambda entry: entry["id"])
    elif asked.only:
        yield from (entry for entry in cases() if entry["id"] in asked.only)
    else:
        yield from map(json.loads, filter(str.strip, sys.stdin))


def main() -> None:
    parser = argparse.ArgumentParser(description="argument sets through SGLang's own resolution, as JSON lines")
    parser.add_argument("--sample", type=int, help="so many of the list, drawn with --seed")
    parser.add_argument("--seed", default="sample")
    parser.add_argument("--only", nargs="*", help="ids of the list")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_models(folder)
        in_this = {"model": "mla", "gpu": "sm90", "args": {"enable_hierarchical_cache": True}}
        resolve(in_this, folder)  # what is imported once need not be imported in every child
        for entry in chosen(asked):
            print(json.dumps({**entry, "result": in_a_fork(entry["case"], folder)}, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
