"""Spans of a run's work, their export by OpenTelemetry, and metrics for an experiment tracker."""
