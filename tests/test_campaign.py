"""The campaign runs, finds nothing in its quick parts, and ends with a table."""

import pytest

from campaign import strings
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


@pytest.mark.slow
def test_hostile_strings(capsys, monkeypatch):
    monkeypatch.setattr(strings, "HOSTILE", strings.HOSTILE[:20])
    assert main(["--only", "strings"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["strings", "40", "0"]


def test_markup_of_strings_is_seen():
    own = 3 * "<script></script>"
    assert strings.Markup.of(own + "<p>&lt;svg onload=x&gt;</p>").wrong == []
    for more in ("<script></script>", "<p onclick=x>", "<svg>", "<img src=http://x>"):
        assert strings.Markup.of(own + more).wrong


def test_failures_are_counted():
    result = Result("part")
    result.check(True, "good")
    result.check(False, "bad")
    assert result.failures == ["bad"] and table([result]).splitlines()[-1].split() == [
        "part", "2", "1"
    ]  # fmt: skip
