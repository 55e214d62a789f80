# Everything that builds, runs and checks fullstroke. `make help` lists it.

CARGO ?= cargo
SHELL := /bin/bash
# What `make test` answers depends on the code alone: properties are held to the
# same cases each time. `cargo test` draws new ones; `make test
# PROPTEST_RNG_SEED=7` others.
PROPTEST_RNG_SEED ?= 1
# More than processors: tests of servers mostly wait.
RUST_TEST_THREADS ?= $(shell expr 2 \* $$(nproc))

.PHONY: help book demo install uninstall release test checks python-check clients soak live-check memory-check kernel-check kernel-lab bench instructions lint deny minimum-rust simulation-only site web web-check docs storeys pictures generate samples fuzz toolchain toolchain-c studies held-out

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

toolchain-c:
	@[ -c /dev/null ] || { echo "/dev/null is no device here, and cargo fails in strange ways then. Mend it: sudo sh -c 'rm -f /dev/null; mknod -m 666 /dev/null c 1 3'"; exit 2; }
	@command -v cc >/dev/null || { echo "A C compiler is missing (zstd and xz are built from source). Install it: sudo apt-get install -y build-essential"; exit 2; }

toolchain: toolchain-c
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing. Install it: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"; exit 2; }
	@$(CARGO) fmt --version >/dev/null 2>&1 || { echo "rustfmt is missing. Install it: rustup component add rustfmt"; exit 2; }
	@$(CARGO) clippy --version >/dev/null 2>&1 || { echo "clippy is missing. Install it: rustup component add clippy"; exit 2; }

