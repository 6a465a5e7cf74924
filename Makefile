# The way in. Every target only calls a script; `make` lists them.
PREFIX ?= /usr/local

.PHONY: help setup build test test-gpu test-memcheck test-all test-faults test-sanitized fuzz quickstart format check-format tidy install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

setup: ## install what is missing: system packages (Debian 12) and .venv
	@scripts/setup test

build: setup ## everything, optimised, in build/release
	@scripts/build release

test: setup ## set up, build and run the tests
	@scripts/test

test-gpu: setup ## build for GPUs and run the tests that need one
	@scripts/test gpu

test-memcheck: setup ## what needs a GPU, under compute-sanitizer
	@scripts/test memcheck

test-all: setup ## the tests, under sanitizers too, and those that are long or need root
	@scripts/test all

fuzz: ## a million inputs for every reader of outside bytes, under sanitizers (RUNS=N for another number)
	@scripts/setup fuzz
	@scripts/fuzz $(RUNS)

test-sanitized: setup ## the fastest tests under AddressSanitizer and UBSan
	@scripts/test sanitized

test-faults: setup ## hurt real trainings 200 times, as root; half an hour to an hour
	@scripts/test faults

quickstart: ## set up, build, train dense and ScaleCom with 4 learners, write a report
	@scripts/setup quickstart
	@scripts/build program
	@scripts/quickstart

format: ## format every C++ file
	@scripts/format

check-format: ## fail where a C++ file is not formatted
	@scripts/format --check

tidy: ## clang-tidy over every C++ file
	@scripts/setup tidy
	@scripts/tidy

install: build ## install the library and the program under PREFIX (/usr/local)
	@cmake --install build/release --prefix "$(PREFIX)"

clean: ## remove what was built; .venv and runs stay
	@rm -rf build
