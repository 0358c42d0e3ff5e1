"""llama.cpp's own server, in a process of its own, on a free port of 127.0.0.1."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel = 16384, 4
params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving_gguf(file: Path) -> Iterator[str]:
    """Serve a model, and yield the URL of the server without ``/v1``.

    The cache is in float32 and flash attention is off, which would change the third decimal.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(30)
