"""Spans of a run's work and their export by OpenTelemetry, and the metrics in an experiment tracker."""
