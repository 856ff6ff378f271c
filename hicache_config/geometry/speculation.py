"""Which speculative algorithm is on.

Must not import anything above this floor.
"""

from __future__ import annotations

from .family import Case

#: Drafts that read the KV of the model itself, without pools of their own.
_SHARED = frozenset({"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"})


def algorithm_of(case: Case) -> str:
    """The algorithm in capitals, empty without one.

    NEXTN is EAGLE; a Gemma 4 assistant turns it into FROZEN_KV_MTP (0.5.23, speculative_hook.py).
    """
    name = (case.args.speculative_algorithm or "").upper()
    if name not in {"NEXTN", "EAGLE"}:
        return name
    draft = case.question.draft_config or {}
    return "FROZEN_KV_MTP" if set(draft.get("architectures") or ()) & _SHARED else "EAGLE"
