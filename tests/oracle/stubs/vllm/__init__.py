"""Import-only vllm: a CPU build of SGLang looks for its rotary embedding while a server loads the model."""
