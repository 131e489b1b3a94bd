"""The campaign runs, finds nothing in its quick parts, and ends with a table."""

import pytest

from campaign.__main__ import main
from campaign.results import Result, table


def test_bad_inputs_are_named(capsys):
    assert main(["--only", "inputs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 100 and lines[-1].split()[:3] == ["inputs", "140", "0"]


@pytest.mark.slow
def test_random_cases(capsys):
    assert main(["--only", "oracle", "--cases", "20", "--seed", "777"]) == 0
    assert "seeds 777 to 796" in capsys.readouterr().out


def test_failures_are_counted():
    result = Result("part")
    result.check(True, "good")
    result.check(False, "bad")
    assert result.failures == ["bad"] and table([result]).splitlines()[-1].split() == [
        "part", "2", "1"
    ]  # fmt: skip
