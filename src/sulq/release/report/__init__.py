"""Reports: titled tables with intervals and charts, what they protect in a reader's words, and notes on the method.

May be imported: `report`, which makes one, and what it gives. Imports the releases that it is made of.
Never here: a row of the data, or a question that is not paid from the spends that the report names.
"""

from __future__ import annotations

from sulq.release.report.report import PublishedReport, report
from sulq.release.report.spec import ReportSpec

__all__ = ["PublishedReport", "ReportSpec", "report"]
