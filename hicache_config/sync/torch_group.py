"""A rank group over a torch.distributed process group: gloo, or any backend that gathers int64 tensors.

The only module of the package floor that imports torch. It must not import anything of the project but what stands
beside it.
"""

from __future__ import annotations

from array import array
from typing import Any

import torch

from .group import GroupError

_HELP = (
    "Look in the logs of the other ranks for the first error. The time to wait is the timeout of the process group: "
    "SGLang's --dist-timeout (seconds), or timeout= of torch.distributed.init_process_group and new_group."
)


class TorchGroup:
    """A torch process group (or a bare backend such as ProcessGroupGloo) as a RankGroup.

    `device` is where the messages travel; by default the CPU where the group has a CPU backend, else the first device
    type of the group (the current device of NCCL). Waiting ends with the group's own timeout.
    """

    def __init__(self, group: Any, device: str | None = None) -> None:
        self._group = group
        self._device = device or default_device(group)
        self.rank: int = group.rank()
        self.size: int = group.size()

    def gather(self, message: bytes) -> list[bytes]:
        """All ranks' messages in rank order; one all_gather of int64. Raises GroupError when the transport fails."""
        mine = torch.tensor(array("q", message).tolist(), dtype=torch.int64, device=self._device)
        all_ranks = [torch.empty_like(mine) for _ in range(self.size)]
        try:
            self._group.allgather([all_ranks], [mine]).wait()
            return [array("q", answer.tolist()).tobytes() for answer in all_ranks]
        except RuntimeError as error:
            raise GroupError(f"torch.distributed: {error}", help_=_HELP) from error


def default_device(group: Any) -> str:
    """The device type on which a group's messages travel: "cpu" where it can."""
    types = [str(device.type) for device in getattr(group, "_device_types", ())]
    return types[0] if types and "cpu" not in types else "cpu"
