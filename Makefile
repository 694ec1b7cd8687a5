# SPDX-License-Identifier: Apache-2.0
# twinrail: see "make help".  Options: V=1 CC=clang WERROR=1 SANITIZER=address|undefined|thread
# ARCH=amd64|arm64 (cross build with Debian's toolchain).
VERSION := 0.1.0
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

HOST_ARCH := $(shell dpkg --print-architecture 2>/dev/null || echo amd64)
ARCH ?= $(HOST_ARCH)
SANITIZER ?=
WERROR ?= $(if $(CI),1)
PREFIX ?= /usr/local

TRIPLET := $(if $(filter arm64,$(ARCH)),aarch64-linux-gnu,x86_64-linux-gnu)
CROSS := $(if $(filter-out $(HOST_ARCH),$(ARCH)),1)
ifeq ($(origin CC),default)
CC := $(if $(CROSS),$(TRIPLET)-gcc,gcc)
endif
CLANG := $(findstring clang,$(CC))
PKG_CONFIG := $(if $(CROSS),PKG_CONFIG_LIBDIR=/usr/lib/$(TRIPLET)/pkgconfig:/usr/share/pkgconfig )pkg-config

comma := ,
VARIANT := $(if $(CROSS),$(ARCH))$(if $(SANITIZER),$(subst $(comma),-,$(SANITIZER)))$(if $(CLANG),clang)
BUILD ?= build$(if $(VARIANT),/$(VARIANT))
GEN := $(BUILD)/gen
Q := $(if $(V),,@)

WARN := -Wall -Wextra -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wwrite-strings -Wpointer-arith -Wvla -Wundef -Wnested-externs \
	-Wredundant-decls -Wdate-time -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion \
	$(if $(CLANG),,-Wlogical-op -Wduplicated-cond) $(if $(WERROR),-Werror)
