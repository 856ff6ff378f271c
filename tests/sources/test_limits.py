"""Amounts of memory as containers, services and schedulers write them."""

from __future__ import annotations

import pytest

from hicache_config.sources.limits import LimitError, docker_bytes, kubernetes_bytes, slurm_bytes, systemd_bytes

# --- memory limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"),
    [("64g", 64 * 2**30), ("64G", 64 * 2**30), ("1.5t", 3 * 2**39), ("512m", 2**29), ("1gb", 2**30), ("1GiB", 2**30), ("1024", 1024), ("8k", 8192), ("1b", 1)],
)  # fmt: skip
def test_docker_counts_in_powers_of_1024(text: str, amount: int) -> None:
    assert docker_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("64Gi", 64 * 2**30), ("64G", 64 * 10**9), ("1.5Ti", 3 * 2**39), ("100M", 10**8), ("1e9", 10**9), ("2E3", 2000), ("1E", 10**18), ("128974848", 128974848), ("1500m", 1), ("10k", 10**4), (".5Gi", 2**29)],
)  # fmt: skip
def test_kubernetes_has_both_powers(text: str, amount: int) -> None:
    assert kubernetes_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "64 gigs", "-1g", "1g junk", "9" * 50, "0x10"])
def test_other_limits_are_refused(text: str) -> None:
    for reader in (docker_bytes, kubernetes_bytes):
        with pytest.raises(LimitError, match="expected"):
            reader(text)


# --- memory limits of Slurm and systemd -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500G", 500 * 2**30), ("1T", 2**40), ("1024", 2**30), ("2m", 2**21), ("0", 0), ("64GB", 2**36)],
)
def test_slurm_counts_in_mebibytes(text: str, amount: int) -> None:
    assert slurm_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500G", 500 * 2**30), ("1.5T", 3 * 2**39), ("1073741824", 2**30), ("infinity", 0), ("1 G", 2**30), ("8K", 8192)],
)
def test_systemd_counts_in_powers_of_1024(text: str, amount: int) -> None:
    assert systemd_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "80%", "-1", "1g g", "1.5"])
def test_other_limits_of_slurm_and_systemd_are_refused(text: str) -> None:
    readers = (slurm_bytes,) if text == "1.5" else (slurm_bytes, systemd_bytes)
    for reader in readers:
        with pytest.raises(LimitError):
            reader(text)
