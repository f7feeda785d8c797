# who: a command for gdb that reports who writes an object while the program
# runs.
#
#	(gdb) source /usr/share/watchctl/who.py
#	(gdb) who -n 5 stats.total
#
# gdb finds the object, watchctl watches its memory, and gdb lets the program go
# on until it stops.  $WATCHCTL is the watchctl to be used.
import os
import subprocess
import tempfile
import threading
import time

import gdb

# That of the environment; the one that this file came with; any.
BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../bin/watchctl")
WATCHCTL = os.environ.get("WATCHCTL") or (
    BESIDE if os.path.exists(BESIDE) else "watchctl")
# gdb traces the program, so that nobody else can hold it.
EXPECTED = ("another traces it", "ptrace is not permitted")

REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)


class Who(gdb.Command):
    """Continue, and report who writes to what EXPRESSION names.
Usage: who [-n N] [-t SECONDS] EXPRESSION
The program stops at the latest after N writes or so many SECONDS."""

    def __init__(self):
        super().__init__("who", gdb.COMMAND_RUNNING, gdb.COMPLETE_EXPRESSION)

    def invoke(self, arg, from_tty):
        options, expression = self.parse(arg)
        pid, spec = self.resolve(expression)
        with tempfile.TemporaryDirectory(prefix="who-") as directory:
            report = os.path.join(directory, "report")
            said = os.path.join(directory, "said")
            run = self.start(["-w", spec, "-p", str(pid), "-O", report,
                              *options], said)
            try:
                self.watch(run, report)
            finally:
                end(run)
                show(report, expression, spec)
                show(said, expression, spec)

    def parse(self, arg):
        options = []
        rest = arg.strip()
        while rest[:3] in ("-n ", "-t "):
            words = rest.split(None, 2)
            if len(words) < 3:
                break
            options += words[:2]
            rest = words[2]
        if not rest or rest[:3].strip() in ("-n", "-t"):
            raise gdb.GdbError("who [-n N] [-t SECONDS] EXPRESSION")
        return options, rest

    def resolve(self, expression):
        inferior = gdb.selected_inferior()
        pid = inferior.pid
        if pid == 0:
            raise gdb.GdbError("who: the program is not being run")
        connection = getattr(inferior, "connection", None)
        if connection is not None and connection.type != "native":
            raise gdb.GdbError("who: no process of this machine is debugged "
                               "here, but a target of type " + connection.type)
        try:
            value = gdb.parse_and_eval(expression)
            if value.type.strip_typedefs().code in REFERENCES:
                value = value.referenced_value()
            size = value.type.strip_typedefs().sizeof
            if value.address is None or value.is_optimized_out:
                raise gdb.error("it has no address: it is a value, or in a "
                                "register")
            return pid, "0x%x:%d" % (int(value.address), size)
        except gdb.error as error:
            reason = " ".join(str(error).split())
            raise gdb.GdbError("who: '%s': %s" % (expression, reason))

    def start(self, arguments, said):
        try:
            with open(said, "w") as err:
                return subprocess.Popen(
                    [WATCHCTL, *arguments], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=err,
                    start_new_session=True)
        except OSError as error:
            raise gdb.GdbError("who: %s cannot be run: %s; name it in "
                               "WATCHCTL" % (WATCHCTL, error.strerror))

    def watch(self, run, report):
        while not os.path.exists(report) or not os.path.getsize(report):
            if run.poll() is not None:
                return          # it has said why
            time.sleep(0.01)
        ended = threading.Event()
        waiting = threading.Thread(target=interrupt, args=(run, ended),
                                   daemon=True)
        waiting.start()
        try:
            gdb.execute("continue")
        except gdb.error as error:
            raise gdb.GdbError("who: " + " ".join(str(error).split()))
        finally:
            ended.set()
            end(run)
            waiting.join()      # gdb may end next


def interrupt(run, ended):
    """Have the program stop when watchctl has ended."""
    run.wait()

    def stop():
        if not ended.is_set() and gdb.selected_inferior().pid != 0:
            gdb.execute("interrupt")
    if not ended.is_set():
        gdb.post_event(stop)


def end(run):
    if run.poll() is None:
        run.terminate()
    run.wait()


def show(path, expression, spec):
    if not os.path.exists(path):
        return
    with open(path, errors="replace") as lines:
        for line in lines:
            if not all(text in line for text in EXPECTED):
                gdb.write(line.replace(spec, expression))


Who()
