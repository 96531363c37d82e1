"""The real vLLM server on CPU, with random weights. Collected only where it is named: `make test-vllm`."""
