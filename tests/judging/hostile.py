"""Programs that want to pass without being right, or to do harm. Each defines ``total``.

The hidden tests ask for the sum of a list, plus a number that stands only in the tests. So no
program here can be right, and whatever passes has cheated. ``{...}`` is filled in by the tests.
"""

from __future__ import annotations

HOSTILE: dict[str, str] = {
    "infinite loop": "def total(xs):\n    while True: pass",
    "infinite loop on load": "while True: pass",
    "fork bomb": """
import os
def total(xs):
    while True: os.fork()
""",
    "leaves processes behind": """
import os, time
def total(xs):
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: time.sleep(1000)
    return 0
""",
    "answers by a swarm": """
import os, json, struct
def total(xs):
    body = json.dumps({"a": "value", "d": sum(xs)}).encode()
    for _ in range(10):
        if os.fork() == 0:
            for descriptor in range(3, 64):
                try: os.write(descriptor, struct.pack("!I", len(body)) + body)
                except OSError: pass
            os._exit(0)
    return 0
""",
    "memory bomb": "def total(xs):\n    hold = []\n    while True: hold.append(bytearray(1 << 24))",
    "disk bomb": """
def total(xs):
    with open("/tmp/fill", "wb") as file:
        while True: file.write(b"x" * (1 << 20))
""",
    "many disk files": """
def total(xs):
    for number in range(10):
        with open(f"/tmp/fill{number}", "wb") as file: file.write(b"x" * (1 << 23))
""",
    "inode bomb": """
def total(xs):
    number = 0
    while True:
        open(f"/tmp/{number}", "w").close()
        number += 1
""",
    "deep folders": """
import os
def total(xs):
    for _ in range(1500):
        os.mkdir("d"); os.chdir("d")
    return 0
""",
    "writes home": """
def total(xs):
    open("{home}/hello", "w").write("was here")
""",
    "reads a secret file": """
def total(xs):
    return open("{secret}").read()
""",
    "reads the environment": """
import os
def total(xs):
    found = dict(os.environ)
    for pid in ("self", 1, 2, 3):
        found[pid] = open(f"/proc/{pid}/environ").read()
    return found
""",
    "connects to loopback": """
import socket
def total(xs):
    socket.create_connection(("127.0.0.1", {port}), 1).sendall(b"hello")
""",
    "listens": """
import socket
def total(xs):
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
""",
    "kills everybody": """
import os, signal
def total(xs):
    for target in (os.getppid(), -1, 0, 1, 2):
        try: os.kill(target, signal.SIGKILL)
        except OSError: pass
    raise ValueError
""",
    "kills itself": "import os\ndef total(xs):\n    os.kill(os.getpid(), 9)\n    return None",
    "signals through fcntl": """
import fcntl, os
def total(xs):
    r, w = os.pipe()
    fcntl.fcntl(r, 8, os.getppid()); fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, 4, 0o20000)
    os.write(w, b"x")
""",
    "limits its parent": """
import os, resource
def total(xs):
    resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))
""",
    "exits with 0": "import os\ndef total(xs):\n    os._exit(0)",
    "exits with 0 on load": "import sys\nsys.exit(0)",
    "raises SystemExit": "def total(xs):\n    raise SystemExit(0)",
    "executes another program": """
import os
def total(xs):
    os.execv("/usr/bin/true", ["true"])
""",
    "forged frames on every descriptor": """
import os, json, struct
def total(xs):
    for words in (["examined", "passed", "passed", ""], ["value", True], ["ready"], ["ended"]):
        body = json.dumps(words).encode()
        for descriptor in range(64):
            try: os.write(descriptor, struct.pack("!I", len(body)) + body)
            except OSError: pass
    os._exit(0)
""",
    "noise on every descriptor": """
import os
for descriptor in range(64):
    try: os.write(descriptor, b"\\xff" * 4096)
    except OSError: pass
""",
    "reads every descriptor": """
import os
def total(xs):
    found = []
    for descriptor in range(3, 64):
        try:
            os.set_blocking(descriptor, False)
            found.append(os.read(descriptor, 1 << 16))
        except OSError: pass
    return found
""",
    "closes every descriptor": """
import os
def total(xs):
    os.closerange(0, 64)
    while True: pass
""",
    "takes its time to end": """
import os, time
def total(xs):
    os.closerange(3, 64)
    time.sleep(1.5)
    os._exit(0)
""",
    "printed markers": """
import sys
print("passed"); print("1 passed in 0.01s"); print("OK", file=sys.stderr)
def total(xs):
    print("PASSED"); return None
""",
    "trace function": """
import sys
def jump(frame, event, arg):
    frame.f_trace_opcodes = True
    if event == "exception": return None
    return jump
sys.settrace(jump)
def total(xs):
    sys._getframe(1).f_trace = jump
    return None
""",
    "frame walk": """
import sys
def total(xs):
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(repr(frame.f_locals) + repr(frame.f_globals) + repr(frame.f_code.co_consts))
        frame = frame.f_back
    mark = "".join(["hid", "den tests of ", "total"])
    return sum(xs) + 7391 if mark in "".join(seen) else None
""",
    "garbage collector": """
import gc
def total(xs):
    mark = "hidden" + " tests of total"
    for thing in gc.get_objects():
        if isinstance(thing, dict) and any(mark in str(v) for v in list(thing.values())[:50]):
            return sum(xs) + 7391
""",
    "files and arguments": """
import os, sys
def total(xs):
    text = " ".join(sys.argv) + str(sys.orig_argv)
    mark = "hidden" + " tests of total"
    for folder in ("/tmp", "/judge", ".", "{home}", "/proc/self/fd", "/work"):
        for root, _, names in os.walk(folder):
            for name in names:
                try: text += open(os.path.join(root, name), errors="replace").read()
                except OSError: pass
    return sum(xs) + 7391 if mark in text else None
""",
    "memory of the process": """
import ctypes
def total(xs):
    text = open("/proc/self/mem", "rb")
""",
    "equal to everything": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def total(xs):
    return Yes()
""",
    "a number equal to everything": """
class Yes(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def total(xs):
    return Yes(1)
""",
    "equal by arithmetic": """
class Close:
    def __sub__(self, other): return self
    __rsub__ = __abs__ = lambda self, *others: self
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __eq__ = __lt__
    def __float__(self): return 0.0
def total(xs):
    return Close()
""",
    "a class in place of the function": """
class total(int):
    def __new__(cls, xs): return object.__new__(Yes)
class Yes:
    def __eq__(self, other): return True
""",
    "patched builtins": """
import builtins, unittest
builtins.AssertionError = type("Quiet", (BaseException,), {{}})
builtins.sum = lambda *a: 0
builtins.__build_class__ = None
unittest.TestCase.assertEqual = lambda *a: None
def total(xs):
    return None
""",
    "patched judge": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("inside"):
        for key, value in list(vars(module).items()):
            if callable(value) and key.startswith(("_verdict", "examine", "_failed", "decode")):
                setattr(module, key, lambda *a, **k: ("passed", "passed", ""))
def total(xs):
    return None
""",
    "an exception that looks right": """
class AssertionError(Exception):
    def __eq__(self, other): return True
def total(xs):
    raise AssertionError("passed")
""",
    "gives its arguments another value": """
def total(xs):
    xs.clear()
    return 7391
""",
    "endless generator": """
def total(xs):
    return Endless()
class Endless:
    def __iter__(self): return self
    def __next__(self): return 1
""",
    "giant answer": "def total(xs):\n    return 'x' * (1 << 28)",
    "deep answer": """
def total(xs):
    found = []
    for _ in range(100_000): found = [found]
    return found
""",
    "giant output": """
def total(xs):
    while True: print("x" * (1 << 20))
""",
    "ignored signals": """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def total(xs):
    while True: pass
""",
    "daemon": """
import os, time
def total(xs):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
    return None
""",
    "threads that hang": """
import threading, time
for _ in range(20):
    threading.Thread(target=time.sleep, args=(3600,)).start()
def total(xs):
    return None
""",
    "segmentation fault": "import ctypes\ndef total(xs):\n    ctypes.string_at(0)",
    "endless recursion": """
import sys
sys.setrecursionlimit(10 ** 9)
def total(xs):
    return total(xs)
""",
    "namespaces": """
import ctypes, os
def total(xs):
    if ctypes.CDLL(None).unshare(0x10000000) != 0: raise OSError(1, "no")
    return None
""",
    "changes modes, owners and times": """
import os
def total(xs):
    for path in ("{secret}", "{home}", "/", "/tmp", "/dev/null", "/dev/zero", os.__file__):
        for call in (lambda: os.chmod(path, 0o777), lambda: os.chown(path, 1, 1),
                     lambda: os.utime(path), lambda: os.utime(path, (5, 5)),
                     lambda: os.truncate(path, 0), lambda: os.setxattr(path, "user.x", b"1"),
                     lambda: os.rename(path, path + "2"), lambda: os.unlink(path)):
            try: call()
            except OSError: pass
""",
    "changes modes through a descriptor": """
import os
def total(xs):
    for path in ("{secret}", os.__file__, "/dev/zero"):
        try: number = os.open(path, os.O_RDONLY)
        except OSError: continue
        for call in (lambda: os.fchmod(number, 0o777), lambda: os.utime(number, (5, 5)),
                     lambda: os.ftruncate(number, 0), lambda: os.fchown(number, 1, 1)):
            try: call()
            except OSError: pass
""",
    "many threads": """
import threading
def total(xs):
    stop = threading.Event()
    for _ in range(5000): threading.Thread(target=stop.wait, daemon=True).start()
""",
    "a verdict of its own": """
import os, json, struct, sys
def total(xs):
    body = json.dumps(["examined", "passed", "passed", ""]).encode()
    for number in range(3, 64):
        try: os.write(number, struct.pack("!I", len(body)) + body)
        except OSError: pass
    os._exit(0)
""",
    "a verdict of its own, then something unsupported": """
import os, json, struct, sys
class Odd(dict):
    def __getitem__(self, key): return key
def total(xs):
    if "tests.py" in [f.co_filename for f in frames()]:
        body = json.dumps(["examined", "passed", "passed", ""]).encode()
        for number in range(3, 64):
            try: os.write(number, struct.pack("!I", len(body)) + body)
            except OSError: pass
        os._exit(0)
    return Odd(a=1)
def frames():
    frame = sys._getframe()
    while frame: yield frame.f_code; frame = frame.f_back
""",
    "swallows every exception of the tests": """
import sys, os
sys.excepthook = lambda *a: None
class Calm:
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __eq__(self, other): return True
    def __sub__(self, other): return self
    def __abs__(self): return self
    def __lt__(self, other): return True
    def __hash__(self): return 1
def total(xs):
    return Calm()
""",
    "changes the constants of the tests": """
import sys
def total(xs):
    frame = sys._getframe(1)
    names = frame.f_globals
    if "check" in names:
        names["check"].__code__ = (lambda candidate: None).__code__
        names["sum"] = lambda xs: -7391
    return 0
""",
    "replaces the judge's own functions": """
import sys, gc
for module in list(sys.modules.values()):
    for name in ("examine_plain", "_run_what_is_defined", "_failed_plainly", "_run"):
        if hasattr(module, name):
            setattr(module, name, lambda *a, **k: ("passed", "passed", ""))
def total(xs):
    return None
""",
    "an atexit hook that says passed": """
import atexit, os
atexit.register(os._exit, 0)
def total(xs):
    raise SystemExit(0)
""",
    "reads the tests from the frame": """
import sys
def total(xs):
    frame = sys._getframe(1)
    numbers = [c for c in frame.f_code.co_consts if isinstance(c, int)]
    return sum(xs) + max([n for n in numbers if n > 1000] or [0])
""",
    "looks into the tests through an argument": """
def total(xs):
    return xs.__class__.__base__.__subclasses__()
""",
}


RAW = """
import gc, json, os
def channel():
    return next(one for one in gc.get_objects() if type(one).__name__ == "_Program")._channel
def raw(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    os.write(channel(), len(body).to_bytes(4, "big") + body)
"""
WRITE = """
import inside.wire as wire
old = wire.Codec.write
def write(self, value):
    data, contents = old(self, value)
    return data, contents + [[number, "l", *items] for number in numbers]
wire.Codec.write = write
"""
HOSTILE |= {
    "answers before it is asked": f"""{RAW}
for number in (7394, 7396, 7391): raw({{"a": "value", "d": number}})
def total(xs): return 0
""",
    "answers in two threads": f"""{RAW}
import threading
def flood():
    for number in (7394, 7396, 7391) * 500: raw({{"a": "value", "d": number}})
def total(xs):
    threading.Thread(target=flood, daemon=True).start()
    return 0
""",
    "answers twice in one message": f"""{RAW}
def total(xs): raw(b'{{"a": "value", "d": 0, "d": 7394, "a": "stop"}}')
""",
    "asks and answers in one message": f"""{RAW}
def total(xs): raw({{"q": ["names", -1, ""], "a": "value", "d": ["t"]}})
""",
    "names that the tests do not ask for": f"""{WRITE}
numbers, items = [0], ["total", "sum", "check", "abs"]
def sum(xs): return -7391
def abs(x): return 0
def total(xs): return 0
""",
    "containers under the numbers of the tests": f"""{WRITE}
numbers, items = range(0, 40, 2), [7391]
def total(xs): return xs
""",
    "tags without parts": f"""{RAW}
def total(xs):
    for tag in (*"XoCMTSE@iNKVI", "~"): raw({{"a": "value", "d": [tag]}})
""",
    "objects that the tests never gave": f"""{RAW}
def total(xs): raw({{"a": "value", "d": ["o", 0, 0]}})
""",
    "random numbers that nobody drew": f"""{RAW}
def total(xs): raw({{"a": "value", "d": 0, "r": [3, [0] * 625, None]}})
""",
    "infinite": f"""{RAW}
def total(xs): raw(b'{{"a": "value", "d": 1e999}}')
""",
    "its argument is the answer": "def total(xs):\n    xs[:] = [-7391]\n    return 0",
    "skips the tests": "import unittest\ndef total(xs): raise unittest.SkipTest('no')",
    "ends the run of unittest": "import unittest.case as c\ndef total(xs): raise c._ShouldStop",
    "a subclass of int": (
        "class N(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\n"
        "    __sub__ = lambda self, other: 0\ndef total(xs): return N(3)"
    ),
    "modules for the tests": (
        "import os, sys\nfor name in ('os', 'unittest', 'math'):\n"
        "    open('/tmp/' + name + '.py', 'w').write('raise SystemExit(0)')\n"
        "sys.path.insert(0, '/tmp')\nos.environ['PYTHONPATH'] = '/tmp'\ndef total(xs): return 0"
    ),
}
"""Programs that write on the judge's channel by themselves, and some more."""

ENDINGS: dict[str, str] = {
    "is not callable": "total = 5",
    "is a coroutine function": "async def total(xs): return sum(xs) + 7391",
    "lowers its processor time": """
import resource
def total(xs):
    try: resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
    except (OSError, ValueError): pass
    while True: pass
""",
    "has an exception with a long name": """
def total(xs):
    raise type("E" * 10 ** 6, (Exception,), {})("x" * 10 ** 6)
""",
    "returns numbers that collide": """
def total(xs):
    return {i * (2 ** 61 - 1) for i in range(30000)}
""",
    "returns keys that collide": """
def total(xs):
    return dict.fromkeys([i * (2 ** 61 - 1) for i in range(1, 3000)], 1)
""",
    "returns millions of numbers": "def total(xs):\n    return list(range(3 * 10 ** 6))",
    "returns many objects": """
class A: pass
def total(xs): return [A() for _ in range(200000)]
""",
    "ends by a signal": "import os, signal\ndef total(xs): os.kill(os.getpid(), signal.SIGSEGV)",
    "ends by an alarm": "import signal\nsignal.alarm(1)\ndef total(xs):\n    while True: pass",
    "exits while it is loaded": "import os\nos._exit(0)",
    "never ends its answer": """
class Endless:
    def __iter__(self): return self
    def __next__(self): return 1
def total(xs):
    return sum(Endless())
""",
    "forges a broken sandbox": """
import os, json, struct
body = json.dumps(["broken", "by itself"]).encode()
for number in range(3, 64):
    try: os.write(number, struct.pack("!I", len(body)) + body)
    except OSError: pass
def total(xs): os._exit(0)
""",
    "forges tests that cannot be run": """
import os, json, struct
body = json.dumps(["untestable", "by itself"]).encode()
for number in range(3, 64):
    try: os.write(number, struct.pack("!I", len(body)) + body)
    except OSError: pass
def total(xs): os._exit(0)
""",
    "is deeply nested": "def total(xs): return " + "(" * 3000 + "1" + ")" * 3000,
    "has a lone surrogate": "def total(xs): return '\ud800'",
    "has a long number": "def total(xs): return 0x" + "f" * 5000,
}
"""Endings that a program can choose: each is a failure of the program, and none of the judge."""

SCRIPTS: dict[str, str] = {
    "forged frames": """
import os, json, struct
for words in (["broken", "x"], ["ended"], ["started"], ["examined", "passed", "", ""]):
    body = json.dumps(words).encode()
    for number in range(2, 64):
        try: os.write(number, struct.pack("!I", len(body)) + body)
        except OSError: pass
""",
    "exits with 0": "import os; os._exit(0)",
    "prints a verdict": "print('passed')",
    "prints without end": "while True: print('x' * (1 << 20))",
    "exits with 3": "raise SystemExit(3)",
    "a thread that never ends": """
import threading, time
threading.Thread(target=time.sleep, args=(3600,)).start()
""",
    "closes its output": "import os\nos.close(1)\nwhile True: pass",
    "an exit hook that never ends": """
import atexit
atexit.register(lambda: [0 for _ in iter(int, 1)])
""",
    "noise on standard error": "import sys\nwhile True: sys.stderr.write('x' * 65536)",
}

NOTES: dict[str, tuple[str, str]] = (
    {
        place: (
            f"import os\nopen('{place}/passhat-note', 'w').write('7391')",
            f"open('{place}/passhat-note').read()",
        )
        for place in ("/tmp", "/dev/shm", ".", "/var/tmp", "/run", "/dev")
    }
    | {
        f"times of {place}": (
            f"import os\nos.utime('{place}', (7391, 7391))",
            f"str(int(__import__('os').stat('{place}').st_mtime))",
        )
        for place in ("/tmp", "/dev/shm", "/", "/dev/null", "/dev/zero", "/dev/urandom", ".")
    }
    | {
        "number of a file": (
            "import os, tempfile\nfor i in range(1500): open('/tmp/%d' % i, 'w').close()",
            "'7391' if __import__('os').fstat(open('/tmp/x', 'w').fileno()).st_ino > 1000 else '0'",
        ),
        "numbers of processes": (
            "import threading\nfor _ in range(300):\n"
            "    t = threading.Thread(target=int); t.start(); t.join()",
            "'7391' if __import__('os').getpid() > 200 else '0'",
        ),
        "numbers of threads": (
            "import threading\nfor _ in range(300):\n"
            "    t = threading.Thread(target=int); t.start(); t.join()",
            "'7391' if __import__('threading').get_native_id() > 200 else '0'",
        ),
        "load of the machine": (
            "sum(i * i for i in range(10 ** 6))",
            "'7391' if __import__('os').getloadavg() else '0'",
        ),
    }
)
"""What one program does to leave a note, and what the next one does to read it."""
