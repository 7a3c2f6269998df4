# The few things that people do with this repository. Each is a script in scripts/, which works without make, too.

.PHONY: help run test check bench bench-cluster eval kills chaos model-pack

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build and start a server on this machine; ARGS="--listen 127.0.0.1:7700 --data DIR" and the like go to `waggle dev`
	@bash scripts/run.sh $(ARGS)

test: ## all that must be green before a change lands
	@bash scripts/test.sh

check: ## its quick part: format, clippy, tidy rules
	@bash scripts/check.sh

bench: ## load on a release build; BENCH_SIZES, BENCH_CLIENTS, BENCH_SECONDS choose
	@bash scripts/bench.sh $(ARGS)

bench-cluster: ## three nodes beside etcd; BENCH_CLIENTS, BENCH_SECONDS, BENCH_ROUNDS, BENCH_OPERATIONS choose
	@bash scripts/bench-cluster.sh $(ARGS)

eval: ## recall quality; DATA=directory holds the data set
	@DATA="$(DATA)" bash scripts/eval.sh $(ARGS)

kills: ## kill -9 under load, 200 times; WAGGLE_KILLS=n for another number, WAGGLE_SEED=n to repeat a run
	@bash scripts/kills.sh

chaos: ## a cluster under faults: SECONDS=60 SEED=1, further options in ARGS (docs/chaos.md)
	@CHAOS_SECONDS="$(SECONDS)" CHAOS_SEED="$(SEED)" bash scripts/chaos.sh $(ARGS)

model-pack: ## pack the sentence model again (only for who changes the model): MODEL=directory, OUT=file
	@MODEL="$(MODEL)" OUT="$(OUT)" bash scripts/model-pack.sh
