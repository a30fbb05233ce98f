# ark - build, try, test.  `make help` lists the targets.
#
#	make SAN=address,undefined check	everything under the sanitizers
#	make WERROR= 				a compiler newer than ours warns
#	make DESTDIR=/tmp/x PREFIX=/usr install
PREFIX = /usr/local
DESTDIR =
BINDIR = $(PREFIX)/bin
LIBEXECDIR = $(PREFIX)/libexec/ark
DATADIR = $(PREFIX)/share/ark
MANDIR = $(PREFIX)/share/man
COMPLETIONDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
UNITDIR = $(PREFIX)/lib/systemd/system
TMPFILESDIR = $(PREFIX)/lib/tmpfiles.d
SYSUSERSDIR = $(PREFIX)/lib/sysusers.d
# Not a matter of PREFIX: the programs read /etc/ark/ark.conf.
CONFDIR = /etc/ark

CC = gcc
MUSL_CC = musl-gcc
WERROR = -Werror
WARN = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wformat=2 -Wundef -Wvla \
	-Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough \
	-Wnull-dereference -Wswitch-enum $(WERROR)
CFLAGS = -O2 -g
HARDEN = -fstack-protector-strong -fstack-clash-protection -fcf-protection \
	-fPIE -D_FORTIFY_SOURCE=2
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARN) -fno-common $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)
LIBS = -ljansson -lmd -luuid -lcap-ng -lseccomp

ifdef SAN
HARDEN = -fPIE -fsanitize=$(SAN) -fno-omit-frame-pointer \
	-fno-sanitize-recover=undefined
B = build/san
else
B = build
endif

