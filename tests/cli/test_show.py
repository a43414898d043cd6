"""Tokens go to a terminal or to a file of mode 0600, and to no other stream."""

from __future__ import annotations

import io
import os
import pty
from pathlib import Path

from rich.console import Console

from sulq.cli.show import hand_over

TOKENS = {"owner": "sulq_secret[bold]"}


def test_a_stream_that_is_no_terminal_hears_the_path_alone_T104(tmp_path: Path) -> None:
    """Also where it is told to behave like a terminal; a file left by an earlier start, or a link, is replaced."""
    place, elsewhere = tmp_path / "owner.token", tmp_path / "elsewhere"
    elsewhere.write_text("untouched", encoding="utf-8")
    place.symlink_to(elsewhere)
    for forced in (None, True):
        said = io.StringIO()
        hand_over(TOKENS, place, Console(file=said, force_terminal=forced, soft_wrap=True, color_system=None))
        assert "secret" not in said.getvalue()
        assert str(place) in said.getvalue()
        assert place.read_text(encoding="utf-8") == "owner sulq_secret[bold]\n"
        assert place.stat().st_mode & 0o777 == 0o600
    assert elsewhere.read_text(encoding="utf-8") == "untouched"


def test_a_terminal_is_shown_the_token_and_no_file_is_left(tmp_path: Path) -> None:
    """Control: somebody who looks sees it, whole."""
    near, far = pty.openpty()
    with os.fdopen(far, "w") as terminal:
        speak = Console(file=terminal, force_terminal=True, soft_wrap=True, color_system=None)
        hand_over(TOKENS, tmp_path / "owner.token", speak)
        assert b"owner    sulq_secret[bold]" in os.read(near, 1000)
    os.close(near)
    assert not (tmp_path / "owner.token").exists()
