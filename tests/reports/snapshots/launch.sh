#!/bin/sh
# Started by hand, HiCache flags without the switch.
python3 -m sglang.launch_server \
  --model-path meta-llama/Meta-Llama-3.1-70B \
  --tp 8 --page-size 64 \
  --hicache-size 100 \
  --hicache-write-policy write-through
