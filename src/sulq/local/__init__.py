"""The local model: people randomise their own records, and whoever collects the reports need not be trusted.

May be imported: `Respondent`, the person's side, trusted, with `Diary`, its budget and memory; `Collector`, an Oracle
that estimates from reports; `separation`, which shows what no reports can answer though a database can, and `parities`,
that question itself [S4.17].
Never here: a report that a diary did not note first, or a float that takes part in a draw.
"""

from __future__ import annotations

from sulq.local.collector import Collector
from sulq.local.diary import Diary
from sulq.local.methods import METHODS
from sulq.local.respondent import Respondent
from sulq.local.separation import Separation, parities, separation

__all__ = ["METHODS", "Collector", "Diary", "Respondent", "Separation", "parities", "separation"]
