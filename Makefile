# make build    the binary, ./airlock
# make demo     shows what it does, on a scratch workspace; needs nothing but Go
# make test     the tests that any machine with Go can run; lists what it did not run
# make check    everything, as CI runs it; as root it also plays the ordinary user CHECK_USER
# make posix    programs in a run against the same programs bare: CPython's tests, git, random calls
# make conformance  the protocol's public suite and MCP Inspector, from npm; part of check
# make bench    what a run costs, as ratios
# make fuzz     every fuzz target for FUZZTIME each

SHELL := /bin/bash
GO ?= go
# The directory of the black-box cases and their runner, which are kept apart from the code.
CASES ?= ../shared/cases
# The ordinary user that root's "make check" plays the second half as.
CHECK_USER ?=
FUZZTIME ?= 30s

export CHECK_USER

TOOL := $(GO) tool -modfile=tools.mod

.PHONY: build demo test check posix bench fuzz
.DEFAULT_GOAL := build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o airlock .

demo: build
	$(GO) run ./internal/demo ./airlock

test:
	$(GO) run ./internal/gotest -timeout=30m ./...
	@echo "not run: the race detector, the suites that must not skip, fuzzing, clients and black-box cases (make check)"

# POSIX are its flags, as in POSIX='-only trees -trees 2000 -rounds 5'.
POSIX ?=
posix: build
	.ci/posix $(POSIX)

bench: build
	$(GO) run ./internal/bench ./airlock

# Its figures mean nothing; each run that it times must do its work.
bench-briefly: build
	$(GO) run ./internal/bench -rounds 1 ./airlock start ready work > /dev/null

fuzz:
	.ci/fuzz $(FUZZTIME)

# In this order: what is cheap and fails often comes first.
.PHONY: format tidy vet staticcheck tests fuzz-briefly clients conformance bench-briefly cases vulnerabilities
check:
	@for step in format tidy vet staticcheck build tests demo clients conformance bench-briefly cases fuzz-briefly vulnerabilities; do \
		echo "=== $$step"; start=$$SECONDS; \
		$(MAKE) --no-print-directory $$step || { echo "FAIL: make $$step"; exit 1; }; \
		echo "=== $$step: $$((SECONDS - start)) s"; \
	done; \
	echo "=== every check passed in $$SECONDS s"

format:
	@bad=$$($(TOOL) gofumpt -l .); [ -z "$$bad" ] || { echo "not formatted by gofumpt:"; echo "$$bad"; exit 1; }

tidy:
	$(GO) mod tidy -diff

vet:
	$(GO) vet ./...
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) vet ./...

staticcheck:
	$(TOOL) staticcheck ./...

tests:
	.ci/tests

clients: build
	testdata/clients/oneshot/run ./airlock
	$(GO) run ./testdata/clients/go ./airlock
	testdata/clients/typescript/run ./airlock

# Hundreds of megabytes of npm packages, and a new node where the host's is old; most of the time is npm's, so that
# both go on at once.
conformance: build
	@testdata/clients/conformance/run & suite=$$!; \
	testdata/clients/inspector/run ./airlock; inspector=$$?; \
	wait $$suite && exit $$inspector

cases: build
	.ci/cases $(CASES)

fuzz-briefly:
	.ci/fuzz 3s

vulnerabilities:
	.ci/vulnerabilities
