# Tool versions are pinned only here. Each tool is built from source with the dependency versions of its own go.mod.
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := go run golang.org/x/vuln/cmd/govulncheck@v1.8.0

# The other modules of this repository. Programs that embed Stile, and users of stile alone, do not get their dependencies.
MODULES := bench extension/pack/sigstore conformance/extism
# Guests in Go, which only compile to WebAssembly.
GUESTS := guest-sdk/go guest-sdk/testdata/go examples/notes/go conformance/extism/testdata/go
# Workspaces of crates in Rust, and guests in it. They share what is built of other crates.
CRATES      := guest-sdk/rust guest-sdk/rust/generate
RUST_GUESTS := guest-sdk/testdata/rust examples/notes/rust
CARGO := CARGO_TARGET_DIR=$(CURDIR)/guest-sdk/rust/target cargo
in_modules = set -e; for m in $(MODULES); do (cd $$m && $(1)); done
# Omits debugger tables (panics keep function names and line numbers). With GNU ld, also omits engine functions that nothing calls.
comma := ,
BUILD := build -trimpath -ldflags "-s -w $(if $(filter Linux,$(shell uname -s)),-extldflags=-Wl$(comma)--gc-sections)"
BIN := $(CURDIR)/bin
# The last revision in which every call that waits took a thread.
EARLIER := 1d5781d

.DEFAULT_GOAL := help
.PHONY: help build build-stile demo check fmt fmt-check lint vet tidy-check generate generate-check vuln test test-go test-host test-packed test-embed test-types test-rust rust-check long long-check packages test-bench bench bench-results bench-core bench-languages bench-peers bench-workspace

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: build-stile ## build bin/stile and the programs that it starts
	go -C bench $(BUILD) -o $(BIN)/stile-bench ./cmd/stile-bench
	go -C extension/pack/sigstore $(BUILD) -o $(BIN)/stile-sigstore ./cmd/stile-sigstore

build-stile: ## build bin/stile alone
	go $(BUILD) -o $(BIN)/stile ./cmd/stile

demo: build-stile ## build bin/stile, obtain the engine and run three example tools; the last is denied, and the error says what would allow it
	.ci/demo bin/stile

# in_steps makes targets one after the other and prints how long each took.
in_steps = set -e; for t in $(1); do .ci/step $(MAKE) --no-print-directory $$t; done

check: ## run all checks other than the tests
	@$(call in_steps,fmt-check vet lint tidy-check generate-check rust-check long-check vuln)

fmt: ## format the Go and Rust code
	$(GOLANGCI_LINT) fmt
	set -e; for c in $(CRATES) $(RUST_GUESTS); do (cd $$c && $(CARGO) fmt --all); done

fmt-check:
	$(GOLANGCI_LINT) fmt --diff

# The linter also vets, without the tag packed. So every file is vetted, and most of them once.
vet:
	go vet -tags long,packed ./...
	$(call in_modules,go vet ./...)
	set -e; for m in $(GUESTS); do (cd $$m && GOOS=wasip1 GOARCH=wasm go vet ./...); done

lint: ## run the linters
	$(GOLANGCI_LINT) run
	$(call in_modules,$(GOLANGCI_LINT) run)

# The tests of a dependency's tests require a version of pprof that is sometimes unavailable: -e ignores that, and its sums are not compared.
tidied = ! go mod tidy -e -diff | grep '^[-+][^-+]' | grep -v github.com/google/pprof

tidy-check:
	$(tidied)
	cd examples/embed && $(tidied)
	set -e; for m in $(GUESTS); do (cd $$m && $(tidied)); done
	$(call in_modules,$(tidied))
	go mod verify

generate: ## regenerate the generated files
	go generate ./...

generate-check:
	.ci/unchanged make --no-print-directory generate

