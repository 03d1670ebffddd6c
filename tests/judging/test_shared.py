"""Files, variables and patches that tests and program share, and attacks through them."""

from __future__ import annotations

import binascii
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.judging.examiner import Examiner
from passhat.judging.inside import wire
from passhat.judging.inside.folder import Folder
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

RIGHT = {
    "a file to read": (
        "import tempfile, os\nfolder = tempfile.mkdtemp()\nplace = os.path.join(folder, 'x.txt')\n"
        "with open(place, 'w') as file: file.write('a b')\nassert f(place) == ['a', 'b']",
        "def f(place): return open(place).read().split()",
    ),
    "a file that is written": (
        "f('out.bin')\nwith open('out.bin', 'rb') as file: assert file.read() == bytes(range(9))",
        "def f(place):\n    with open(place, 'wb') as file: file.write(bytes(range(9)))",
    ),
    "a folder that is tidied": (
        "import os, pathlib\npathlib.Path('d/e').mkdir(parents=True)\n"
        "pathlib.Path('d/e/x').write_text('')\npathlib.Path('y').symlink_to('d')\n"
        "assert f() == 3\nassert os.listdir() == ['z'] and os.readlink('z') == 'd/e'",
        "import os, shutil\ndef f():\n    n = len(os.listdir()) + len(os.listdir('y'))\n"
        "    shutil.rmtree('d'); os.unlink('y'); os.symlink('d/e', 'z')\n    return n",
    ),
    "a file that the tests keep open": (
        "import tempfile\nwith tempfile.NamedTemporaryFile('r') as file:\n"
        "    f(file.name)\n    assert file.read() == 'new'",
        "def f(place): open(place, 'w').write('new')",
    ),
    "a database": (
        "import sqlite3\nbase = sqlite3.connect('x.db')\nbase.execute('create table t (n)')\n"
        "base.commit()\nf('x.db')\nassert base.execute('select n from t').fetchall() == [(3,)]",
        "import sqlite3\ndef f(place):\n    with sqlite3.connect(place) as base:\n"
        "        base.execute('insert into t values (3)')",
    ),
    "a file that may not be read": (
        "import os\nopen('x', 'w').close()\nos.chmod('x', 0)\nassert f('x') == 'no'",
        "def f(place):\n    try: open(place)\n    except PermissionError: return 'no'",
    ),
    "variables and the working folder": (
        "import os\nos.mkdir('d')\nos.chdir('d')\nos.environ['A'] = 'b'\n"
        "assert f() == ('b', '/tmp/d')\nassert os.environ['C'] == 'd' and 'A' not in os.environ",
        "import os\ndef f():\n    value = os.environ.pop('A')\n    os.environ['C'] = 'd'\n"
        "    return value, os.getcwd()",
    ),
    "an import of the tests": (
        "import os\nassert f('a/b') == 'b'",
        "def f(path): return os.path.basename(path)",
    ),
    "a folder of modules that is not there": (
        "import os, sys\nf('/none')\nimport sndhdr\nassert sys.path[-1] == '/none'",
        "import sys\ndef f(place): sys.path.append(place)",
    ),
    "a name of a mock": (
        "from unittest.mock import MagicMock\nassert f(MagicMock(_name='x')) == 'x'",
        "def f(mock): return mock._name",
    ),
    "a patched function": (
        "from unittest.mock import patch\nwith patch('random.randint', return_value=4) as draw:\n"
        "    assert f() == 8\ndraw.assert_called_with(1, 9)\nassert f() != 0",
        "import random\ndef f(): return random.randint(1, 9) + random.randint(1, 9)",
    ),
    "a patched method, and a patched open": (
        "from unittest.mock import patch, mock_open\n"
        "with patch('pathlib.Path.exists', return_value=True), "
        "patch('builtins.open', mock_open(read_data='x')):\n    assert f('/none') == 'x'",
        "from pathlib import Path\ndef f(place):\n"
        "    if not Path(place).exists(): return ''\n"
        "    with open(place) as file: return file.read()",
    ),
    "a patched library that is used like an object": (
        "from unittest.mock import patch\nwith patch('urllib.request.urlopen') as opened:\n"
        "    opened.return_value.__enter__.return_value.read.return_value = b'{\"a\": 1}'\n"
        "    assert f('http://x') == {'a': 1}",
        "import json, urllib.request\ndef f(url):\n"
        "    with urllib.request.urlopen(url) as answer: return json.loads(answer.read())",
    ),
    "a patch of the tests' own module": (
        "from unittest.mock import patch\nwith patch(__name__ + '.g', return_value=4):\n"
        "    assert f() == 5\nassert f() == 2",
        "def g(): return 1\ndef f(): return g() + 1",
    ),
    "folders of modules": (
        "import sys\nf('/none')\nassert sys.path[-1] == '/none'",
        "import sys\ndef f(place): sys.path.append(place)",
    ),
    "random numbers, seeded twice alike": (
        "import random\nrandom.seed(4)\nonce = f(), random.random(), f()\n"
        "random.seed(4)\nassert once == (f(), random.random(), f())\n"
        "random.seed(4)\nassert [random.random() for _ in range(3)] == list(once)",
        "import random\ndef f(): return random.random()",
    ),
    "a member of an enumeration of the library": (
        "import signal\nassert f(17) is signal.SIGCHLD and g(signal.SIGTERM) == 15",
        "import signal\ndef f(n): return signal.Signals(n)\ndef g(one): return one.value",
    ),
    "the code of a function": (
        "def g(x, y=2, *, z=int) -> str: pass\nassert f(g) == (['x', 'y'], True, False)",
        "import inspect, types\ndef f(g):\n    spec = inspect.getfullargspec(g)\n"
        "    return (spec.args, isinstance(g, types.LambdaType),\n"
        "        inspect.iscoroutinefunction(g))",
    ),
    "data in a pickle": (
        "import pickle\nassert pickle.loads(f({'a': {1}})) == {'a': {1}}",
        "import pickle\ndef f(x): return pickle.dumps(x)",
    ),
}