demo: toolchain ## Build, then rank four ways of laying out five disks under a captured workload
	@$(CARGO) build --release --quiet --package fullstroke
	target/release/fullstroke compare stacks/demo/*.toml

PREFIX ?= /usr/local
BINARY ?= target/release/fullstroke
INTO = $(DESTDIR)$(PREFIX)
INSTALLED = $(INTO)/bin/fullstroke $(INTO)/share/bash-completion/completions/fullstroke \
	$(INTO)/share/zsh/site-functions/_fullstroke $(INTO)/share/fish/vendor_completions.d/fullstroke.fish

install: ## Install what was built, completions and manual pages below PREFIX (/usr/local); DESTDIR stands in front
	@[ -x $(BINARY) ] || { echo "$(BINARY) is not there. Build it: cargo build --release --package fullstroke"; exit 2; }
	install -D -m 755 $(BINARY) $(INTO)/bin/fullstroke
	install -d $(dir $(INSTALLED)) $(INTO)/share/man/man1
	$(BINARY) completions bash > $(INTO)/share/bash-completion/completions/fullstroke
	$(BINARY) completions zsh > $(INTO)/share/zsh/site-functions/_fullstroke
	$(BINARY) completions fish > $(INTO)/share/fish/vendor_completions.d/fullstroke.fish
	$(BINARY) man $(INTO)/share/man/man1

uninstall: ## Take away what `make install` put there
	rm -f $(INSTALLED) $(INTO)/share/man/man1/fullstroke.1 $(INTO)/share/man/man1/fullstroke-*.1

release: toolchain ## One static program (musl), completions, manual pages and licences as a .tar.gz in target/release-files
	@tools/release.sh

clients: ## Install the programs that tests use as clients, if this host allows it
	@tools/clients.sh

# Tests of servers and of files wait much of their time, and tests of simulations compute. The tests in the sources
# (and then those in the documentation) run beside the tests of the folders `tests`, so that a processor seldom rests.
test: ## Format, lints, docs, all tests
	@$(MAKE) --no-print-directory --jobs=2 clients checks
	@mkdir -p target
	@set -o pipefail; export PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED) RUST_TEST_THREADS=$(RUST_TEST_THREADS); status=0; \
	trap 'trap - TERM; kill 0' INT TERM; \
	$(CARGO) test --workspace --tests --no-run || exit 1; \
	{ sources=0; $(CARGO) test --workspace --lib --bins --no-fail-fast -- --show-output || sources=1; \
		$(CARGO) test --workspace --doc --no-fail-fast || sources=1; exit $$sources; } >target/source-tests.log 2>&1 & \
	$(CARGO) test --workspace --test '*' --no-fail-fast -- --show-output 2>&1 | tee target/tests.log || status=1; \
	wait $$! || status=1; tee -a target/tests.log <target/source-tests.log; \
	sed -nE 's/^skipped: /  /Ip' target/tests.log | sort | uniq -c | awk 'NR == 1 { print "skipped in tests, and why:" } { print }'; \
	awk '/^failures:$$/ { told = 1; lines = 0 } /^test result:/ { told = 0 } told && lines++ < 60' target/tests.log; \
	awk '/^test result:/ { passed += $$4; failed += $$6; skipped += $$8 } \
		END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' target/tests.log; exit $$status

python-check: toolchain ## Build the Python module in an environment of its own, and test it
	@python3 -m venv target/python-env && target/python-env/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' pytest pyarrow distributed polars matplotlib \
		|| { echo "skipped: pip cannot install maturin, pytest and what they test with here"; exit 0; }; \
	VIRTUAL_ENV=$(CURDIR)/target/python-env target/python-env/bin/maturin develop --quiet && target/python-env/bin/python -m pytest -q python/tests

checks: lint
	@$(MAKE) --no-print-directory docs

lint: toolchain ## Format check and clippy, warnings denied
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 crates/input/trace/src/formats/*.rs docs/examples/*.rs
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v python3 >/dev/null; then tools/plain-words.py --check; else echo 'skipped: Python is missing (tools/plain-words.py counts habits of prose)'; fi

deny: toolchain ## Licences, advisories, bans and sources of all dependencies (cargo-deny, deny.toml)
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check; \
		else echo 'skipped: cargo-deny is not installed; install it: cargo install cargo-deny --locked'; fi

# Read from the manifest, so that there is one place to change.
MINIMUM_RUST = $(shell sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml)

minimum-rust: toolchain-c ## Compile everything with the declared minimum Rust version (rust-version in Cargo.toml)
	@command -v rustup >/dev/null || { echo "rustup is missing, which has older versions of Rust. Install it: https://rustup.rs"; exit 2; }
	rustup toolchain install $(MINIMUM_RUST) --profile minimal
	$(CARGO) +$(MINIMUM_RUST) check --workspace --locked --target-dir target/minimum-rust

# Crates that a build of simulations alone must not have: TLS, terminal screen, Parquet, C libraries.
NOT_FOR_SIMULATION = rustls|ring|ratatui|crossterm|parquet|zstd-sys|liblzma-sys|cc|io-uring

simulation-only: toolchain ## Compile the simulation alone (no default features), and see that left-out commands say so
	$(CARGO) clippy --quiet --package fullstroke --no-default-features -- -D warnings
	@found=$$($(CARGO) tree --package fullstroke --no-default-features --edges normal,build --prefix none | grep -E '^($(NOT_FOR_SIMULATION)) ' | sort -u); \
		[ -z "$$found" ] || { echo "the build of simulations alone has: $$found"; exit 1; }
	tools/simulation-only.sh

web: toolchain-c ## Compile the module for browsers, without a release build (needs: rustup target add wasm32-unknown-unknown)
	$(CARGO) clippy --quiet --no-deps --target wasm32-unknown-unknown --package fullstroke-web -- -D warnings
	@found=$$($(CARGO) tree --target wasm32-unknown-unknown --package fullstroke-web --edges normal --prefix none | grep -E '^($(NOT_FOR_SIMULATION)) ' | sort -u); \
		[ -z "$$found" ] || { echo "the module for browsers has: $$found"; exit 1; }

site: toolchain-c ## The advisor's page and the book in target/site, the npm package in target/npm
	@tools/site.sh

# The native program whose numbers the module must have.
WEB_PROGRAM ?= target/release/fullstroke

web-check: ## The page clicked through in Chromium, the module held to the native program, the package's tests, sizes
	@command -v node >/dev/null || { echo "skipped: Node is missing (the tests of the page are JavaScript)"; exit 0; }; \
	tools/site.sh; status=$$?; [ $$status = 3 ] && { echo "skipped: web-check"; exit 0; }; [ $$status = 0 ] || exit 1; \
	[ -x $(WEB_PROGRAM) ] || $(CARGO) build --release --quiet --package fullstroke || exit 1; \
	node web/tests/equality.mjs $(WEB_PROGRAM) target/site/fullstroke.wasm && (cd target/npm && node test.mjs) \
		&& { npm install --silent --no-audit --no-fund --prefix target/web-tools axe-core@4 typescript@5 >/dev/null 2>&1 || echo "skipped: npm cannot install axe-core and TypeScript here"; } \
		&& { [ ! -x target/web-tools/node_modules/.bin/tsc ] || target/web-tools/node_modules/.bin/tsc --noEmit --strict --skipLibCheck false --target es2022 --module nodenext web/tests/types.ts; } \
		&& AXE=$$(ls target/web-tools/node_modules/axe-core/axe.min.js 2>/dev/null) node web/tests/page.mjs target/site target/screenshots && node tools/web-sizes.mjs target/site && node tools/web-speed.mjs $(WEB_PROGRAM) target/site/fullstroke.wasm 3

docs: toolchain ## API documentation, warnings denied
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

book: ## docs/ as a site in target/book, by mdBook
	@command -v mdbook >/dev/null || { echo "mdBook is missing. Install it: cargo install mdbook --version '^0.4'"; exit 2; }
	@command -v python3 >/dev/null || { echo "Python is missing (it names links that leave docs/). Install it: sudo apt-get install -y python3"; exit 2; }
	mdbook build

storeys: ## Draw docs/storeys.svg again, after a crate has come or gone
	@tools/draw-storeys.py

pictures: toolchain ## Draw docs/access.svg, docs/raid5-plan.svg and docs/nbd-byte.svg again, with times of the program
	@$(CARGO) build --release --quiet --package fullstroke
	@tools/draw-pictures.py

bench: toolchain ## Speed and memory of simulation and trace reading, printed
	@$(CARGO) bench --quiet --package fullstroke --bench speed
	@printf '\nInstructions of a request, which do not vary with the load of the machine:\n'
	@tools/instructions.py target/release/fullstroke --build
	@printf '\nAddress maps on one core, aim 50 M/s:\n'
	@$(CARGO) run --release --quiet --package fullstroke-volume --example map_speed
	@printf '\nLook-ups in a page cache of 1 GiB on one core, aim 5 M/s:\n'
	@$(CARGO) run --release --quiet --package fullstroke-memory --example cache_speed
	@printf '\nA sweep on a Dask cluster of this machine, aim 90 %% of what two bare processes gain:\n'
	@if [ -x target/python-env/bin/maturin ]; then export VIRTUAL_ENV=$(CURDIR)/target/python-env; \
		"$$VIRTUAL_ENV/bin/maturin" develop --quiet --release && "$$VIRTUAL_ENV/bin/python" tools/cluster-bench.py; \
		else echo 'skipped: there is no Python module with Dask; make python-check installs it'; fi
	@printf '\nThe race of tune on functions whose best of 200 points is known, aim 95 %% right at 15 %%, beside Optuna (about 5 minutes):\n'
	@$(CARGO) build --release --quiet --package fullstroke-lab --example tune_bench
	@if python3 -m venv target/optuna-env; then target/optuna-env/bin/pip install --quiet --disable-pip-version-check 'optuna>=4,<6'; \
		target/optuna-env/bin/python tools/tune-bench.py target/release/examples/tune_bench; else echo 'skipped: there is no Python with venv'; fi

instructions: toolchain ## Hold the instructions of a simulated request to bench/instructions.json (valgrind; about 15 minutes)
	@tools/instructions.py target/release/fullstroke --build --check

SOAK_SECONDS ?= 3600

soak: toolchain ## An array under load, killed, assembled and compared again and again for SOAK_SECONDS (an hour)
	@FULLSTROKE_SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --quiet --package fullstroke --test live -- --ignored --nocapture soak

live-check: toolchain clients ## One job under both clocks, and the speed of serve (about 7 minutes)
	@$(CARGO) build --release --quiet --package fullstroke
	@tools/live-check.py

memory-check: toolchain clients ## The kernel's page cache beside ours: hits, flushes (root, Linux, about 8 minutes)
	@$(CARGO) build --release --quiet --package fullstroke
	@$(CARGO) build --release --quiet --package fullstroke-memory --example replay
	@tools/memory-check.py

kernel-check: toolchain clients ## The kernel's elevators beside ours, on a served disk (root, Linux, about 10 minutes)
	@$(CARGO) build --release --quiet --package fullstroke
	@tools/kernel-check.py

# The kernel of this host, or a package: make kernel-lab KERNEL=linux-image-6.12...deb
KERNEL ?= /

kernel-lab: ## Member I/O of a real kernel's md for samples/kernel-lab, into target/kernel-lab (QEMU, about an hour)
	@mkdir -p target/kernel-lab; lab() { \
		scenario=$$1; shift; \
		tools/kernel-lab.py samples/kernel-lab/$$scenario.txt --kernel $(KERNEL) --out target/kernel-lab/$$scenario.txt "$$@"; \
		status=$$?; [ $$status = 2 ] && { echo "skipped: kernel-lab"; exit 0; }; [ $$status = 0 ] || exit 1; }; \
	for scenario in parity copies drawn; do lab $$scenario; done; \
	for scenario in ties degraded copies-more; do lab $$scenario --members 12; done; \
	for scenario in streams streams-more streams-wide; do lab $$scenario --elevator mq-deadline --max-sectors 2560; done; \
	lab rebuilds --counted --elevator mq-deadline --max-sectors 2560 --latency-us 100000 --step-us 3000 --gib 4; \
	lab growth --counted --wbt 0 --latency-us 20000 --step-us 500 --elevator mq-deadline --max-sectors 2560 --queue 1024; \
	lab overload --counted --elevator mq-deadline --max-sectors 2560 --latency-us 10000 --queue 1 --gib 4; \
	lab streams-copies; lab records --metadata; lab logs --metadata --counted --wbt 0 --members 9 --latency-us 20000 --step-us 500; lab caches --cache --gib 4 --latency-us 100000 --flash-us 10000; lab bitmap --metadata --members 6 --gib 24000 --latency-us 20000

generate: toolchain ## Write again what is generated: JSON schemas, docs/reference/, docs/fio.md, docs/metrics.md
	FULLSTROKE_GENERATE=1 $(CARGO) test --quiet --package fullstroke-stack --package fullstroke-study --test generated

samples: toolchain ## Capture the sample workloads again (root, Linux, about 20 minutes)
	@$(CARGO) build --release --quiet --package fullstroke
	samples/capture.sh

studies: toolchain ## Run all studies, write their RESULTS.md, check their claims (about half an hour; goes on where it was; status 1 while claims fail unexplained)
	@$(CARGO) build --release --quiet --package fullstroke
	target/release/fullstroke study run
	target/release/fullstroke study results --write
	target/release/fullstroke study check

held-out: toolchain ## Hold the verdicts of all studies against other seeds and other free choices, and write their pages again (about two hours; Carroll takes half)
	@$(CARGO) build --release --quiet --package fullstroke
	target/release/fullstroke study check --seeds 1 --vary-free --replications 3 --record
	target/release/fullstroke study results --write

fuzz: ## Fuzz each reader of foreign files for ten minutes (needs cargo-fuzz)
	cd fuzz && for target in trace_any trace_detect disksim_parameters disksim_seek disksim_layout nbd_server fio_job study_expression fs_script postmark_configuration strace; do \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target --fuzz-dir . -- -max_total_time=600 || exit 1; done
