"""Files that are written whole or not at all, whatever stands where they go."""

import os
import signal
import stat
import time
from functools import partial

import numpy as np
import pytest

from skattr._files.writing import SUFFIX, check_writable, whole_file
from tests.helpers.processes import run_code, run_threads

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="about files of POSIX systems")


def write(path, content=b"new"):
    with whole_file(path) as file:
        file.write(content)


def test_a_new_file_has_the_mode_that_every_new_file_has(tmp_path):
    (tmp_path / "other").write_bytes(b"")
    write(tmp_path / "values.csv")
    assert (tmp_path / "values.csv").read_bytes() == b"new"
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("values.csv", "other")]
    assert modes[0] == modes[1]
    assert sorted(os.listdir(tmp_path)) == ["other", "values.csv"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_of_the_target_is_kept(tmp_path, mode):
    path = tmp_path / "values.csv"
    path.write_bytes(b"old and longer")
    path.chmod(mode)
    write(path)
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == mode


def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path):
    path = tmp_path / "values.csv"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with whole_file(path) as file:
        file.write(b"new")
        assert stat.S_IMODE(os.stat(f"{path}{SUFFIX}").st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives away")
def test_the_owner_of_the_target_is_kept(tmp_path):
    path = tmp_path / "values.csv"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    write(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 2345, 0o640)


def test_a_group_that_cannot_be_kept_gets_no_more_than_everybody(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    path = tmp_path / "values.csv"
    path.write_bytes(b"old")
    path.chmod(0o664)
    monkeypatch.setattr(os, "fchown", refuse)
    write(path)
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o644


def test_links_stay_links(tmp_path):
    target, link, name = (tmp_path / each for each in ("target", "link", "name"))
    target.write_bytes(b"old and longer")
    link.symlink_to("target")
    os.link(target, name)
    write(link)
    assert link.is_symlink() and os.path.samefile(target, name)
    assert target.read_bytes() == name.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["link", "name", "target"]


def test_a_link_to_nothing_becomes_a_link_to_something(tmp_path):
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"new"


def special_files(folder):
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/null")
    (folder / "folder").mkdir()
    (folder / "astray").symlink_to("no/such/target")
    (folder / "circle").symlink_to("circle")
    names = ("pipe", "link", "folder", "astray", "circle")
    return [*(folder / name for name in names), "/dev/null"]


def test_special_files_are_refused_and_stay(tmp_path):
    files = special_files(tmp_path)
    before = [(path, os.lstat(path).st_mode, os.lstat(path).st_ino) for path in files]
    for path in files:
        with pytest.raises((ValueError, OSError), match=r"name a (regular )?file|no folder"):
            write(path)
    assert before == [(path, os.lstat(path).st_mode, os.lstat(path).st_ino) for path in files]
    assert len(os.listdir(tmp_path)) == 5


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root writes anywhere")
def test_a_protected_file_stays(tmp_path):
    path = tmp_path / "values.csv"
    path.write_bytes(b"old")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match="is write-protected"):
        check_writable(path)


KILLED = """
import os, signal, sys
from skattr._files.writing import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_leaves_is_named_and_removed_by_the_next(tmp_path):
    path = tmp_path / "values.csv"
    path.write_bytes(b"old")
    for _ in range(2):
        done = run_code(KILLED, str(path))
        assert done.returncode == -signal.SIGKILL
        assert sorted(os.listdir(tmp_path)) == ["values.csv", f"values.csv{SUFFIX}"]
    assert path.read_bytes() == b"old"
    write(path)
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["values.csv"]


def test_a_link_in_place_of_the_unfinished_file_is_not_followed(tmp_path):
    (tmp_path / "private").write_bytes(b"private")
    (tmp_path / f"values.csv{SUFFIX}").symlink_to("private")
    with pytest.raises(OSError, match="unfinished"):
        write(tmp_path / "values.csv")
    assert (tmp_path / "private").read_bytes() == b"private"


def test_those_who_write_the_same_file_wait_for_each_other(tmp_path):
    path = tmp_path / "values.csv"
    contents = [bytes([65 + k]) * 100_000 for k in range(8)]
    failed = []

    def one(content):
        try:
            for _ in range(5):
                with whole_file(path) as file:
                    file.write(content[:50_000])
                    time.sleep(0.001)
                    file.write(content[50_000:])
                assert path.read_bytes() in contents
        except BaseException as error:
            failed.append(error)

    run_threads([partial(one, content) for content in contents])
    assert not failed and path.read_bytes() in contents and os.listdir(tmp_path) == ["values.csv"]


def test_a_target_with_other_names_stays_if_nothing_is_written(tmp_path):
    path, name = tmp_path / "values.csv", tmp_path / "name"
    path.write_bytes(b"old")
    os.link(path, name)
    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert name.read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["name", "values.csv"]


# an interrupt between opening a file and its first use leaves the file to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_moment_leaves_nothing(tmp_path):
    path = tmp_path / "values.csv"
    rng = np.random.default_rng(0)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in rng.uniform(1e-5, 2e-3, size=300):
            path.write_bytes(b"old")
            try:
                # again after a while: Python drops what is raised in a destructor
                signal.setitimer(signal.ITIMER_REAL, delay, 5.0)
                while True:
                    write(path)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert path.read_bytes() in (b"old", b"new") and os.listdir(tmp_path) == ["values.csv"]
    finally:
        signal.signal(signal.SIGALRM, before)
