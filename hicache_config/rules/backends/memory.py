"""Host memory that a storage backend takes beside the host pools, on one rank.

Source: SGLang 0.5.23, mem_cache/storage/. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...arguments import ServerArgs

if TYPE_CHECKING:
    from .kinds import MooncakeSettings

#: Buffer of each Mooncake client (0.5.23, storage/mooncake_store/mooncake_store.py:DEFAULT_LOCAL_BUFFER_SIZE).
MOONCAKE_BUFFER = 16 * 2**20
_MOONCAKE_SEGMENT = "MOONCAKE_GLOBAL_SEGMENT_SIZE"
_MOONCAKE_FILE = "SGLANG_HICACHE_MOONCAKE_CONFIG_PATH"


def host_bytes_per_rank(
    backend: str | None,
    config: str | Mapping[str, Any] | None,
    args: ServerArgs,
    environment: Mapping[str, str],
) -> int | None:
    """Bytes of host memory that the backend takes on a rank beside the host pools; None where they can't be known.

    Mooncake lends its segment divided by the tensor ranks of an attention group x stages, and a buffer of 16 MiB; a
    client process of its own (`standalone_storage`) lends nothing here. MORI takes its DRAM capacity, TensorCast its
    staging areas. The others take none that their settings tell.
    """
    if not backend:
        return 0
    from .kinds import MooncakeSettings, MoriSettings, TensorcastSettings  # for those who have a backend
    from .reading import read_settings

    settings = read_settings(backend, config)
    if settings.path is not None or (settings.given is None and settings.problems):
        return None
    typed = settings.typed
    if isinstance(typed, MooncakeSettings):
        return _mooncake(typed, args, environment)
    if isinstance(typed, MoriSettings):
        return typed.dram_capacity_bytes
    if isinstance(typed, TensorcastSettings):
        return 2 * typed.tensorcast.scratch.capacity_bytes if typed.tensorcast.transfer_mode == "scratch" else 0
    return 0


def _mooncake(typed: MooncakeSettings, args: ServerArgs, environment: Mapping[str, str]) -> int | None:
    from .fields import mooncake_bytes

    if typed.master_server_address is None and typed.client_server_address is None:
        # Without an address the settings are not read at all: its file counts, else the environment.
        if _MOONCAKE_FILE in environment:
            return None
        if environment.get("MOONCAKE_STANDALONE_STORAGE", "").lower() in ("1", "true", "yes"):
            return MOONCAKE_BUFFER
        try:
            segment = mooncake_bytes(environment.get(_MOONCAKE_SEGMENT, "4gb"))
        except ValueError:
            return None
    elif typed.standalone_storage:
        return MOONCAKE_BUFFER
    else:
        segment = typed.global_segment_size
    return int(segment) // sharing_ranks(args) + MOONCAKE_BUFFER


def sharing_ranks(args: ServerArgs) -> int:
    """Ranks that share a setting of the engine: tensor ranks (of one attention group) x stages.

    Source: 0.5.23, managers/cache_controller.py:_generate_storage_config.
    """
    groups = args.attn_dp_size
    if args.enable_dp_attention and groups == 1:
        groups = args.dp_size
    tensor = args.tp_size // groups // args.attn_cp_size if groups > 1 else args.tp_size
    return max(tensor, 1) * args.pp_size