HARDEN := $(if $(SANITIZER),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong \
	$(if $(filter amd64,$(ARCH)),-fcf-protection) \
	$(if $(CLANG),,-fstack-clash-protection) -fPIE
OPT ?= $(if $(SANITIZER),-O1 -fno-omit-frame-pointer,-O2)
SAN := $(if $(SANITIZER),-fsanitize=$(SANITIZER) -fno-sanitize-recover=all)
NETLINK_CPPFLAGS := $(shell $(PKG_CONFIG) --cflags libnl-3.0 2>/dev/null)
CPPFLAGS += -D_GNU_SOURCE -DTWINRAIL_VERSION='"$(VERSION)"' -Idriver -I$(GEN) $(NETLINK_CPPFLAGS)
CFLAGS += -std=gnu17 -g $(OPT) $(HARDEN) $(SAN) -pthread
LDFLAGS += -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(SAN) -pthread

# gRPC core with its many small libraries is linked statically (start-up time and memory);
# sanitizer builds take the shared ones, which the runtimes can tell from our code.
LIBDIR := /usr/lib/$(TRIPLET)
ABSL = $(patsubst $(LIBDIR)/%,-l:%,$(wildcard $(LIBDIR)/libabsl_*.a))
GRPC_STATIC = -Wl,--start-group -l:libgrpc_unsecure.a -l:libgpr.a -l:libaddress_sorting.a \
	-l:libupb.a -l:libcares.a -l:libre2.a -l:libz.a $(ABSL) -Wl,--end-group \
	-l:libprotobuf-c.a -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -static-libgcc
GRPC_LIBS = $(if $(SANITIZER),-lgrpc_unsecure -lgpr -lprotobuf-c,$(GRPC_STATIC))
LIBS = $(GRPC_LIBS) $(shell $(PKG_CONFIG) --libs libcurl jansson yaml-0.1 libnl-3.0) -lm

PROTOS := $(wildcard proto/*/*/*.proto proto/*/*.proto proto/*.proto)
PROTO_C := $(PROTOS:proto/%.proto=$(GEN)/%.pb-c.c)
DIRS := base loop rpc kube hw topo attach publish prepare
SRCS := $(foreach d,$(DIRS),$(wildcard driver/$(d)/*.c)) driver/cmd/options.c \
	driver/cmd/topology_options.c
CMD_SRCS := $(filter-out driver/cmd/hook.c,$(wildcard driver/cmd/*.c))
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB := $(BUILD)/libtwinrail.a
LIB_OBJS := $(call obj,$(SRCS)) $(PROTO_C:.c=.o)
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))

all: $(BUILD)/twinrail $(BUILD)/twinrail-hook ## build the driver and its hook
	@:

$(BUILD)/twinrail: $(call obj,$(CMD_SRCS)) $(LIB)
	$(Q)echo "  LD    $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# The hook runs once per container start: static, only base/ and attach/.
HOOK_OBJS := $(call obj,driver/cmd/hook.c $(wildcard driver/base/*.c driver/attach/*.c))
$(BUILD)/twinrail-hook: $(HOOK_OBJS)
	$(Q)echo "  LD    $@"; $(CC) $(LDFLAGS) $(if $(SANITIZER),,-static-pie) -o $@ $^ \
		$(shell $(PKG_CONFIG) --static --libs jansson yaml-0.1)

$(LIB): $(LIB_OBJS)
	$(Q)echo "  AR    $@"; rm -f $@; $(if $(CROSS),$(TRIPLET)-)ar rcsP $@ $^

$(BUILD)/obj/%.o: %.c | $(PROTO_C:.c=.h)
	$(Q)mkdir -p $(@D); echo "  CC    $<"; \
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP -c -o $@ $<

# The file is part of the object (.incbin), which compilers do not tell.
$(call obj,driver/topo/platform_data.c): driver/topo/platforms.yaml

$(GEN)/%.o: $(GEN)/%.c
	$(Q)echo "  CC    $<"; $(CC) $(CPPFLAGS) $(CFLAGS) -w -c -o $@ $<

.SECONDARY: $(PROTO_C) $(PROTO_C:.c=.h)
$(GEN)/%.pb-c.c $(GEN)/%.pb-c.h &: proto/%.proto proto/protoc-gen-c-optional
	$(Q)mkdir -p $(GEN); echo "  GEN   $<"; protoc --plugin=protoc-gen-c=proto/protoc-gen-c-optional \
		--c_out=$(GEN) -Iproto $<

$(BUILD)/unit/%: tests/unit/%.c $(LIB)
	$(Q)mkdir -p $(@D); echo "  TEST  $@"; \
	$(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(WARN) -MMD -MP $(LDFLAGS) -o $@ $< $(LIB) -lcmocka $(LIBS)

# A library that a test opens.
$(BUILD)/unit/fake_%.so: tests/unit/fake_%.c
	$(Q)mkdir -p $(@D); echo "  LD    $@"; $(CC) $(CPPFLAGS) -std=gnu17 -g -fPIC $(WARN) -shared -o $@ $<

$(BUILD)/unit/test_hw_verbs: | $(BUILD)/unit/fake_verbs.so

unit: $(UNIT) ## build the unit tests

-include tests/Makefile.mk

install: all ## install below $(DESTDIR)$(PREFIX)
	install -D -m 0755 $(BUILD)/twinrail $(DESTDIR)$(PREFIX)/bin/twinrail
	install -D -m 0755 $(BUILD)/twinrail-hook $(DESTDIR)$(PREFIX)/bin/twinrail-hook
	ln -sf twinrail $(DESTDIR)$(PREFIX)/bin/kubectl-twinrail

clean: ## remove everything that was built
	rm -rf build

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | \
		awk -F'\t' '{ printf "  %-18s %s\n", $$1, $$2 }'

.PHONY: all unit install clean help
-include $(wildcard $(BUILD)/obj/driver/*/*.d $(BUILD)/unit/*.d)
