# The ways in. Each is a thin call; scripts/ and bench/ say what happens.

.PHONY: demo test lint bench clean

# Watch it work: reads gnome-calculator, presses its buttons, proves the result.
demo:
	@scripts/demo.sh

# Everything, unit to real applications, in private headless desktops.
test:
	@scripts/test.sh

lint:
	@scripts/lint.sh

# Cold snapshots against the least that the protocol allows, in one run.
bench:
	@scripts/bench.sh

clean:
	cargo clean
	rm -rf demo-output
