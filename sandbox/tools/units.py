"""The units that ``units.convert`` supports, with their conversion factors.

``catalogue.math_tools`` uses this module.
"""

from __future__ import annotations

from bestofn.sandbox.tools.mock_tool import ToolFailure

UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("m", "meter", "metre"), ("length", 1.0)),
    **dict.fromkeys(("km", "kilometer", "kilometre"), ("length", 1000.0)),
    **dict.fromkeys(("cm", "centimeter", "centimetre"), ("length", 0.01)),
    **dict.fromkeys(("mm", "millimeter", "millimetre"), ("length", 0.001)),
    **dict.fromkeys(("mi", "mile"), ("length", 1609.344)),
    **dict.fromkeys(("yd", "yard"), ("length", 0.9144)),
    **dict.fromkeys(("ft", "foot", "feet"), ("length", 0.3048)),
    **dict.fromkeys(("in", "inch", "inche"), ("length", 0.0254)),
    **dict.fromkeys(("nmi", "nautical mile"), ("length", 1852.0)),
    **dict.fromkeys(("kg", "kilogram"), ("mass", 1.0)),
    **dict.fromkeys(("g", "gram"), ("mass", 0.001)),
    **dict.fromkeys(("mg", "milligram"), ("mass", 1e-6)),
    **dict.fromkeys(("lb", "pound"), ("mass", 0.45359237)),
    **dict.fromkeys(("oz", "ounce"), ("mass", 0.028349523125)),
    **dict.fromkeys(("t", "tonne"), ("mass", 1000.0)),
    **dict.fromkeys(("stone", "st"), ("mass", 6.35029318)),
    **dict.fromkeys(("l", "liter", "litre"), ("volume", 1.0)),
    **dict.fromkeys(("ml", "milliliter", "millilitre"), ("volume", 0.001)),
    **dict.fromkeys(("gal", "gallon"), ("volume", 3.785411784)),
    **dict.fromkeys(("cup", "cups"), ("volume", 0.2365882365)),
    **dict.fromkeys(("tbsp", "tablespoon"), ("volume", 0.01478676478125)),
    **dict.fromkeys(("tsp", "teaspoon"), ("volume", 0.00492892159375)),
    **dict.fromkeys(("s", "sec", "second"), ("time", 1.0)),
    **dict.fromkeys(("min", "minute"), ("time", 60.0)),
    **dict.fromkeys(("h", "hour", "hr"), ("time", 3600.0)),
    **dict.fromkeys(("day", "d"), ("time", 86400.0)),
    **dict.fromkeys(("week", "wk"), ("time", 604800.0)),
    **dict.fromkeys(("m/s", "meter per second"), ("speed", 1.0)),
    **dict.fromkeys(("km/h", "kph", "kmh"), ("speed", 1 / 3.6)),
    **dict.fromkeys(("mph", "mi/h"), ("speed", 0.44704)),
    **dict.fromkeys(("knot", "kn"), ("speed", 1852 / 3600)),
    **dict.fromkeys(("j", "joule"), ("energy", 1.0)),
    **dict.fromkeys(("kj", "kilojoule"), ("energy", 1000.0)),
    **dict.fromkeys(("cal", "calorie"), ("energy", 4.184)),
    **dict.fromkeys(("kcal", "kilocalorie"), ("energy", 4184.0)),
    **dict.fromkeys(("kwh", "kilowatt hour"), ("energy", 3.6e6)),
    **dict.fromkeys(("m2", "square meter", "sqm"), ("area", 1.0)),
    **dict.fromkeys(("ha", "hectare"), ("area", 10000.0)),
    **dict.fromkeys(("acre", "ac"), ("area", 4046.8564224)),
    **dict.fromkeys(("sqft", "ft2", "square foot"), ("area", 0.09290304)),
    **dict.fromkeys(("b", "byte"), ("data", 1.0)),
    **dict.fromkeys(("kb", "kilobyte"), ("data", 1e3)),
    **dict.fromkeys(("mb", "megabyte"), ("data", 1e6)),
    **dict.fromkeys(("gb", "gigabyte"), ("data", 1e9)),
    **dict.fromkeys(("tb", "terabyte"), ("data", 1e12)),
    **dict.fromkeys(("pa", "pascal"), ("pressure", 1.0)),
    **dict.fromkeys(("bar",), ("pressure", 1e5)),
    **dict.fromkeys(("psi",), ("pressure", 6894.757293168)),
    **dict.fromkeys(("atm", "atmosphere"), ("pressure", 101325.0)),
}
TEMPERATURES = {"c": "c", "celsius": "c", "°c": "c", "f": "f", "fahrenheit": "f", "°f": "f", "k": "k", "kelvin": "k"}


def unit_of(name: str) -> tuple[str, float]:
    """Return the quantity and the factor of a unit: ("length", 1000.0) for "km".

    Raises ``ToolFailure`` if the unit is unknown.
    """
    key = name.strip().lower().replace("²", "2")
    for form in (key, key.removesuffix("s"), key.removesuffix("es")):
        if form in UNITS:
            return UNITS[form]
    raise ToolFailure("not_found", f"there is no unit {name!r}")
