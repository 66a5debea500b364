"""Stages of a check: each has a limit in seconds, and none can end or hang the whole.

A stage's work is a function of a Limit. It runs its commands through run(), which ends them with all
their children when the limit is reached, and returns figures for the report or raises: Problem says
what is wrong, OutOfTime what was not done by then, Absent what is not there to do it with.
"""

import dataclasses
import os
import signal
import subprocess
import tempfile
import time

PASSED, FAILED, OUT_OF_TIME, NOT_RUN = "passed", "failed", "out of time", "not run"


class Problem(Exception):
    """What the stage found to be wrong."""


class OutOfTime(Problem):
    """What was not done in time: nothing was found to be wrong, and nothing to be right."""


class Absent(Exception):
    """What the machine lacks to run the stage: no verdict on what was to be checked."""


class Limit:
    """Seconds from now, shared by the commands of a stage."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


@dataclasses.dataclass
class Done:
    """A command that ended by itself. `output` is what it printed, `errors` what it complained of."""

    code: int
    output: str
    errors: str

    def last_words(self):
        """The last line of its complaints, or of its output."""
        for text in (self.errors, self.output):
            if lines := text.strip().splitlines():
                return lines[-1][:500]
        return "it said nothing"


def run(arguments, limit, environment=None):
    """A Problem when it cannot be started, OutOfTime when it is not done in time."""
    arguments = [str(argument) for argument in arguments]
    name = os.path.basename(arguments[0])
    # Files and not pipes: a child of the command that lives on would keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                       start_new_session=True, env=environment)
        except OSError as error:
            raise Problem(f"{name} cannot be started: {error.strerror}")
        try:
            code = process.wait(max(0, limit.left()))
        except subprocess.TimeoutExpired:
            raise OutOfTime(f"{' '.join([name, *arguments[1:2]])} was not done within {limit.seconds:.0f} s")
        finally:
            end_all(process)
        for file in (output, errors):
            file.seek(0)
        return Done(code, *(file.read().decode(errors="replace") for file in (output, errors)))


def end_all(process):
    """The command and its children, at once: a GPU's driver may hold one that is asked politely."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        pass  # it hangs in the kernel; the check goes on


def run_well(arguments, limit, environment=None):
    """The same; a Problem with its last words also when its exit code is not 0."""
    done = run(arguments, limit, environment)
    if done.code != 0:
        ended = f"exit code {done.code}" if done.code > 0 else f"signal {-done.code}"
        raise Problem(f"{os.path.basename(str(arguments[0]))}: {ended}: {done.last_words()}")
    return done


USUAL_SECONDS = 460  # of a whole check


class Check:
    """The stages run so far, within `seconds` all together; `changed` is called after each. A stage has
    `slowness` times its limit; more in proportion where `seconds` is more than so many times the usual."""

    def __init__(self, seconds, changed=lambda: None, slowness=1):
        self.limit = Limit(seconds)
        self.pace = max(slowness, seconds / USUAL_SECONDS)
        self.changed = changed
        self.results = []

    def stage(self, name, seconds, work):
        """Runs work(limit); gives its figures, None where it did not pass."""
        begin, figures, detail = time.monotonic(), None, ""
        seconds = min(seconds * self.pace, self.limit.left())
        try:
            if seconds < 1:
                raise OutOfTime(f"not begun: the {self.limit.seconds:.0f} s of the whole check are used up")
            figures = work(Limit(seconds)) or {}
            status = PASSED
        except Absent as reason:
            status, detail = NOT_RUN, str(reason)
        except OutOfTime as limit:
            status, detail = OUT_OF_TIME, str(limit)
        except Problem as problem:
            status, detail = FAILED, str(problem)
        except Exception as error:  # whatever a broken file or tool gave this script to read
            status, detail = FAILED, f"the check could not read the result: {type(error).__name__}: {error}"
        self.results.append({"stage": name, "status": status, "seconds": time.monotonic() - begin,
                             "detail": detail, "figures": figures})
        print(f"{status:11} {self.results[-1]['seconds']:6.1f} s  {name}{': ' if detail else ''}{detail}",
              flush=True)
        self.changed()
        return figures

    def passed(self):
        return bool(self.results) and all(result["status"] in (PASSED, NOT_RUN) for result in self.results)
