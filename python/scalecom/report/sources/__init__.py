"""What a report is made from, read from files."""

from scalecom.report.sources.fields import Unreadable
from scalecom.report.sources.findings import Findings, find

__all__ = ["Findings", "Unreadable", "find"]
