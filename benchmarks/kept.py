"""Scores in a file: a benchmark of hours may stop and go on, and what is in the file is not measured again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Kept:
    """Lines {"key": ..., "scores": ...}, in a file if one is named."""

    path: Path | None = None
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path and self.path.exists():
            self.lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def of(self, key: list[object]) -> dict[str, Any] | None:
        """What is known of a contender in a setting."""
        return next((line for line in self.lines if line["key"] == key), None)

    def add(self, line: dict[str, Any]) -> dict[str, Any]:
        """Take a contender's scores in."""
        self.lines.append(line)
        print(f"{line['key']}: {np.mean(line['scores'] or [np.nan]):.5f} ({len(line['scores'])} runs)", flush=True)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        return line
