"""A small engine of one's own: pipeline ranks on the CPU that size, build and use their host pools.

    torchrun --nproc-per-node 2 examples/mini_engine.py
    torchrun --nproc-per-node 4 examples/mini_engine.py --size 2
    torchrun --nproc-per-node 2 examples/mini_engine.py --fail-rank 1     # every rank ends with rank 1's error

The model has 15 layers, every fourth an attention layer (rows of keys and values for each token), the others linear
(one state for each request). The layers are split unevenly, and with four ranks the first stage owns no attention
layer at all. `--size` is what all host pools of a rank together may take, in GB. What the engine needs of
hicache-config: `resolve`, which agrees with the other ranks, and `Plan.build`.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import TextIO

import torch
import torch.distributed as dist

from hicache_config import ConfigurationError, DevicePool, HostPoolSize, Plan, ServerArgs, resolve

LAYERS = 15
PAGE = 16
TOKENS = 4_096  # rows of the attention pool on the device
REQUESTS = 24  # states of the linear pool on the device
KV_ROW = (2, 4, 64)  # keys and values, heads, head dimension
STATE = (4, 64, 64)  # heads, key dimension, value dimension
KINDS = {"kv": (TOKENS, KV_ROW, torch.bfloat16), "mamba": (REQUESTS, STATE, torch.float32)}


def layers_of(stage: int, stages: int) -> range:
    """The layers of a stage; what does not divide evenly goes to the last stages, as in SGLang."""
    counts = [LAYERS // stages + (number >= stages - LAYERS % stages) for number in range(stages)]
    return range(sum(counts[:stage]), sum(counts[: stage + 1]))


@dataclass
class Device:
    """The buffers on the accelerator (here the CPU): by kind `[layers, slots, *row]`; kinds without layers are absent.

    Tensors: kv bfloat16 `[L, 4096, 2, 4, 64]`, mamba float32 `[L, 24, 4, 64, 64]`.
    """

    buffers: dict[str, torch.Tensor]

    @classmethod
    def of(cls, layers: range) -> Device:
        owned = {
            "kv": [layer for layer in layers if layer % 4 == 3],
            "mamba": [layer for layer in layers if layer % 4 != 3],
        }
        return cls(
            {
                name: torch.randn(len(owned[name]), slots, *row).to(dtype)
                for name, (slots, row, dtype) in KINDS.items()
                if owned[name]
            }
        )

    def pools(self) -> list[DevicePool]:
        """What hicache-config has to know of them."""
        return [
            DevicePool(
                name,
                slots=buffer.shape[1],
                bytes_per_slot=buffer.nbytes // buffer.shape[1],
                page_size=PAGE if name == "kv" else 1,
            )
            for name, buffer in self.buffers.items()
        ]


class HostPool:
    """The mirror of a device buffer in host memory, `[slots, layers, *row]`, as large as the plan says."""

    def __init__(self, size: HostPoolSize, device: torch.Tensor) -> None:
        layers, _, *row = device.shape
        self.name = size.name
        self.device = device
        self.buffer = torch.empty(size.slots, layers, *row, dtype=device.dtype)
        if self.buffer.nbytes != size.bytes:
            raise RuntimeError(f"{size.name}: {self.buffer.nbytes:,} bytes are built, {size.bytes:,} are planned")

    def store(self, device_slots: torch.Tensor, host_slots: torch.Tensor) -> None:
        """Copy these slots of all layers to the host."""
        self.buffer[host_slots] = self.device[:, device_slots].transpose(0, 1)

    def load(self, host_slots: torch.Tensor, device_slots: torch.Tensor) -> None:
        """Copy them back."""
        self.device[:, device_slots] = self.buffer[host_slots].transpose(0, 1)

    def comes_back(self) -> bool:
        """Whether what is stored in the first and the last host slots is the same after it is loaded again."""
        count = min(PAGE, self.device.shape[1] // 2)
        slots = torch.arange(count)
        host = torch.cat([slots[: count // 2], self.buffer.shape[0] - 1 - slots[: count - count // 2]])
        before = self.device[:, slots].clone()
        self.store(slots, host)
        self.device[:, slots] = 0
        self.load(host, slots)
        return torch.equal(self.device[:, slots], before)


def run(options: argparse.Namespace) -> Plan:
    """One rank: its layers, its device buffers, the plan that all ranks agree on, the host pools."""
    stage, stages = dist.get_rank(), dist.get_world_size()
    device = Device.of(layers_of(stage, stages))
    pools = device.pools()
    if stage == options.fail_rank:
        pools[0] = DevicePool(pools[0].name, slots=-1, bytes_per_slot=1)
    args = ServerArgs.model_validate(
        {"enable_hierarchical_cache": True, "hicache_size": options.size, "pp_size": stages, "page_size": PAGE}
    )
    plan = resolve(args, pools, group=dist.group.WORLD)
    hosts = plan.build(
        {name: lambda size, buffer=buffer: HostPool(size, buffer) for name, buffer in device.buffers.items()}
    )
    if not all(host.comes_back() for host in hosts.values()):
        raise RuntimeError("what was stored did not come back")
    return plan


def line(plan: Plan) -> str:
    """What a rank has, in one line."""
    own = plan.stage(plan.own_stage)
    sizes = ", ".join(f"{pool.name} {pool.slots:,} slots ({pool.bytes:,} bytes)" for pool in plan)
    decides = " and decides" if plan.own_stage in plan.decided_by else ""
    return f"stage {plan.own_stage}{decides}: {sizes}; {own.bytes:,} bytes of {own.size_bytes:,}"


def say(text: str, stream: TextIO) -> None:
    """One write a line: the ranks share the stream, and an unbuffered print() writes the end of a line by itself."""
    stream.write(f"{text}\n")
    stream.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="A small engine that sizes its host pools over torchrun ranks.")
    parser.add_argument("--size", type=int, default=1, help="GB of host memory per rank, for all host pools together")
    parser.add_argument("--fail-rank", type=int, default=-1, help="a rank whose pools are wrong, to see what happens")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for the other ranks")
    options = parser.parse_args()
    # The timeout of the group is how long a rank waits in the agreement for one that does not come.
    dist.init_process_group("gloo", timeout=timedelta(seconds=options.timeout))
    try:
        plan = run(options)
    except ConfigurationError as error:
        say(f"rank {os.environ['RANK']}: {error}", sys.stderr)
        if all(finding.code != "HC411" for finding in error.findings):
            dist.barrier()  # all ranks are there and say so, before torchrun sees one end and ends the others
        return 1
    finally:
        dist.destroy_process_group()
    say(line(plan), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