# Part of the SDK is only for WebAssembly, so the guests are checked for it.
rust-check: ## check the format of the Rust code, and run its linter
	@$(CARGO) clippy --version >/dev/null && $(CARGO) fmt --version >/dev/null || { echo 'cargo needs clippy and rustfmt: rustup component add clippy rustfmt, or the Debian packages rust-clippy and rustfmt' >&2; exit 1; }
	set -e; for c in $(CRATES) $(RUST_GUESTS); do (cd $$c && $(CARGO) fmt --all --check); done
	set -e; for c in $(CRATES); do (cd $$c && $(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings); done
	set -e; for c in $(RUST_GUESTS); do (cd $$c && $(CARGO) clippy --quiet --locked --target wasm32-unknown-unknown -- -D warnings); done

vuln: ## look for known vulnerabilities that the code can reach; needs the network
	.ci/vulncheck $(GOVULNCHECK) ./...
	$(call in_modules,$(CURDIR)/.ci/vulncheck $(GOVULNCHECK) ./...)

test: ## run every test
	@$(call in_steps,test-go test-host test-packed test-embed test-types test-rust)

test-go:
	go test -timeout 25m ./... # on two slow processors, one package takes nearly the ten minutes that are the default
	$(call in_modules,go test ./...)

test-host: ## run the host's tests again, with the race detector and with strict cgo checks
	go test -race -skip '^TestConversionsAreBounded$$|^TestTextsWaitForRoom$$|^TestCompilerFails$$/^eat$$|^TestNoOperationHoldsTheLock$$|^TestManyBytesAtOnce$$|^TestReadingTakesLittle$$' ./host/... # these measure memory, of which the detector uses much, or take a minute with it
	GODEBUG=cgocheck=1 GOGC=1 go test -skip '^TestCompilerFails$$/^eat$$' ./host ./host/internal/...

test-packed: ## run tests again with a host that takes the instance away from calls at each wait; make long runs all of them so
	go test -tags packed ./toolchain ./extension/trial

test-embed: ## vet and test the example program that embeds Stile (a separate module)
	cd examples/embed && go vet ./... && go test ./...

# The examples' compiler also checks the prelude.
test-types: ## check the types of the TypeScript examples, the SDK and the prelude
	cd examples && npm ci --ignore-scripts --no-audit --no-fund
	cd examples && npx --no-install tsc -p . && npx --no-install tsc -p embed && npx --no-install tsc -p notes && npx --no-install tsc -p durable && npx --no-install tsc -p ../toolchain/prelude && npx --no-install tsc -p ../ladder
	.ci/packed-types

test-rust: ## test the SDK for Rust and its documentation; its guests are tested with the Go tests
	cd guest-sdk/rust && $(CARGO) test --quiet --locked --workspace

long: ## run the tests that take minutes, in all packages or in PACKAGES; writes bench/results/long.json, which you commit
	go -C bench run ./long $(PACKAGES)
	go test -tags packed -timeout 30m $(or $(PACKAGES),./...)

long-check: # list code that has changed since the report of make long
	go -C bench run ./long -check

packages: ## build and call a tool for each npm package of the list, and write docs/packages.md; needs the registry and takes minutes; make long checks the same
	go test -tags long ./toolchain/npm -run '^TestLongPackages$$' -timeout 30m -table $(CURDIR)/docs/packages.md

test-bench: ## test the installed contenders of the benchmarks; takes minutes
	STILE_TEST_CONTENDERS=1 go -C bench test -timeout 30m ./contenders

bench: build ## compare this host with containers and other isolates, and with HOST='COMMAND' by the conformance protocol; writes bench/out/suite
	bin/stile bench run $(if $(HOST),--host '$(HOST)') --out bench/out/suite

bench-results: ## copy the results of make bench, make bench-core, make bench-languages and make bench-peers to bench/RESULTS.md
	bin/stile bench report bench/out/suite
	mkdir -p bench/results && rm -f bench/results/*.svg && cp bench/out/suite/*.svg bench/results/
	sed 's/](\([a-z0-9-]*\.svg\))/](results\/\1)/' bench/out/suite/report.md | cat - bench/out/core.md bench/out/languages.md bench/out/peers.md > bench/RESULTS.md

bench-core: ## measure start, calls and memory; writes bench/out/core.json
	go -C bench run ./core -earlier $(EARLIER) -out out/core.json

bench-languages: ## measure one tool in each language whose toolchain is here; writes bench/out/languages.json
	go -C bench run ./languages -out out/languages.json

bench-peers: ## compare durable runs with those of DBOS, Temporal and Restate, as far as they start here; writes bench/out/peers.json
	go -C bench run ./peers -out out/peers.json

bench-workspace: ## compare workspaces with plain files; writes bench/out/workspace.json
	go -C bench run ./workspace -out out/workspace.json
