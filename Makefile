# What a person types. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

target := $(or $(CARGO_TARGET_DIR),target)
cache := $(or $(ROWGATE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rowgate)
bin := $(target)/debug/rowgate-dataplane
operator := $(target)/debug/rowgate-operator
cli := $(target)/debug/rowgate

# Where `make run` finds its manifests, keeps its state and listens: make run MANIFESTS=my-folder
MANIFESTS ?= examples/shop
STATE ?= .rowgate
# SQL that `make run` runs once in the PostgreSQL that it starts: the folder's own, where it has one. PREPARE= runs none.
PREPARE ?= $(wildcard $(MANIFESTS)/prepare.sql)

# Which PostgreSQL runs: POSTGRES=16 (17, 18) is the pinned one of that version. Without it, the newest installed, and where
# there is none that is new enough the pinned 18. ROWGATE_PINNED=1 takes only what set-up downloads, of everything.
POSTGRES ?= $(if $(ROWGATE_PINNED),18)
export POSTGRES ROWGATE_PINNED
on = ROWGATE_POSTGRES_BIN="$$(tests/setup/postgres.sh $(1))"; export ROWGATE_POSTGRES_BIN;
on_postgres = $(if $(POSTGRES),$(call on,$(POSTGRES)))

as_tests = export RUST_TEST_THREADS=$${RUST_TEST_THREADS-$$(($$(nproc) + 2))} PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED-2026} \
  ROWGATE_BIN="$$(realpath $(bin))" ROWGATE_OPERATOR_BIN="$$(realpath $(operator))" ROWGATE_CLI_BIN="$$(realpath $(cli))";

# The part of the tests that `make test` runs on the oldest version, too, unless one was asked for.
oldest_too = $(filter-out 16 17,$(or $(POSTGRES),installed))
on_oldest := launcher:: roles::refused roles::exclusive wire:: writes::rows writes::upserts writes::views writes::versioned::protected \
  scenarios::failures::closing::on_folder scenarios::deleting::on_folder scenarios::edits::on_folder --skip pooler --skip pass_through

# Seconds for each target of `make fuzz`, and which ones: make fuzz FUZZ_TARGETS=filter
FUZZ_SECONDS ?= 300
FUZZ_TARGETS ?= filter cursor query token key

# How much `make soak` asks and of which seeds on: make soak CASES=10000 SEED=7
CASES ?= 100000
SEED ?= 1
soaks := writes::protection::writers::of_writers_with_one_version_exactly_one_wins \
  reads::differential::a_key_reads_what_its_role_reads_and_what_the_manifest_means \
  reads::differential::a_key_changes_what_its_role_changes_and_what_the_manifest_means \
  writes::versioned::racing::of_writers_with_one_version_exactly_one_is_answered_200 \
  reads::paging::terms::a_filter_finds_what_an_oracle_finds \
  http::fault_injection::aborts::clients_that_go_away_leave_nobody_their_rows \
  events::ledger::each_committed_change_is_given_once_and_in_the_order_of_its_row \
  reads::differential::events::a_key_is_given_the_events_that_the_manifest_means \
  reads::differential::adopted::a_key_of_an_adopted_database_reads_what_the_manifest_means_and_others_read_every_row \
  graphql::random::random_queries_give_what_rest_gives_and_nothing_else \
  webhooks::crash::every_event_is_delivered_and_in_the_order_of_its_row_whatever_is_killed \
  openapi::requests::schemathesis_finds_no_answer_that_is_not_documented

# Flags of the benchmark: make bench BENCH='--only row --rounds 3', BENCH='--only reconcile --objects 1000', or BENCH='--only exports --rows 1000000'
BENCH ?=

.PHONY: help run cluster check test soak bench messages lint fmt deny crds fuzz postgres pgbouncer clients apps kubernetes console chromium tools clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: tools postgres ## bring up the example shop, a console for the browser, and curl lines; Ctrl-C stops it, the data stays in .rowgate
	@cargo build --package rowgate-dataplane
	@# Without Node.js 20 it says what the console lacks, and runs.
	@$(on_postgres) console="$$(tests/setup/console.sh || true)"; \
	  exec $(bin) standalone --manifests $(MANIFESTS) --state $(STATE) $(if $(PREPARE),--prepare $(PREPARE)) $${console:+--console "$$console"}

cluster: tools postgres kubernetes ## bring up a Kubernetes API server, the operator and two data planes, and apply the example shop; Ctrl-C ends it
	@cargo build --workspace --bins
	@$(on_postgres) ROWGATE_BIN="$$(realpath $(bin))" ROWGATE_OPERATOR_BIN="$$(realpath $(operator))" exec $(target)/debug/rowgate-cluster

