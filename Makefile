# Everything that is done with this repository. `make help` lists the targets.
# Needs Go (any recent one: it fetches the toolchain below by itself), gcc, make and git.
include tools/versions.env

export GOTOOLCHAIN := go$(GO_VERSION)
export CGO_ENABLED := 1
# What NVIDIA has deprecated is what old drivers have.
export CGO_CFLAGS := -g -O2 -Wno-deprecated-declarations
# Go stamps the commit, and fails where git does not trust the folder: a clone of another user, as in a container.
ifneq ($(shell git status >/dev/null 2>&1 && echo trusted),trusted)
export GOFLAGS := $(strip $(shell go env GOFLAGS) -buildvcs=false)
endif

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What the manifest says is read, not repeated.
BUILD_TAGS := $(shell sed -n 's/^ *build_tags: *//p' builder-config.yaml)
COLLECTOR  := bin/otelcol-llm
LLMSIM     := bin/llmsim
SLO        := bin/slo

OCB           := .tools/ocb-$(OCB_VERSION)
GOLANGCI_LINT := .tools/golangci-lint-$(GOLANGCI_LINT_VERSION)
PROMETHEUS    := .tools/prometheus-$(PROMETHEUS_VERSION)
PROMTOOL      := .tools/promtool-$(PROMETHEUS_VERSION)
BPF2GO        := .tools/bpf2go-$(shell sed -n 's,^\s*github.com/cilium/ebpf ,,p' go.mod)
SLOTH         := .tools/sloth-$(SLOTH_VERSION)
ALERTMANAGER  := .tools/alertmanager-$(ALERTMANAGER_VERSION)
JAEGER        := .tools/jaeger-all-in-one-$(JAEGER_VERSION)
VICTORIALOGS  := .tools/victoria-logs-$(VICTORIALOGS_VERSION)
KAFKA         := .tools/kafka-$(KAFKA_VERSION)
# What `make test-backends` runs beside the binary.
BACKENDS      := $(PROMETHEUS) $(PROMTOOL) $(SLOTH) $(ALERTMANAGER) $(JAEGER) $(VICTORIALOGS) $(KAFKA) \
	tests/sdk/js/node_modules/.package-lock.json tests/sdk/python/venv/complete

# To be set by the caller: make test TESTFLAGS=-count=1, make demo DEMOFLAGS='-for 1m', make bench BENCH=Window,
# make bench-prometheus BENCHFLAGS='-for 5m', make nightly FUZZTIME=1h, make gpu-check GPUCHECKFLAGS='-rounds 100',
# make test-backends ITEMS=1000000.
DEMOFLAGS  ?=
TESTFLAGS  ?=
BENCH      ?= .
BENCHTIME  ?= 1s
BENCHFLAGS ?=
GPUCHECKFLAGS ?=
FUZZTIME   ?= 10m

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/otelcol-llm, bin/slo and bin/llmsim (minutes the first time, seconds after)
	@mkdir -p bin
	@tools/build.sh "[1/3] The Collector: some 2,500 packages, about ten CPU minutes the first time, seconds after" \
		otelcol-llm . $(COLLECTOR) $(BUILD_TAGS)
	@tools/build.sh "[2/3] The command for SLO files" . ./cmd/slo $(SLO)
	@tools/build.sh "[3/3] The engine simulator" . ./cmd/llmsim $(LLMSIM)

.PHONY: demo
demo: build ## Watch a promise break and be kept again, on production traffic; Ctrl-C ends it
	@go build -o bin/demo ./demo
	@bin/demo $(DEMOFLAGS)

.PHONY: test
test: build ## Unit tests, and end to end against bin/otelcol-llm
	go test -timeout 20m $(TESTFLAGS) ./...

.PHONY: test-backends
test-backends: build $(BACKENDS) ## End to end with real Prometheus, Alertmanager, Sloth, Jaeger, VictoriaLogs, Kafka and SDKs (builds them once, twelve CPU minutes; needs java, mvn, node and python3)
	go test $(TESTFLAGS) -timeout 40m -tags backends ./tests/backends $(if $(ITEMS),-items $(ITEMS))

.PHONY: test-browser
test-browser: build $(PROMETHEUS) tests/browser/node_modules/.package-lock.json ## The console in Chromium, in front of the binary and of Prometheus (two minutes; needs node and chromium)
	PROMETHEUS=$(abspath $(PROMETHEUS)) npm --prefix tests/browser test

.PHONY: screenshots
screenshots: $(PROMETHEUS) tests/browser/node_modules/.package-lock.json ## Draw the pictures of the console in docs/images anew
	PROMETHEUS=$(abspath $(PROMETHEUS)) npm --prefix tests/browser run screenshots

.PHONY: gpu-check
gpu-check: build ## Compare nvidia_gpu with nvidia-smi on a machine with a GPU, and write docs/gpu-check/<model>-<driver>.md
	go run ./tests/gpucheck -otelcol-llm $(COLLECTOR) $(GPUCHECKFLAGS)

.PHONY: test-engine
test-engine: build ## Compare llmsim with a real serving engine (installs several GB; not part of test)
	cmd/llmsim/enginetest/run.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## golangci-lint, with the rules in .golangci.yaml
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go files
	$(GOLANGCI_LINT) fmt ./...

