"""Builds datasets: sources, sampling, stages, pairing, tables and reports; see docs/architecture.md."""
