# bursar: `make run` shows it at work, `make test` runs all that needs only Go,
# `make help` lists the rest.

SHELL := /bin/bash
.DEFAULT_GOAL := build
export CGO_ENABLED ?= 0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
GOBUILD := go build -trimpath -ldflags '$(LDFLAGS)'
BIN     := bin

# One go build links all programs, each named by its folder in bin/built; links in bin/
# have their own names. PROGRAMS are NAME=FOLDER.
PLUGINS  := $(patsubst plugins/%/main.go,%,$(wildcard plugins/source/*/main.go plugins/action/*/main.go))
PROGRAMS := bursar=aggregator bursar-agent=agent bursar-epilog=plugins/source/slurm-epilog/cmd/bursar-epilog \
	$(foreach p,$(PLUGINS),plugins/bursar-$(subst /,-,$p)=plugins/$p)
FOLDERS  := $(foreach p,$(PROGRAMS),$(lastword $(subst =, ,$p)))
ifneq ($(words $(FOLDERS)),$(words $(sort $(notdir $(FOLDERS)))))
$(error two programs have folders of the same name, so go build would write one file for both: $(FOLDERS))
endif

# Tools, pinned. They are built into bin/tools from the Go module proxy.
TOOLS           := $(CURDIR)/$(BIN)/tools
GOLANGCI_LINT   := $(TOOLS)/golangci-lint-v2.15.0
BUF             := $(TOOLS)/buf-v1.71.0
PROTOC_GEN_GO   := $(TOOLS)/protoc-gen-go-v1.36.12
PROTOC_GEN_GRPC := $(TOOLS)/protoc-gen-go-grpc-v1.6.2
# nfpm stays at v2.45.0: newer ones need modules that the proxy does not have.
NFPM            := $(TOOLS)/nfpm-v2.45.0
MD2MAN          := $(TOOLS)/go-md2man-v2.0.7
GOTESTSUM       := $(TOOLS)/gotestsum-v1.13.0
GOVULNCHECK     := $(TOOLS)/govulncheck-v1.9.0

# Tests run through it: it tries again what failed, and says what failed and what was unstable.
CHECK := go run ./e2e/check -gotestsum $(GOTESTSUM) $(if $(BUDGET),-budget $(BUDGET))

# What is linted and tested is compiled as what is built, so that the cache serves both.
lint test race: export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: build
build: ## Build the daemons and bursar-epilog into bin/, the plugins into bin/plugins/.
	@mkdir -p $(BIN)/built $(BIN)/plugins
	$(GOBUILD) -o $(BIN)/built/ $(FOLDERS:%=./%)
	@$(foreach p,$(PROGRAMS),ln -f $(BIN)/built/$(notdir $(lastword $(subst =, ,$p))) $(BIN)/$(firstword $(subst =, ,$p)) &&) true

.PHONY: run
run: build ## Build everything, start `bursar dev`, print the address of the pages.
	$(BIN)/bursar dev

.PHONY: packages
packages: $(NFPM) $(MD2MAN) ## Make RPM and deb packages for amd64 and arm64 in dist/.
	NFPM=$(NFPM) MD2MAN=$(MD2MAN) agent/packaging/build.sh

.PHONY: images
images: ## Make OCI images of the daemons for amd64 and arm64 in dist/, without a container engine.
	agent/packaging/build.sh images

# Packages whose tests wait leave the processors to others.
TWICE = $$((2 * $$(getconf _NPROCESSORS_ONLN)))

.PHONY: test
test: $(GOTESTSUM) ## Run all tests that need only Go. Memory that is lent is overwritten when it is taken back.
	$(CHECK) test ./... -- -tags poison -timeout 30m -p $(TWICE)

.PHONY: race
race: $(GOTESTSUM) ## Run the same tests with the race detector, which takes several times as long; RACE=changed: the packages of the last three days, with fewer repetitions. Needs a C compiler.
	CGO_ENABLED=1 $(CHECK) race $(or $(RACE),all)

.PHONY: e2e e2e-all
e2e: build $(GOTESTSUM) ## Install real schedulers and clients, and run the core of the end-to-end tests, or SUITE=nomad,pages. Needs root on Debian.
	$(GOBUILD) -tags faults -o $(BIN)/faults/bursar ./aggregator
	$(CHECK) e2e $(or $(SUITE),core)

e2e-all: ## Run all end-to-end tests.
	$(MAKE) e2e SUITE=all

