# Every target is a script; this file only gives them their names.
.PHONY: run test setup check bench chaos docs interface install

# Builds what is missing and shows the live stream of this machine.
run:
	@scripts/setup run
	@scripts/run $(ARGS)

# The whole test suite, as continuous integration runs it.
test:
	@scripts/test

setup:
	@scripts/setup test

# The gate without the long tests: style, rules of the repository, warnings.
check:
	@scripts/setup test
	@scripts/check

bench:
	@scripts/setup test
	@scripts/bench $(ARGS)

# Ten minutes of outages, kills and faults, and a million steps of the simulation; the short forms are among the tests.
chaos:
	@scripts/setup test
	@scripts/chaos $(ARGS)

docs:
	@scripts/setup run
	@scripts/docs

# docs/interface.txt, after a change of the public interface.
interface:
	@scripts/setup test
	@scripts/interface

# PREFIX (/usr/local) and DESTDIR as usual.
install:
	@scripts/setup run
	@scripts/install
