"""Tell exocomp what a playbook run does, one JSON object a line.

The lines go to the descriptor that EXOCOMP_EVENTS_FD names: a regular file,
inherited and opened for appending. Without it the plugin does nothing, and it
never fails a run: a line that cannot be written is a line less.

    {"event": "play",     "play", "id", "pattern", "hosts"}
    {"event": "no-hosts", "play", "id", "pattern"}
    {"event": "task",     "task", "id", "action", "implicit", "handler"}
    {"event": "result",   "host", "task", "id", "status", "implicit", "ignored", "message"}
    {"event": "stats",    "host", "ok", "changed", "failed", "unreachable", "skipped", "rescued"}
    {"event": "end"}

Each has "time", in seconds since 1970. "hosts" is how many hosts the play (with
`serial`, this batch of it) has. "status" is ok, changed, failed, unreachable or
skipped. "implicit" marks the fact gathering that nobody wrote. "message" is for
people and short; a result as such is never passed on, and nothing of one that
says no_log.
"""

import fcntl
import json
import os
import stat
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: exocomp_events
    type: notification
    short_description: tell exocomp what a playbook run does
    description:
      - Writes one JSON object a line to the descriptor that EXOCOMP_EVENTS_FD names.
    requirements: []
"""

MESSAGE_BYTES = 2048
NAME_BYTES = 512
FACTS = ("gather_facts", "ansible.builtin.gather_facts", "ansible.legacy.gather_facts",
         "setup", "ansible.builtin.setup", "ansible.legacy.setup")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "exocomp_events"
    CALLBACK_NEEDS_ENABLED = False

    # ansible-core may count the fact gathering of a play among the implicit
    # tasks, which it keeps from plugins that do not ask.
    wants_implicit_tasks = True

    def __init__(self):
        super().__init__()
        self._fd = events_descriptor()
        self.disabled = self._fd is None
        self._play = {}

    def v2_playbook_on_play_start(self, play):
        self._play = {
            "play": cut(play.get_name(), NAME_BYTES),
            "id": str(play._uuid),
            "pattern": cut(pattern(play.hosts), NAME_BYTES),
        }
        self._write("play", hosts=host_count(play), **self._play)

    def v2_playbook_on_no_hosts_matched(self):
        self._write("no-hosts", **self._play)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._task(task, handler=False)

    def v2_playbook_on_handler_task_start(self, task):
        self._task(task, handler=True)

    def v2_playbook_on_cleanup_task_start(self, task):
        self._task(task, handler=False)

    def v2_runner_on_ok(self, result):
        changed = result._result.get("changed", False)
        self._result(result, "changed" if changed else "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._result(result, "failed", message=failure(result._result), ignored=bool(ignore_errors))

    def v2_runner_on_unreachable(self, result):
        ignored = bool(getattr(result._task, "ignore_unreachable", False))
        self._result(result, "unreachable", message=failure(result._result), ignored=ignored)

    def v2_runner_on_skipped(self, result):
        self._result(result, "skipped")

    def v2_playbook_on_stats(self, stats):
        for host in sorted(stats.processed):
            self._write(
                "stats",
                host=host,
                ok=stats.ok.get(host, 0),
                changed=stats.changed.get(host, 0),
                failed=stats.failures.get(host, 0),
                unreachable=stats.dark.get(host, 0),
                skipped=stats.skipped.get(host, 0),
                rescued=stats.rescued.get(host, 0),
            )
        self._write("end")

    def _task(self, task, handler):
        if task.action in ("meta", "ansible.builtin.meta", "ansible.legacy.meta"):
            return
        self._write(
            "task",
            task=cut(task.get_name(), NAME_BYTES),
            id=str(task._uuid),
            action=str(task.action),
            implicit=gathers_facts_unasked(task),
            handler=handler,
        )

    def _result(self, result, status, message="", ignored=False):
        if hides(result):
            message = "the message is hidden by no_log" if message else ""
        self._write(
            "result",
            host=result._host.get_name(),
            task=cut(result._task.get_name(), NAME_BYTES),
            id=str(result._task._uuid),
            status=status,
            implicit=gathers_facts_unasked(result._task),
            ignored=ignored,
            message=cut(message, MESSAGE_BYTES),
        )

    def _write(self, event, **fields):
        if self._fd is None:
            return
        line = json.dumps(dict(event=event, time=round(time.time(), 3), **fields), default=str) + "\n"
        data = line.encode("ascii")
        try:
            while data:
                data = data[os.write(self._fd, data):]
        except OSError:
            self._fd = None


def events_descriptor():
    """Return the descriptor to write to, or None where there is none.

    The variable is taken from the environment: an ansible-playbook that a task
    starts must not write to whatever has the same number there.
    """
    try:
        fd = int(os.environ.pop("EXOCOMP_EVENTS_FD", ""))
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        if not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
            return None
        os.set_inheritable(fd, False)
        return fd
    except (ValueError, OverflowError, OSError):
        return None


def pattern(hosts):
    return ",".join(str(h) for h in hosts) if isinstance(hosts, (list, tuple)) else str(hosts)


def host_count(play):
    """Return how many hosts the play, or its current batch, has; None if unknown."""
    try:
        inventory = play.get_variable_manager()._inventory
        return len(inventory.get_hosts(play.hosts, order=play.order))
    except Exception:
        return None


def gathers_facts_unasked(task):
    """Report whether the task is the fact gathering that each play begins with.

    A task that somebody wrote knows the YAML that it comes from.
    """
    return task.action in FACTS and getattr(task, "_ds", None) is None


def hides(result):
    return bool(result._result.get("_ansible_no_log")) or "censored" in result._result \
        or getattr(result._task, "no_log", False) is True


def failure(result):
    """Return why a task failed, as briefly as its result allows."""
    for item in result.get("results") or ():
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            label = item.get("_ansible_item_label", item.get("item"))
            message = failure(item)
            return "item %s: %s" % (cut(text(label), 80), message) if label is not None else message
    message = text(result.get("msg") or result.get("reason") or "")
    if message == "non-zero return code" and "rc" in result:
        message += " %s" % text(result["rc"])
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        detail = text(result.get(key) or "")
        # ssh adds a line of its own where it had a terminal.
        detail = "\n".join(
            line for line in detail.splitlines() if not line.startswith("Shared connection to ")
        ).strip()
        if detail:
            detail = detail if len(detail) <= 600 else "…" + detail[-600:]
            return "%s: %s" % (message, detail) if message else detail
    return message or "failed without a message"


def text(value):
    return value if isinstance(value, str) else json.dumps(value, default=str)


def cut(value, size):
    """Return value as text of at most size bytes of UTF-8."""
    data = str(value).encode("utf-8", "replace")
    if len(data) <= size:
        return data.decode("utf-8")
    return data[:size - 3].decode("utf-8", "ignore") + "…"
