"""The catalogue of mock tools. Importing it imports all modules in this folder, which register their tools."""

from __future__ import annotations

import importlib
import pkgutil

from bestofn.sandbox.tools.mock_tool import CATALOGUE, MockTool, ToolFailure, tool

for _module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["CATALOGUE", "MockTool", "ToolFailure", "tool"]