.PHONY: check
check: $(GOTESTSUM) ## Run everything that .ci/run runs, and end with a table of what each step found and cost.
	$(CHECK) all

.PHONY: soak
soak: build powercuts ## Run CYCLES (default 2000) cycles of faults, DEATHS (default 500) kills of a leader in mid-action, KILLS (default 500) of daemons of each kind, QUERIES (default 5000) of each of two shards of ClickHouse whose rows are replaced, by SEED (default: the time), the power cuts, the back-fill of 200 000 jobs, and the pages over RECORDS (default 10 million).
	$(GOBUILD) -tags faults -o $(BIN)/faults/bursar ./aggregator
	go test -tags e2e -timeout 0 -count 1 -v ./e2e/faults -run TestSite_Faults -cycles $(or $(CYCLES),2000) -seed $(or $(SEED),$(shell date +%s))
	go test -tags e2e -timeout 0 -count 1 -v ./e2e/faults -run TestActions_LeaderKilledOrPaused -deaths $(or $(DEATHS),500) -seed $(or $(SEED),$(shell date +%s))
	go test -tags e2e -timeout 0 -count 1 -v ./e2e -run '_Kills_|Warehouse_.*KilledAtAnyPoint' -kills $(or $(KILLS),500) -seed $(or $(SEED),$(shell date +%s))
	go test -tags e2e -timeout 0 -count 1 -v ./e2e -run Warehouse_QueriesOverShards -queried $(or $(QUERIES),5000)
	go test -tags e2e -timeout 0 -count 1 -v ./e2e -run TestBackfill_OfAYear -history 200000
	go test -tags e2e -timeout 0 -count 1 -v ./e2e/pages -run TestPages_OfManyRecords -records $(or $(RECORDS),10000000)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 10s) each; FUZZ=turn: those that changed, and some of the others (the check).
	@.ci/fuzz $(or $(FUZZTIME),10s) $(or $(FUZZ),all) $(BUDGET)

.PHONY: powercuts
powercuts: ## Cut the power CUTS times (default 10000), of the store and of the agent's buffer.
	go test -count 1 -timeout 30m -run PowerCut ./aggregator/internal/store ./agent/internal/buffer -cuts $(or $(CUTS),10000)

.PHONY: bench
bench: build ## Measure what DESIGN.md promises; prints each line with its spread.
	go run ./aggregator/bench $(BENCHARGS)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## gofmt, go vet, golangci-lint and a tidy go.mod.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt'ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go mod tidy -diff
	go vet ./...
	go vet -tags e2e ./e2e/...
	$(GOLANGCI_LINT) run ./...

.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) ## Look for known vulnerabilities in Go and the modules that the programs use. Asks vuln.go.dev, or a copy: VULNDB=file:///folder.
	$(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./...

.PHONY: generate
generate: $(BUF) $(PROTOC_GEN_GO) $(PROTOC_GEN_GRPC) ## Generate Go from the .proto files.
	ln -sf $(PROTOC_GEN_GO) $(TOOLS)/protoc-gen-go
	ln -sf $(PROTOC_GEN_GRPC) $(TOOLS)/protoc-gen-go-grpc
	cd proto && $(BUF) generate

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN)

$(TOOLS)/gotestsum-%: ; $(call install,gotest.tools/gotestsum,$*)
$(TOOLS)/govulncheck-%: ; $(call install,golang.org/x/vuln/cmd/govulncheck,$*)
$(TOOLS)/golangci-lint-%: ; $(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$*)
$(TOOLS)/buf-%: ; $(call install,github.com/bufbuild/buf/cmd/buf,$*)
$(TOOLS)/nfpm-%: ; $(call install,github.com/goreleaser/nfpm/v2/cmd/nfpm,$*)
$(TOOLS)/go-md2man-%: ; $(call install,github.com/cpuguy83/go-md2man/v2,$*)
$(TOOLS)/protoc-gen-go-grpc-%: ; $(call install,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$*)
$(TOOLS)/protoc-gen-go-%: ; $(call install,google.golang.org/protobuf/cmd/protoc-gen-go,$*)

# install builds a tool of a version under its own name: $(call install,package,version)
define install
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS)/tmp-$(notdir $(1)) CGO_ENABLED=0 go install $(1)@$(2)
	mv $(TOOLS)/tmp-$(notdir $(1))/* $@
	rmdir $(TOOLS)/tmp-$(notdir $(1))
endef
