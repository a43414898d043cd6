"""The local model: people randomise their own records, and whoever collects the reports need not be trusted.

`Respondent` is the person's side, `Diary` its budget and memory; `Collector` estimates from reports and is
an Oracle; `separation` shows what no such reports can answer though a database can [S4.17].
"""

from __future__ import annotations

from sulq.local.collector import Collector
from sulq.local.diary import Diary
from sulq.local.methods import METHODS
from sulq.local.respondent import Respondent
from sulq.local.separation import Separation, separation

__all__ = ["METHODS", "Collector", "Diary", "Respondent", "Separation", "separation"]
