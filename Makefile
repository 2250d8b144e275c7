# Every target runs a script; this file only names them.
.PHONY: run test verify setup check check-page abuse bench bench-service chaos counts verdicts fuzz docs interface install

# Builds netwatch and runs the service with its page; with ARGS, the command of ARGS.
run:
	@scripts/setup run
	@scripts/job scripts/run $(ARGS)

# Runs the checks and all tests of the debug build.
test:
	@scripts/test

# Runs the long tests: SHARD is a number, or all. Without SHARD it is an error that lists them.
verify:
	@scripts/verify $(SHARD)

setup:
	@scripts/setup test

# Runs the checks that need no build: style, spelling, the repository's rules.
check:
	@scripts/setup test
	@scripts/check

# Checks the pages of the service in Chromium: accessibility, width, the security policy, the script, cuts of links, 10,000 targets. ARGS are those
# of scripts/check-page.
check-page:
	@scripts/setup test
	@scripts/setup page
	@swift build --build-tests
	@scripts/check-page $(ARGS)

bench:
	@scripts/setup test
	@scripts/bench $(ARGS)

# Counts the instructions and allocations of a request, a change and a probe, and compares them with the recorded ones.
counts:
	@scripts/setup test
	@scripts/build netwatch small-client
	@scripts/counts $(ARGS)

# Compares the service with Prometheus and blackbox_exporter: three rounds of a minute each. It needs both, and root.
bench-service:
	@scripts/setup test
	@scripts/build netwatch-service
	@scripts/bench-service $(ARGS)

# Runs outages, kills and faults, and simulated steps: the first part of shard 6.
chaos:
	@scripts/verify chaos $(ARGS)

# Kills the service 50 times, and lets hostile clients work for a minute each: the first part of shard 5.
abuse:
	@scripts/verify abuse $(ARGS)

# Prints the verdict of each fault of the laboratory, and its time. The test suite checks the same rows.
verdicts:
	@scripts/setup test
	@scripts/verdicts $(ARGS)

# Fuzzes the parsers. SECONDS is the time of all drivers, DRIVER selects one, and REPLAY is a file that the driver runs.
fuzz:
	@scripts/setup build
	@scripts/fuzz "$(or $(SECONDS),60)" "$(DRIVER)" $(REPLAY)

docs:
	@scripts/setup build
	@scripts/docs

# Writes docs/interface.txt. Run it after a change of the public interface.
interface:
	@scripts/setup run
	@swift build >&2
	@scripts/interface write

# Builds the programs of `make run` and netwatch-transfer, and installs them without debug information. PREFIX (default /usr/local) and DESTDIR are supported.
install:
	@scripts/setup run
	@scripts/install
