# SPDX-License-Identifier: Apache-2.0
# Tests, checks, images and manifests; included by the Makefile.  Tiers of "make test": tests/run --list.
VARIABLES_OF_BUILD := -u MAKEFLAGS -u MFLAGS -u MAKELEVEL
RUN_TESTS = env $(VARIABLES_OF_BUILD) tests/run

deps: ## install what building and testing needs (Debian 12, as root)
	@tests/deps

deps-arm64: ## install the toolchain for ARCH=arm64, too
	@tests/deps arm64

test: deps ## run all tests; the last line counts them
	@$(RUN_TESTS)

test-unit: ## run the unit tests, also with sanitizers and valgrind
	@$(RUN_TESTS) unit unit-asan unit-tsan unit-valgrind

test-fixtures: all ## compare recorded machines with their expected topology and slices
	@$(RUN_TESTS) fixtures

test-integration: all ## run the real binary against a fake API server and kubelet
	@$(RUN_TESTS) integration

test-arm64: ## cross build, and run the unit tests in an emulator
	@$(RUN_TESTS) arm64

test-cluster: all ## run the cluster tests (kind)
	@$(RUN_TESTS) cluster

test-qemu: all ## run the tests on a real kernel (QEMU): hot-plug, links, soft-RoCE
	@$(RUN_TESTS) qemu

lint: ## check style, layering, manifests, scripts and spelling
	@tests/lint/run

fmt: ## format the C files
	@git ls-files -co --exclude-standard '*.[ch]' | xargs -r clang-format-14 -i --style=file

demo: deps ## bring up a cluster with fake machines and show twinrail in it
	@$(MAKE) --no-print-directory all
	@tests/cluster/demo

demo-clean: ## take the demonstration's cluster down
	@tests/cluster/lab down

bench: all $(BUILD)/bench/floor $(BUILD)/bench/discover ## measure against the budgets of docs/design.md
	@$(BUILD)/bench/discover; missed=$$?; $(BUILD)/bench/discover --rescan 10000 && \
		tests/bench/callgrind $(BUILD)/bench/discover && tests/cluster/bench && exit $$missed

bench-discover: $(BUILD)/bench/discover ## how long the machine is read, and that memory does not grow
	@$<
	@$< --rescan 10000

bench-callgrind: $(BUILD)/bench/discover ## count the instructions of a scan and compare with those kept
	@tests/bench/callgrind $<

$(BUILD)/bench/%: tests/bench/%.c $(LIB)
	$(Q)mkdir -p $(@D); echo "  LD    $@"; $(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) $(LDFLAGS) -o $@ $^ $(LIBS)

test-fuzz: ## fuzz what reads data from outside, one minute each
	@$(RUN_TESTS) fuzz

fuzz-long: ## fuzz a million inputs each (an hour or more)
	@$(RUN_TESTS:run=fuzz/run) --runs 1000000

# Fuzz targets are built by tests/fuzz/run, with clang and SANITIZER=fuzzer-no-link,…
FUZZ_SRCS := $(wildcard $(addprefix driver/,base/*.c loop/*.c hw/*.c topo/*.c)) \
	$(addprefix driver/publish/,attributes.c devices.c slices.c values.c)
fuzz-targets: $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*.c))

$(BUILD)/fuzz/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(call obj,$(FUZZ_SRCS))
	$(Q)mkdir -p $(@D); echo "  FUZZ  $@"; $(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(WARN) $(LDFLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c %.o,$^) $(LIBS)

image: ## build build/twinrail-image.tar from the Dockerfile
	@tests/cluster/image

deploy: ## render deploy/ from the Helm chart
	@deploy/render

.PHONY: deps deps-arm64 test test-unit test-fixtures test-integration test-arm64 test-cluster test-qemu lint fmt \
	demo demo-clean bench bench-discover bench-callgrind test-fuzz fuzz-long fuzz-targets image deploy