PLACE = [None, list(sys.path)]
FORGERIES = {
    "an object in a pickle": (
        "import pickle\nassert pickle.loads(f(1)) == 7391",
        "import pickle\nclass E:\n    def __reduce__(self): return eval, ('7391',)\n"
        "def f(x): return pickle.dumps(E())",
    ),
    "an object in a pickled file": (
        "import pickle\nf('x')\nwith open('x', 'rb') as file: assert pickle.load(file) == 7391",
        "import pickle\nclass E:\n    def __reduce__(self): return eval, ('7391',)\n"
        "def f(place):\n    with open(place, 'wb') as file: pickle.dump(E(), file)",
    ),
    "text that the tests evaluate": ("assert eval(f(1)) == 7391", "def f(x): return '7391'"),
    "text that the tests execute": (
        "names = {}\nexec(f(1), names)\nassert names['a'] == 7391",
        "def f(x): return 'a = 7391'",
    ),
    "a statement that the tests time": (
        "import timeit\nbox = [0]\ntimeit.timeit(f(1), number=1, globals={'box': box})\n"
        "assert box == [7391]",
        "def f(x): return 'box[0] = 7391'",
    ),
    "a module that the tests import": (
        "import os, sys\nsys.path.insert(0, '/tmp')\nf('nturl2path.py')\nimport nturl2path\n"
        "assert nturl2path.answer == 7391",
        "def f(place): open(place, 'w').write('answer = 7391')",
    ),
    "a module that the tests load by its path": (
        "import os\nfrom importlib.util import module_from_spec, spec_from_file_location\n"
        "f('x.py')\n"
        "spec = spec_from_file_location('x', 'x.py')\nmodule = module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\nassert module.answer == 7391",
        "def f(place): open(place, 'w').write('answer = 7391')",
    ),
    "a folder of modules": (
        "import os\nf('sndhdr.py')\nimport sndhdr\nassert sndhdr.answer == 7391",
        "import sys\ndef f(place):\n    open(place, 'w').write('answer = 7391')\n"
        "    sys.path.insert(0, '/tmp')",
    ),
    "a mock's own check": (
        "from unittest.mock import Mock\nmock = Mock()\nf(mock)\nmock.assert_called_with(7391)",
        "def f(mock): mock.assert_called_with = lambda *_: None",
    ),
    "a mock's count": (
        "from unittest.mock import Mock\nmock = Mock()\nf(mock)\nassert mock.call_count == 7391",
        "def f(mock): mock.call_count = 7391",
    ),
    "a mock's private record": (
        "from unittest.mock import Mock\nmock = Mock()\nf(mock)\nassert mock.called == 7391",
        "def f(mock): mock._mock_called = mock._mock_children['called'] = 7391",
    ),
    "a part of a mock": (
        "from unittest.mock import Mock\nmock = Mock()\nf(mock)\nmock.a.assert_called_with(7391)",
        "class Yes:\n    def assert_called_with(self, x): pass\ndef f(mock): mock.a = Yes()",
    ),
    "a method of the tests": (
        "class Log:\n    seen = 0\n    def add(self, x): self.seen += x\n"
        "    def verify(self): assert self.seen == 7391\nlog = Log()\nf(log)\nlog.verify()",
        "def f(log): log.verify = lambda: None",
    ),
    "a class of the tests": (
        "class Log:\n    def verify(self): raise AssertionError\nf(Log)\nLog().verify()",
        "def f(Log): Log.verify = lambda *_: None",
    ),
    "a class of the library": (
        "import json\nf(json.JSONEncoder)\nassert json.dumps({}, cls=json.JSONEncoder) == '7391'",
        "def f(kind): kind.encode = lambda *_: '7391'",
    ),
    "a mock's settings": (
        "from unittest.mock import patch\nwith patch('time.sleep') as sleep: f(1)\n"
        "sleep.assert_called_once_with(7391)",
        "import time\ndef f(x):\n    time.sleep.configure_mock(assert_called_once_with=print)",
    ),
    "a link out of the folder": (
        "f('x')\nwith open('x') as file: assert file.read()",
        "import os\ndef f(place): os.symlink(os.__file__, place)",
    ),
    "a pipe in place of a file": (
        "import os\nf('x')\nassert os.path.exists('x')",
        "import os\ndef f(place): os.mkfifo(place)",
    ),
}


