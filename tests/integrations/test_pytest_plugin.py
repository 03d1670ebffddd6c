"""The pytest plug-in, run in pytest sessions of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import scipy.special  # noqa: F401 - the sessions below share this process and cannot load it twice

pytest_plugins = ["pytester"]


def test_enough_attempts_that_pass_show_the_rule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.passhat(attempts=30, rule="pass^2 >= 0.8")
        def test_it():
            pass
        """
    )
    pytester.runpytest("--strict-markers").assert_outcomes(passed=1)


def test_attempts_that_fail_refute_it_with_a_readable_message(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import itertools, pytest

        count = itertools.count()

        @pytest.mark.passhat(attempts=8, rule="pass^4 >= 0.9")
        def test_it():
            print("to be seen")
            assert next(count) % 2, "odd one out"
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*refuted  pass^4 >= 0.9",
            "*pass^4 is 0.014, at least 0.001 and at most 0.424*",
            "*4 of 8 attempts passed; Clopper-Pearson bounds*",
            "*failures: 4 wrong answers (AssertionError: odd one out)*",
            "*attempt 1 (failed):*",
            "*odd one out*",
            "*to be seen*",
        ]
    )


def test_not_settled_is_a_failure_unless_allowed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.passhat(attempts=8, rule="pass^4 >= 0.9")
        def test_strict():
            pass

        @pytest.mark.passhat(attempts=8, rule="pass^4 >= 0.9", allow_unsettled=True)
        def test_lenient():
            pass
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*not settled  pass^4 >= 0.9", "*at least 114 attempts, all passed*"]
    )


def test_everything_is_fresh_for_each_attempt(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        made = {"function": 0, "module": 0, "torn": 0, "numbers": []}

        @pytest.fixture(scope="module")
        def shared():
            made["module"] += 1
            yield
            made["module_torn"] = True

        @pytest.fixture
        def fresh(shared):
            made["function"] += 1
            assert "module_torn" not in made
            yield []
            made["torn"] += 1

        class TestIt:
            @pytest.mark.passhat(attempts=10, rule="rate >= 0.5")
            @pytest.mark.parametrize("items", [[], [1]])
            def test_it(self, fresh, items, tmp_path, capsys):
                assert not hasattr(self, "mark")
                self.mark = True
                fresh.append(1)
                items.append(1)
                assert len(fresh) == 1 and len(items) <= 2
                assert not list(tmp_path.iterdir())
                (tmp_path / "file").write_text("x")

        def test_counts(shared):
            assert made["function"] == made["torn"] == 20
            assert made["module"] == 1
        """
    )
    pytester.runpytest().assert_outcomes(passed=3)


def test_a_fixture_that_breaks_is_missing_and_not_failed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import itertools, pytest

        count = itertools.count()

        @pytest.fixture
        def sandbox():
            if next(count) < 3:
                raise RuntimeError("no sandbox today")

        @pytest.mark.passhat(attempts=8, rule="rate >= 0.9")
        def test_it(sandbox):
            pass
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*not settled*", "*5 of 8 attempts passed, 3 missing*", "*attempt 1 (missing)*"]
    )


def test_a_teardown_that_breaks_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def leaky():
            yield
            raise RuntimeError("leak")

        @pytest.mark.passhat(attempts=10, rule="rate >= 0.5")
        def test_it(leaky):
            pass
        """
    )
    pytester.runpytest().assert_outcomes(passed=1, errors=1)


def test_a_skip_skips_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        torn = []

        @pytest.fixture(scope="module")
        def shared():
            yield
            torn.append(1)

        @pytest.mark.passhat(attempts=8, rule="rate >= 0.5")
        def test_inside(shared):
            pytest.skip("no key")

        @pytest.mark.skip
        @pytest.mark.passhat(attempts=8, rule="rate >= 0.5")
        def test_outside():
            pass

        @pytest.mark.passhat(attempts=1, rule="rate >= 0.5", allow_unsettled=True)
        def test_last(shared):
            pytest.skip("last of the session")
        """
    )
    pytester.runpytest().assert_outcomes(skipped=3)


SUITE = """
    import pytest

    @pytest.mark.passhat(attempts=4, rule="pass^2 >= {limit}", suite="refunds"{more})
    @pytest.mark.parametrize("ticket", range(40))
    def test_ticket(ticket):
        assert {passes}
