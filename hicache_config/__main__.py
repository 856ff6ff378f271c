"""`python -m hicache_config` is `hicache-config`."""

from .cli import main

main()
