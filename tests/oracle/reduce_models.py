"""Model configurations as small fixtures: what SGLang's configuration classes and sizing read, nothing else.

    python tests/oracle/reduce_models.py FOLDER [OUT]    config.json files of public models to tests/models/

Long lists of module names inside a quantisation are cut to their first entries (sizing asks for the method and the
KV scheme), and bookkeeping that no size depends on is left out. Whether a reduced file gives the same as the whole
one is shown by a run, not by this list: models.py --whole FOLDER against models.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "models"
KEPT_NAMES = 3
NAME_LISTS = {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules", "targets"}
BOOKKEEPING = {
    "_name_or_path",
    "transformers_version",
    "id2label",
    "label2id",
    "initializer_range",
    "attention_dropout",
    "embd_pdrop",
    "resid_pdrop",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "router_aux_loss_coef",
    "use_cache",
    "pretraining_tp",
    "return_dict",
    "producer",
    "quantization_status",
    "global_compression_ratio",
    "sparsity_config",
    "temperature",
    "top_k",
    "top_p",
}


def some_of_each(layers: dict[str, Any]) -> dict[str, Any]:
    """The first layers of every quantisation that occurs: which ones occur decides the method."""
    seen: dict[str, int] = {}
    kept = {}
    for name, how in layers.items():
        kind = json.dumps(how, sort_keys=True)
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= KEPT_NAMES:
            kept[name] = how
    return kept


def reduced(value: Any, key: str = "") -> Any:
    """The value without bookkeeping and with its lists of module names cut."""
    if isinstance(value, dict):
        if key == "quantized_layers":
            return some_of_each(value)
        return {name: reduced(item, name) for name, item in value.items() if name not in BOOKKEEPING}
    if isinstance(value, list):
        if key in NAME_LISTS and all(isinstance(item, str) for item in value):
            return value[:KEPT_NAMES]
        return [reduced(item) for item in value]
    return value


def main() -> None:
    source, out = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else OUT
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.json")):
        whole = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(reduced(whole), separators=(",", ":"), ensure_ascii=False)
        (out / path.name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
