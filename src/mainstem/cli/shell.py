"""The interactive SQL shell: history, completion, statements over several lines, commands."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from mainstem import __version__
from mainstem.cli.context import Session
from mainstem.cli.output import Format, write
from mainstem.cli.shell_completion import SqlCompleter
from mainstem.cli.sql import run_piece
from mainstem.cli.statements import complete, split
from mainstem.errors import MainstemError, did_you_mean

HELP = """\
\\d           streams and tables            \\x           one line per column, on or off
\\d NAME      columns of one                \\timing      show how long it took, on or off
\\watch [S]   run the last query again      \\q           leave (also Ctrl-D)
             every S seconds, until Ctrl-C
Statements end with a semicolon. Ctrl-C stops a query; SELECT ... EMIT CHANGES runs until then."""


class Shell:
    """Reads statements, runs them, shows answers; an error never ends it."""

    def __init__(
        self, session: Session, *, input: Input | None = None, output: Output | None = None
    ) -> None:
        self._session = session
        self._form = session.form()
        self._expanded = False
        self._timing = False
        self._last = ""
        self._prompt: PromptSession[str] = PromptSession(
            message="mainstem> ",
            history=_history(),
            completer=SqlCompleter(session),
            complete_while_typing=False,
            multiline=True,
            prompt_continuation="      ... ",
            key_bindings=_bindings(),
            input=input,
            output=output,
        )
        self._commands: dict[str, Callable[[str], None]] = {
            "\\d": self._describe,
            "\\x": self._toggle_expanded,
            "\\timing": self._toggle_timing,
            "\\watch": self._watch,
            "\\?": lambda _: print(HELP),
        }

    def run(self) -> None:
        """Read and run until the user leaves."""
        say = self._session.say
        say(f"mainstem {__version__} at {self._session.client.url}; \\? for help, \\q to leave")
        while True:
            try:
                text = self._prompt.prompt().strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text.rstrip(";") in ("\\q", "exit", "quit"):
                return
            if text:
                self._guarded(text)

    def _guarded(self, text: str) -> None:
        started = time.perf_counter()
        try:
            self._run(text)
        except KeyboardInterrupt:
            self._session.say("stopped")
        except MainstemError as error:
            self._session.warn(error.render())
        if self._timing:
            self._session.say(f"{(time.perf_counter() - started) * 1000:.0f} ms")

    def _run(self, text: str) -> None:
        if text.startswith("\\"):
            name, _, argument = text.rstrip(";").partition(" ")
            if name not in self._commands:
                suggestion = did_you_mean(name, [*self._commands, "\\q"])
                self._session.warn(f"no command {name}; \\? lists all.{suggestion}")
                return
            self._commands[name](argument.strip())
            return
        self._last = text
        for piece in split(text, "<shell>"):
            run_piece(self._session, piece, self._form, expanded=self._expanded)

    def _describe(self, name: str) -> None:
        if name:
            found = self._session.client.object(name)
            rows = [
                (
                    c["name"],
                    c["type"],
                    "key" if c["name"] in (found.get("key") or ()) else "",
                    c.get("pii") or "",
                )
                for c in found["columns"]
            ]
            write(self._form, ("column", "type", "key", "pii"), rows, colour=self._session.colour)
            if found.get("wildcard"):
                print(f"topics: {', '.join(found['topics']) or 'none'}")
            if found.get("sql"):
                print(found["sql"])
            return
        objects = self._session.client.objects()
        shown = [
            (o["name"], o["kind"], o["topic"], (o.get("status") or {}).get("state"))
            for o in objects
        ]
        write(self._form, ("name", "kind", "topic", "state"), shown, colour=self._session.colour)

    def _toggle_expanded(self, _: str) -> None:
        self._expanded = not self._expanded
        self._session.say(f"one line per column: {'on' if self._expanded else 'off'}")

    def _toggle_timing(self, _: str) -> None:
        self._timing = not self._timing
        self._session.say(f"timing: {'on' if self._timing else 'off'}")

    def _watch(self, seconds: str) -> None:
        try:
            pause = float(seconds or 2)
        except ValueError:
            pause = -1.0
        if pause <= 0 or not self._last:
            self._session.warn("\\watch [SECONDS] repeats the last query; run one first")
            return
        while True:
            if self._form is Format.TABLE:
                self._session.say(time.strftime("%H:%M:%S"))
            self._run(self._last)
            time.sleep(pause)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=Condition(lambda: True))
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.strip()
        done = not text or text.startswith("\\") or text in ("exit", "quit") or complete(text)
        if done:
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _history() -> History:
    """History in the user's state folder; in memory only when that cannot be written."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(home) / "mainstem"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "sql_history"
        # statements may hold data, so the file is for its owner alone
        file.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
