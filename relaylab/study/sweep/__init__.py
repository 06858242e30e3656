"""Sweeps: a table of programs × pipelines × targets × schedules × options, measured in processes or on a cluster."""

from relaylab.study.sweep.cell import COLUMNS, DEFAULT_MEASURES, MEASURES, SweepCell, cells
from relaylab.study.sweep.run import sweep
from relaylab.study.sweep.table import SweepRow, SweepTable

__all__ = ["COLUMNS", "DEFAULT_MEASURES", "MEASURES", "SweepCell", "SweepRow", "SweepTable", "cells", "sweep"]
