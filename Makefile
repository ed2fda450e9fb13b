# Azera's commands; `make` alone lists them. bot/scripts/make.sh implements them.
#
# All that they build or fetch lies outside the checkout, but the console's files, and each place can be changed:
#   make test CARGO_TARGET_DIR=/elsewhere/target AZERA_MODELS_CACHE=/elsewhere/models

cache := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME)/.cache,$(CURDIR)/target))/azera

# Folder of Cargo's build output.
export CARGO_TARGET_DIR ?= $(cache)/target
# Folder of the models for the tests.
export AZERA_MODELS_CACHE ?= $(cache)/models
# GPU backend to build: cuda, metal or vulkan. Empty builds for the processor alone.
export FEATURES ?=
# Seconds that `make fuzz` feeds each parser.
export FUZZ_SECONDS ?= 20
# Number of kills in `make soak`.
export KILLS ?= 200
# Seconds that `make soak` talks in a hundred Discord channels, and measures a silent call.
export DISCORD_SECONDS ?= 120
# Arguments that `make run` passes to `azera chat`.
export ARGS ?=
# Prefix under which `make install` puts bin/azera.
export PREFIX ?= $(HOME)/.local

task := @bash bot/scripts/make.sh

.DEFAULT_GOAL := help
.PHONY: help run console check install test soak lint sidecar fuzz adapter doctor demo-matrix setup clean

help: ## List the commands.
	@sed -n 's/^\([a-z-]*\): ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: ## Install missing tools, build what a chat needs, fetch models that suit the machine, and chat with Azera.
	$(task) run

install: ## Make the full build, Discord and Matrix included, and install it as PREFIX/bin/azera (~/.local).
	$(task) install

console: ## Build the web's console. The next build of the binary embeds it. Without it, the web has a plain page.
	$(task) console

test: ## Install missing tools, make the full build, and run all tests.
	$(task) test

soak: ## Run the long tests: KILLS=200 kills under load, a hundred Matrix rooms, DISCORD_SECONDS=120 in a hundred channels and in a silent call.
	$(task) soak

check: ## The fast tier: formatting, project rules, clippy, and the tests that need no server and no model.
	$(task) check

lint: ## Check formatting, the project's own rules, clippy, the Docker files, and cargo-deny if it is installed.
	$(task) lint

sidecar: ## Run the tests of docker/imagegen with a tiny model on the processor. The first run fetches PyTorch.
	$(task) sidecar

fuzz: ## Feed every parser made-up input, each for FUZZ_SECONDS (20).
	$(task) fuzz

adapter: ## Train the default model's two LoRAs from their recipes, in under two hours on two cores.
	$(task) adapter

doctor: ## Build, and let Azera check what it needs.
	$(task) doctor

setup: ## Install what the build needs and fetch its crates, nothing else.
	$(task) setup

demo-matrix: ## Demonstrate Matrix on this machine: a homeserver, an encrypted room, a restart, and recall.
	$(task) demo-matrix

clean: ## Remove the build output. Models and memories stay.
	$(task) clean