.PHONY: generate
generate: $(OCB) ## Make otelcol-llm/ from builder-config.yaml
	tools/generate.sh $(OCB)

.PHONY: check-generated
check-generated: $(OCB) ## Fail when otelcol-llm/ is not what builder-config.yaml says
	tools/generate.sh $(OCB) --check

.PHONY: bpf
bpf: $(BPF2GO) ## Compile the eBPF programs of cuda_memory anew (needs clang, llvm and libbpf-dev; what it writes is committed)
	BPF2GO=$(abspath $(BPF2GO)) go generate ./receiver/cudamemoryreceiver/internal/probe
	cd receiver/cudamemoryreceiver/internal/probe && sha256sum bpf/*.c bpf/*.h > bpf/SHA256SUMS

.PHONY: bench
bench: ## Run the benchmarks of all packages (BENCH=pattern, BENCHTIME=1s)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) ./...

.PHONY: bench-prometheus
bench-prometheus: build $(PROMETHEUS) $(PROMTOOL) $(SLOTH) ## Measure the Collector beside Prometheus with Sloth's rules (half an hour, on a quiet machine)
	@go build -o bin/slo-vs-prometheus ./bench/slo-vs-prometheus
	@bin/slo-vs-prometheus -otelcol-llm $(COLLECTOR) -prometheus $(PROMETHEUS) -promtool $(PROMTOOL) -sloth $(SLOTH) $(BENCHFLAGS)

.PHONY: vuln
vuln: build ## Offline govulncheck of the binary; fails on what has a fix and is not allowed
	tools/vulncheck.sh $(COLLECTOR)

.PHONY: nightly
nightly: build $(BACKENDS) ## The long checks: race detector, the demo's memory over time (docs/soak.md), crashes at ever other moments, a million items to real servers, servers that are gone for five minutes, a million readings of GPUs, fuzzing (FUZZTIME=10m each), benchmarks
	go test -race -count=1 -timeout 60m ./...
	go test -count=1 -timeout 30m -tags soak ./tests/soak -soak-report=docs/soak.md
	go test -count=10 -timeout 30m -run TestTenCrashes ./tests/e2e -crash-seed=0
	go test -count=1 -timeout 60m -run Report15 ./receiver/nvidiagpureceiver/internal/nvmlsource -scrapes=1000000
	go test -count=1 -timeout 60m -run Report15TheWhole ./receiver/nvidiagpureceiver -scrapes=100000
	go test -count=5 -timeout 30m -tags backends -run TestKillsAtAnyMoment ./tests/backends -tsdb-seed=0
	go test -count=1 -v -timeout 60m -tags backends -run TestFiftyNamespaces ./tests/backends -items 1000000
	go test -count=1 -v -timeout 30m -tags backends -run TestATenantWhoseServersAreGone ./tests/backends -outage 5m
	go test -count=1 -v -timeout 30m -run TestTheLoop ./tests/e2e -loops 200
	tools/fuzz.sh $(FUZZTIME)
	$(MAKE) bench

.PHONY: clean
clean: ## Remove what was built here (the tools in .tools/ stay)
	rm -rf bin

%/node_modules/.package-lock.json: %/package-lock.json
	npm ci --prefix $* --no-audit --no-fund

tests/sdk/python/venv/complete: tests/sdk/python/requirements.txt
	@rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

$(OCB):
	@tools/install.sh go.opentelemetry.io/collector/cmd/builder@$(OCB_VERSION) $@

$(GOLANGCI_LINT):
	@tools/install.sh github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) $@

# Without the tag, Prometheus compiles the SDK of every cloud.
$(PROMETHEUS) $(PROMTOOL):
	@GOFLAGS="$(GOFLAGS) -tags=remove_all_sd" tools/install.sh github.com/prometheus/prometheus/cmd/$(firstword $(subst -, ,$(notdir $@)))@$(PROMETHEUS_VERSION) $@

$(BPF2GO):
	@tools/install.sh github.com/cilium/ebpf/cmd/bpf2go@$(patsubst bpf2go-%,%,$(@F)) $@

$(SLOTH):
	@tools/install.sh github.com/slok/sloth/cmd/sloth@$(SLOTH_VERSION) $@

$(ALERTMANAGER):
	@tools/install.sh github.com/prometheus/alertmanager/cmd/alertmanager@$(ALERTMANAGER_VERSION) $@

# A module with replace directives cannot be installed by its version, but can be a tool of another module.
$(JAEGER):
	@tools/install.sh github.com/jaegertracing/jaeger/cmd/all-in-one@$(JAEGER_VERSION) $@ as-tool

$(VICTORIALOGS):
	@tools/install.sh github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@$(VICTORIALOGS_VERSION) $@

$(KAFKA): tools/kafka/pom.xml
	@echo "Fetching Apache Kafka $(KAFKA_VERSION), once" >&2
	@rm -rf $@ $@.tmp
	@mvn -B -q -f $< -Dkafka.version=$(KAFKA_VERSION) dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $@.tmp)
	@mv $@.tmp $@