# A command is one file with main(); all others are library.
COMMANDS = $(patsubst src/%.c,%,$(wildcard src/ark-*.c))
SCRIPTS = ark ark-doctor ark-image ark-serve
LIB = $(filter-out $(COMMANDS:%=$B/%.o), \
	$(patsubst src/%.c,$B/%.o,$(wildcard src/*.c)))
GUEST = $(wildcard guest/*.c) src/frame.c $(wildcard src/tree*.c)
UNIT = $(patsubst tests/unit/%.c,$B/unit/%,$(wildcard tests/unit/test-*.c))
FUZZ = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz-*.c))
MAN = $(wildcard man/*.[0-9])

.PHONY: all help install deb demo check check-slow check-faults check-compat \
	check-lab lint fuzz bench bench-lab clean format
all: $(COMMANDS:%=bin/%) build/init

help:
	@echo 'make            build into bin/ and build/'
	@echo 'make demo       build an image, run code in a sandbox, explain'
	@echo 'make check      the tests (root; ends with the summary of prove)'
	@echo 'make check-slow the long tests, with the Debian image'
	@echo 'make check-faults   random commands, and kill -9 at random times'
	@echo 'make check-compat   clients that others have written (downloads)'
	@echo 'make check-lab  those that matter most, on real (nested) KVM'
	@echo 'make bench      measure, beside bare QEMU'
	@echo 'make bench-lab  the same on KVM, for each VMM'
	@echo 'make lint       compilers, linters, manuals, tables'
	@echo 'make fuzz       a minute of every fuzz target (FUZZ_SECONDS=60)'
	@echo 'make install    into $$(DESTDIR)$$(PREFIX)'
	@echo 'make deb        a Debian package of it: build/*.deb'

# ---- build ------------------------------------------------------------------

$B/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(HARDEN) -MMD -MP -c -o $@ $<

bin/%: $B/%.o $B/libark.a
	$(CC) $(HARDEN) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$B/libark.a: $(LIB)
	rm -f $@
	ar rcs $@ $^

# /init of every guest: static, small, with the kernel's headers behind musl's.
build/init: $(GUEST) $(wildcard guest/*.h) src/proto.h src/tree.h
	@mkdir -p $(@D)
	$(MUSL_CC) $(ALL_CFLAGS) -Os -static -ffunction-sections \
		-fdata-sections -Wl,--gc-sections -s -Isrc -Iguest \
		-idirafter /usr/include \
		-idirafter /usr/include/$(shell uname -m)-linux-gnu \
		-o $@ $(GUEST)

-include $(wildcard $B/*.d)

# ---- install ----------------------------------------------------------------

# The commands that only other commands run are in libexec; `ark` finds them
# beside itself in the tree and there once installed.  Texts that name places
# are made to name these.  A configuration that is there is somebody's.
NAME_PLACES = sed -i -e 's|/usr/local/bin/ark|$(BINDIR)/ark|g' \
	-e 's|/usr/local/libexec/ark|$(LIBEXECDIR)|g' \
	-e 's|/usr/local/share/ark|$(DATADIR)|g' \
	-e 's|/usr/local/lib/systemd/system|$(UNITDIR)|g'

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBEXECDIR) \
		$(DESTDIR)$(DATADIR) $(DESTDIR)$(COMPLETIONDIR)
	install -m 755 bin/ark $(DESTDIR)$(BINDIR)/
	install -m 755 $(COMMANDS:%=bin/%) \
		$(filter-out bin/ark,$(SCRIPTS:%=bin/%)) \
		guest/mkinitrd guest/extract-vmlinux guest/pick-modules \
		build/init $(DESTDIR)$(LIBEXECDIR)/
	install -m 644 share/doctor-host $(DESTDIR)$(LIBEXECDIR)/
	install -m 644 share/commands share/ark.conf share/openapi.yaml \
		share/lighttpd-tls.conf $(DESTDIR)$(DATADIR)/
	$(NAME_PLACES) $(DESTDIR)$(DATADIR)/lighttpd-tls.conf
	install -m 755 share/demo $(DESTDIR)$(DATADIR)/
	[ -e $(DESTDIR)$(CONFDIR)/ark.conf ] || \
		install -D -m 644 -t $(DESTDIR)$(CONFDIR) share/ark.conf
	install -D -m 755 -t $(DESTDIR)$(DATADIR)/images share/images/*
	install -D -m 644 -t $(DESTDIR)$(DATADIR)/error share/error/*
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) share/systemd/ark*
	$(NAME_PLACES) $(patsubst share/systemd/%,$(DESTDIR)$(UNITDIR)/%, \
		$(wildcard share/systemd/ark*))
	install -D -m 644 share/systemd/tmpfiles.conf \
		$(DESTDIR)$(TMPFILESDIR)/ark.conf
	install -D -m 644 share/systemd/sysusers.conf \
		$(DESTDIR)$(SYSUSERSDIR)/ark.conf
	install -m 644 share/bash-completion/ark $(DESTDIR)$(COMPLETIONDIR)/
	install -D -m 644 -t $(DESTDIR)$(ZSHDIR) share/zsh-completion/_ark
	for page in $(MAN); do \
		folder=$(DESTDIR)$(MANDIR)/man$${page##*.}; \
		install -D -m 644 -t $$folder $$page && \
		$(NAME_PLACES) $$folder/$${page##*/} || exit 1; \
	done

# The package is built of a copy, because debhelper writes into the tree that it
# works on.
DEB = build/deb/ark-microvm
deb:
	rm -rf build/deb
	mkdir -p $(DEB)
	tar -c --exclude=./build --exclude=./.git \
		$(COMMANDS:%=--exclude=./bin/%) . | tar -x -C $(DEB)
	cd $(DEB) && DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc
	mv build/deb/*.deb build/
	rm -rf build/deb

# ---- try, test, measure -----------------------------------------------------

demo:
	share/demo

check:
	tests/run check

check-slow:
	tests/run slow

check-faults:
	tests/run faults

check-compat:
	tests/run compat

check-lab:
	tests/lab/check

bench:
	tests/bench/run

bench-lab:
	tests/lab/bench

unit: $(UNIT) build/jail/escape
$B/unit/%: tests/unit/%.c $(wildcard tests/unit/*.h) $B/libark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(HARDEN) $(ALL_LDFLAGS) -Isrc -Iguest -o $@ $< \
		$B/libark.a $(LIBS)

# Runs as a VMM: with the libraries that a VMM finds in its jail, and no others.
build/jail/escape: $(wildcard tests/jail/*.c) tests/jail/escape.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(HARDEN) $(ALL_LDFLAGS) -o $@ $(filter %.c,$^)

build/bench/%: tests/bench/%.c $B/libark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(HARDEN) $(ALL_LDFLAGS) -Isrc -o $@ $< \
		$B/libark.a $(LIBS)

lint:
	tests/lint

FUZZ_SECONDS = 60
fuzz: $(FUZZ)
	for target in $(FUZZ); do \
		mkdir -p build/corpus/$${target##*/} && \
		$$target -max_total_time=$(FUZZ_SECONDS) -print_final_stats=0 \
			build/corpus/$${target##*/} \
			tests/fuzz/corpus/$${target##*/} \
			|| exit 1; \
	done

fuzzers: $(FUZZ)
FUZZ_FLAGS = -std=c11 -D_GNU_SOURCE -g -O1 -fno-sanitize-recover=undefined \
	-Isrc -Iguest -fsanitize=address,undefined
FUZZED = $(patsubst %.c,build/fuzz/%.o,$(LIB:$B/%.o=src/%.c) guest/request.c)
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
build/fuzz/libark.a: $(FUZZED)
	rm -f $@
	ar rcs $@ $^
build/fuzz/%: tests/fuzz/%.c build/fuzz/libark.a
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
-include $(wildcard build/fuzz/src/*.d build/fuzz/guest/*.d)

format:
	clang-format -i src/*.[ch] guest/*.[ch] tests/unit/*.[ch] \
		tests/fuzz/*.c tests/jail/*.[ch] tests/bench/*.c

clean:
	rm -rf build $(COMMANDS:%=bin/%)