check: tools ## format, clippy, the unit tests and the rules of the sources, in a minute once it is compiled: no server is started
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo test --workspace --lib --bins --quiet
	cargo test --workspace --test tidy --quiet

test: tools postgres clients apps console chromium pgbouncer kubernetes ## all tests, against a real PostgreSQL (POSTGRES=16: the pinned one of that version)
	@$(if $(oldest_too),tests/setup/postgres.sh 16 >/dev/null)
	@# The end-to-end tests start these programs.
	cargo build --workspace --bins
	@# Properties are tried with one seed here, so that a change fails for what it changed; unset it to look further.
	@# Most tests wait for processes of their own: two more than there are cores take a quarter less time.
	@$(as_tests) $(on_postgres) set -x; cargo test --workspace --lib --bins --tests
	@$(if $(oldest_too),$(as_tests) $(call on,16) set -x; cargo test --workspace --test it -- $(on_oldest))

soak: tools postgres clients ## ask CASES=100000 random cases of each kind from SEED=1 on (5000 take 2 minutes); a failure says how to repeat it
	cargo build --workspace --bins
	@$(on_postgres) for test in $(soaks); do \
	  ROWGATE_CASES=$(CASES) ROWGATE_SEED=$(SEED) ROWGATE_BIN="$$(realpath $(bin))" ROWGATE_OPERATOR_BIN="$$(realpath $(operator))" cargo test --quiet --package rowgate-tests --test it -- --nocapture --exact $$test; \
	done

bench: tools postgres ## how fast reads are, as ratios beside pgbench, PostgREST, Postrust and a control (10 minutes)
	cargo build --release --package rowgate-dataplane --package rowgate-operator --package rowgate-bench
	$(on_postgres) tools=$$(tests/setup/bench.sh); ROWGATE_BIN="$$(realpath $(target)/release/rowgate-dataplane)" \
		ROWGATE_OPERATOR_BIN="$$(realpath $(target)/release/rowgate-operator)" \
		$(target)/release/rowgate-bench --tools "$$tools" $(BENCH)

lint: tools ## format, clippy, documentation links; cargo-deny too, once `make deny` has installed it
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --document-private-items --quiet
	@if [ -x $(cache)/tools/bin/cargo-deny ]; then $(cache)/tools/bin/cargo-deny check bans licenses sources; fi

messages: tools ## print every message that a user can read, as file:line: text
	@cargo run --quiet --package rowgate-tests --bin rowgate-messages

fmt: tools ## format everything
	cargo fmt --all

deny: tools ## install cargo-deny into the cache (minutes, once) and check licences and duplicates
	cargo install --locked --root $(cache)/tools --target-dir $(cache)/tools-target cargo-deny@0.20.2
	$(cache)/tools/bin/cargo-deny check bans licenses sources

crds: tools ## write crds/*.yaml from the Rust types, for the chart too
	cargo run --quiet --package rowgate-crds --bin crdgen tenant > crds/tenant.yaml
	cargo run --quiet --package rowgate-crds --bin crdgen apikey > crds/apikey.yaml
	cargo run --quiet --package rowgate-crds --bin crdgen relationship > crds/relationship.yaml
	cargo run --quiet --package rowgate-crds --bin crdgen webhooksubscription > crds/webhooksubscription.yaml
	cp crds/*.yaml charts/rowgate/crds/

fuzz: tools ## give the parsers what libFuzzer invents, FUZZ_SECONDS (300) for each of FUZZ_TARGETS
	@tests/setup/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

postgres: tools ## put a PostgreSQL into the cache if it is not there and no other is installed
	@tests/setup/postgres.sh $(POSTGRES) >/dev/null

pgbouncer: tools ## put a PgBouncer into the cache unless one is installed
	@tests/setup/pgbouncer.sh >/dev/null

clients: tools ## put the public clients that tests show our tokens and documents to into the cache if they are not there
	@tests/setup/clients.sh >/dev/null

apps: tools ## put the applications whose databases tests adopt into the cache if they are not there
	@tests/setup/apps.sh >/dev/null

console: tools ## bundle the console of standalone into the cache if it is not there, and print the folder for --console
	@tests/setup/console.sh

chromium: tools ## install Debian's headless Chromium, in which the console is tested, unless there is one
	@tests/setup/chromium.sh >/dev/null

kubernetes: tools ## build an API server, etcd and kubectl into the cache if they are not there (4 minutes, once; Go 1.26)
	@tests/setup/cluster.sh >/dev/null

# What is missing is named at once, before anything is built.
tools:
	@tests/setup/preflight.sh $(MAKECMDGOALS)

clean: ## remove what was built here (the cache and .rowgate stay)
	cargo clean