"""


@pytest.mark.parametrize(("passes", "code"), [("True", 0), ("False", 1)])
def test_a_suite_is_judged_together(pytester: pytest.Pytester, passes: str, code: int) -> None:
    pytester.makepyfile(SUITE.format(limit=0.6, passes=passes, more=""))
    result = pytester.runpytest()
    assert result.ret == code
    word = "Shown" if code == 0 else "Refuted"
    result.stdout.fnmatch_lines([f"suite refunds  {word}*", "*40 attempted*"])
    told = "failures: 160 wrong answers (assert False)" in result.stdout.str()
    assert told == (code == 1)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_a_suite_that_is_not_settled(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makepyfile(SUITE.format(limit=1.0, passes="ticket % 2", more=""))
    result = pytester.runpytest(*workers, "-v" if not workers else "-q")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*passhat*", "suite refunds  *", "*40 attempted*"])
    if not workers:
        result.stdout.fnmatch_lines(["*ATTEMPTED (0 of 4 passed)*"])


def test_a_suite_may_be_left_open(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.format(limit=0.975, passes="True", more=", allow_unsettled=True"))
    result = pytester.runpytest()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*not settled is allowed by the mark*"])


def test_marks_of_a_suite_must_agree(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.passhat(attempts=4, rule="pass^2 >= 0.5", suite="s")
        def test_a(): pass

        @pytest.mark.passhat(attempts=4, rule="pass^2 >= 0.6", suite="s")
        def test_b(): pass
        """
    )
    result = pytester.runpytest()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["suite s: its marks disagree*"])


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("attempts=8", "*missing*rule*"),
        ("attempts=0, rule='rate >= 0.5'", "*attempts must be a whole number from 1*"),
        ("attempts=8, rule='pas^4 >= 0.5'", "*Did you mean pass^4?*"),
        ("attempts=2, rule='pass^4 >= 0.5'", "*needs at least 4 attempts*"),
        ("attempts=8, rule='cost <= 1'", "*cannot be evaluated on one task*"),
        ("attempts=8, rule='rate >= base'", "*cannot be evaluated on one task*"),
        ("attempts=8, rule='rate >= base', suite='s'", "*no base to compare with*"),
        ("attempts=8, rule='rate >= 0.5', level=0.3", "*level is one-sided*"),
    ],
)
def test_a_wrong_mark_costs_no_attempt(pytester: pytest.Pytester, mark: str, says: str) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.passhat({mark})
        def test_it():
            raise SystemExit("must not run")
        """
    )
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])


def test_a_run_without_the_mark_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "passhat.integrations.pytest_plugin" in sys.modules
            assert "numpy" not in sys.modules
            assert "scipy" not in sys.modules
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*passhat*suite*")


def test_the_plug_in_imports_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys, passhat.integrations.pytest_plugin; "
        "sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_xfail_is_about_the_rule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.xfail(reason="known to be bad")
        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.9")
        def test_bad():
            assert False

        @pytest.mark.xfail(reason="fixed")
        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.1")
        def test_good():
            pass

        @pytest.mark.xfail(reason="fixed", strict=True)
        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.1")
        def test_strict():
            pass

        @pytest.mark.xfail(reason="hangs", run=False)
        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.1")
        def test_not_run():
            raise SystemExit
        """
    )
    result = pytester.runpytest("-rxX")
    result.assert_outcomes(xfailed=2, xpassed=1, failed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)*fixed*"])


def test_a_wrong_mark_under_xdist_is_an_error_of_that_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.passhat(attempts=0, rule="pass^1 >= 0.9")
        def test_wrong():
            pass

        def test_other():
            pass
        """
    )
    result = pytester.runpytest_subprocess("-n", "1")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*attempts must be a whole number from 1, not 0*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_the_headline_names_the_rule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.9")
        def test_bad():
            assert False
        """
    )
    pytester.runpytest().stdout.fnmatch_lines(["*test_bad  Refuted: pass^1 >= 0.9."])


def test_nothing_judged_fails_whatever_the_mark_allows(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def broken():
            raise RuntimeError("db")

        @pytest.mark.passhat(attempts=8, rule="pass^1 >= 0.9", allow_unsettled=True)
        def test_it(broken):
            pass

        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.9", suite="s", allow_unsettled=True)
        def test_in_suite(broken):
            pass
        """
    )
    result = pytester.runpytest("-v")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        [
            "*ATTEMPTED (none of 4 judged)*",
            "*Incomplete: 8 of 8 attempts have no verdict*",
            "*RuntimeError: db*",
        ]
    )
    result.stdout.no_fnmatch_line("*attempt of outcomes*")


def test_xfail_holds_for_the_exception_that_it_names(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.xfail(raises=KeyError)
        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.9")
        def test_other():
            assert 0

        @pytest.mark.xfail(raises=KeyError)
        @pytest.mark.passhat(attempts=4, rule="pass^1 >= 0.9")
        def test_named():
            raise KeyError("tool")
        """
    )
    pytester.runpytest().assert_outcomes(failed=1, xfailed=1)
    pytester.runpytest("--runxfail").assert_outcomes(failed=2)
