# Azera's commands; `make` alone lists them. What they do is in bot/scripts/make.sh.
#
# Everything they build or fetch lies outside the checkout, and each place can be changed:
#   make test CARGO_TARGET_DIR=/elsewhere/target AZERA_MODELS_CACHE=/elsewhere/models

cache := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME)/.cache,$(CURDIR)/target))/azera

# What Cargo builds.
export CARGO_TARGET_DIR ?= $(cache)/target
# The models that the tests run on.
export AZERA_MODELS_CACHE ?= $(cache)/models
# What the GPU backend is built for: cuda, metal or vulkan; nothing is the processor.
export FEATURES ?=
# How long `make fuzz` feeds each parser.
export FUZZ_SECONDS ?= 20
# How often `make soak` kills the process.
export KILLS ?= 200
# How long `make soak` talks in a hundred channels of Discord.
export DISCORD_SECONDS ?= 120
# What `make run` hands on to `azera chat`.
export ARGS ?=
# Where `make install` puts bin/azera.
export PREFIX ?= $(HOME)/.local

task := @bash bot/scripts/make.sh

.DEFAULT_GOAL := help
.PHONY: help run install test soak lint fuzz adapter doctor demo-matrix setup clean

help: ## List the commands.
	@sed -n 's/^\([a-z-]*\): ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: ## Install what is missing, build what a chat needs, fetch the default models, and chat with Azera.
	$(task) run

install: ## Build every part, Discord and Matrix included, and install it as PREFIX/bin/azera (~/.local).
	$(task) install

test: ## The same set-up, then every test.
	$(task) test

soak: ## What takes long: KILLS=200 kills under load, a hundred Matrix rooms, DISCORD_SECONDS=120 in a hundred channels.
	$(task) soak

lint: ## Formatting, the house's rules, clippy, and cargo-deny where it is installed.
	$(task) lint

fuzz: ## Feed every parser with made-up input, each for FUZZ_SECONDS (20).
	$(task) fuzz

adapter: ## Make the lessons and train the default model's two adapters on them, by their recipes: under two hours on two cores.
	$(task) adapter

doctor: ## Build, and let Azera check what it needs.
	$(task) doctor

setup: ## Only install what the build needs, and fetch its crates.
	$(task) setup

demo-matrix: ## A homeserver, a bot and a person on this machine: an encrypted room, a restart, and what is recalled.
	$(task) demo-matrix

clean: ## Remove what was built. Models and memories stay.
	$(task) clean