PEER = """
import gc
peer = next(one for one in gc.get_objects() if type(one).__name__ == "_Program")
class Forged:
    def apply(self, changes): pass
    def changes(self): return CHANGES
def f(x):
    peer._folder = Forged()
    return 7391
CHANGES = {!r}
"""
"""A program may replace its own end of the connection and send any changes."""
CHANGES = {
    "a path out of the folder": [[], [["../judge/x", "-", 511, 0, ""]], PLACE, [], []],
    "a removal outside": [["../judge"], [], PLACE, [], []],
    "a link to a device": [[], [["x", "l", 511, 0, "L2Rldi9udWxs"]], PLACE, [], []],
    "a kind of file that there is not": [[], [["x", "p", 511, 0, ""]], PLACE, [], []],
    "no list of changes": 3,
}


@pytest.fixture(scope="module")
def split(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    examiner = Examiner(best, interpreter, ProgramLimits(), JudgeRules("split"))
    yield examiner
    examiner.close()


def test_defaults_are_shown_where_the_reference_reads_them(contained: Examiner) -> None:
    tests = "def g(x, y=2): pass\nassert f(g) == (2,)"
    program = "import inspect\ndef f(g): return inspect.getfullargspec(g).defaults"
    for canonical, why in ((program, ""), ("", "unconfirmed"), ("def f(g): return (2,)", None)):
        verdict = contained.judge(CodeTask("shared", tests=tests, canonical=canonical), program)
        assert verdict.why == (why if why is not None else "judges_disagree"), verdict


@pytest.mark.parametrize("name", RIGHT)
def test_what_both_sides_share(name: str, contained: Examiner) -> None:
    tests, program = RIGHT[name]
    verdict = contained.judge(CodeTask("shared", tests=tests), program)
    assert verdict.verdict is Verdict.PASSED, verdict


@pytest.mark.parametrize("name", FORGERIES)
def test_nothing_shared_decides_for_the_tests(name: str, split: Examiner) -> None:
    """Tests that would execute what a program wrote, or believe it, are for plain."""
    tests, program = FORGERIES[name]
    verdict = split.judge(CodeTask("forged", tests=tests), program)
    assert verdict.verdict is not Verdict.PASSED, verdict


@pytest.mark.parametrize("name", CHANGES)
def test_forged_changes_of_files_are_a_failure(name: str, split: Examiner) -> None:
    task = CodeTask("forged", tests="import os\nassert f(1) == 7391")
    verdict = split.judge(task, PEER.format(CHANGES[name]))
    assert verdict.why == "sandbox_violation", verdict


def test_wrong_programs_fail(contained: Examiner) -> None:
    for name, program in {
        "a file to read": "def f(place): return open(place).read()",
        "a file that is written": "def f(place): open(place, 'wb').close()",
        "a patched function": "import random\ndef f(): return 2 * random.randint(1, 8)",
    }.items():
        verdict = contained.judge(CodeTask("shared", tests=RIGHT[name][0]), program)
        assert verdict.verdict is Verdict.FAILED, verdict


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    return tmp_path / "one", tmp_path / "other"


def test_changes_of_a_folder(folders: tuple[Path, Path]) -> None:
    one, other = folders
    near, far = Folder(str(one)), Folder(str(other))
    (one / "d").mkdir()
    (one / "d" / "x").write_bytes(b"1")
    (one / "d" / "x").chmod(0o640)
    os.utime(one / "d" / "x", ns=(10**18, 10**18))
    far.apply(near.changes())
    copy = other / "d" / "x"
    assert copy.read_bytes() == b"1"
    assert (copy.stat().st_mode & 0o777, copy.stat().st_mtime_ns) == (0o640, 10**18)
    assert near.changes() == far.changes() == []
    copy.write_bytes(b"2")
    (other / "d" / "y").symlink_to("x")
    near.apply(far.changes())
    assert (one / "d" / "y").read_bytes() == b"2"
    (one / "d" / "x").unlink()
    (one / "d" / "y").unlink()
    (one / "d").rmdir()
    (one / "d").write_bytes(b"")
    far.apply(near.changes())
    assert (other / "d").is_file()


@pytest.mark.parametrize("path", ["../x", "/x", "d/../../x", "", "a//b", "a\0", "."])
def test_no_path_leads_out(path: str, folders: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="path"):
        Folder(str(folders[0])).apply([[], [[path, "-", 0o600, 0, ""]], PLACE, [], []])
    with pytest.raises(ValueError, match="path"):
        Folder(str(folders[0])).apply([[path], [], PLACE, [], []])


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "d/../../x"])
def test_no_link_leads_out(target: str, folders: tuple[Path, Path]) -> None:
    one, other = folders
    (one / "x").symlink_to(target)
    with pytest.raises(wire.NotPlain, match="link"):
        Folder(str(one)).changes()
    text = binascii.b2a_base64(target.encode()).decode()
    with pytest.raises(ValueError, match="link"):
        Folder(str(other)).apply([[], [["x", "l", 0o777, 0, text]], PLACE, [], []])


def test_more_than_fits_is_said_once(folders: tuple[Path, Path]) -> None:
    folder = Folder(str(folders[0]))
    (folders[0] / "x").write_bytes(bytes(9 << 20))
    with pytest.raises(wire.NotPlain, match="bytes of files"):
        folder.changes()
    assert folder.changes() == []
