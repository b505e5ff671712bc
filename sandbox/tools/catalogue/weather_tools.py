"""Mock tools for weather, air quality, sun, tides and the carbon intensity of electricity.

The values are computed from the place and the date, and follow the seasons.
"""

from __future__ import annotations

import math
from datetime import date as Day
from datetime import timedelta
from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import City, city_named
from bestofn.sandbox.tools.shapes import Date, DateTime
from bestofn.sandbox.tools.when import parse_day, parse_time
from bestofn.sandbox.tools.world import World

Units = Literal["metric", "imperial"]
_SKIES = ("clear", "partly cloudy", "cloudy", "rain", "heavy rain", "fog", "thunderstorm", "snow")


def _weather(world: World, city: City, day: Day, hour: int = 12) -> Result:
    """Return the weather for one hour, in degrees Celsius, km/h and per cent."""
    chance = world.chance("weather", city.name, day.isoformat())
    warmth = 27 - 0.45 * abs(city.lat)
    season = math.cos((day.timetuple().tm_yday - 200) / 365.25 * 2 * math.pi) * (1 if city.lat >= 0 else -1)
    swing = 0.22 * abs(city.lat)
    noise = chance.number(-4, 4, 1)
    celsius = warmth + swing * season + noise + 4 * math.sin((hour - 9) / 24 * 2 * math.pi)
    sky = chance.choice(_SKIES[:7])
    if celsius < 0 and sky in ("rain", "heavy rain", "thunderstorm"):
        sky = "snow"
    return {
        "celsius": round(celsius, 1),
        "conditions": sky,
        "humidity": chance.integer(30, 95),
        "wind_kmh": chance.integer(2, 45),
        "rain_chance": chance.integer(60, 100) if sky in _SKIES[3:5] + _SKIES[6:] else chance.integer(0, 40),
    }


def _temperature(celsius: float, units: Units) -> float:
    return round(celsius * 9 / 5 + 32, 1) if units == "imperial" else celsius


def _wind(kmh: float, units: Units) -> float:
    return round(kmh / 1.609344, 1) if units == "imperial" else float(kmh)


@tool(
    "weather.current",
    {"location": str, "temperature": float, "conditions": str, "humidity": int, "wind_speed": float, "units": str},
    {"location": "Oslo"},
    {"location": "Paris, France", "units": "imperial"},
    fails=[{"location": "Atlantis"}],
    aliases=["get_weather", "current_weather", "get_current_weather", "weather", "get_temperature"],
)
def current(world: World, location: str, units: Units = "metric") -> Result:
    """Get the current weather of a city: temperature, conditions, humidity and wind."""
    city = city_named(location)
    weather = _weather(world, city, world.now.date(), world.now.hour)
    return {
        "location": city.label,
        "temperature": _temperature(weather["celsius"], units),
        "conditions": weather["conditions"],
        "humidity": weather["humidity"],
        "wind_speed": _wind(weather["wind_kmh"], units),
        "units": units,
    }


@tool(
    "weather.forecast",
    {
        "location": str,
        "units": str,
        "days": [{"date": str, "high": float, "low": float, "conditions": str, "rain_chance": int}],
    },
    {"location": "Tokyo", "days": 3},
    fails=[{"location": "Tokyo", "days": 0}, {"location": "Nowhere", "days": 2}],
    aliases=["get_forecast", "weather_forecast", "get_weather_forecast", "daily_forecast"],
)
def forecast(world: World, location: str, days: int, units: Units = "metric") -> Result:
    """Get the weather forecast of a city for 1 to 14 days, starting today."""
    city = city_named(location)
    if not 1 <= days <= 14:
        raise ToolFailure("invalid", f"days is {days}; a forecast covers 1 to 14 days")
    listed = []
    for ahead in range(days):
        day = world.now.date() + timedelta(days=ahead)
        high, low = _weather(world, city, day, 15), _weather(world, city, day, 4)
        listed.append(
            {
                "date": day.isoformat(),
                "high": _temperature(high["celsius"], units),
                "low": _temperature(low["celsius"], units),
                "conditions": high["conditions"],
                "rain_chance": high["rain_chance"],
            }
        )
    return {"location": city.label, "units": units, "days": listed}


@tool(
    "weather.hourly",
    {"location": str, "hours": [{"time": str, "temperature": float, "conditions": str}]},
    {"location": "Madrid", "hours": 6},
    fails=[{"location": "Madrid", "hours": 100}],
    aliases=["hourly_forecast", "get_hourly_forecast", "hourly_weather"],
)
def hourly(world: World, location: str, hours: int) -> Result:
    """Get the weather of a city for each of the next 1 to 48 hours, in degrees Celsius."""
    city = city_named(location)
    if not 1 <= hours <= 48:
        raise ToolFailure("invalid", f"hours is {hours}; expected 1 to 48")
    listed = []
    for ahead in range(hours):
        moment = world.now + timedelta(hours=ahead)
        weather = _weather(world, city, moment.date(), moment.hour)
        listed.append(
            {
                "time": moment.strftime("%Y-%m-%dT%H:%M"),
                "temperature": weather["celsius"],
                "conditions": weather["conditions"],
            }
        )
    return {"location": city.label, "hours": listed}


@tool(
    "weather.historical",
    {"location": str, "date": str, "high": float, "low": float, "conditions": str, "precipitation_mm": float},
    {"location": "London", "date": "2025-07-14"},
    fails=[{"location": "London", "date": "2030-01-01"}, {"location": "London", "date": "yesterday"}],
    aliases=["historical_weather", "get_historical_weather", "weather_history", "past_weather"],
)
def historical(world: World, location: str, date: Date) -> Result:
    """Get the weather of a city on a day in the past, in degrees Celsius and millimetres."""
    city, day = city_named(location), parse_day(date)
    if day >= world.now.date():
        raise ToolFailure("invalid", f"{date} is not in the past; today is {world.now.date().isoformat()}")
    high, low = _weather(world, city, day, 15), _weather(world, city, day, 4)
    wet = high["conditions"] in ("rain", "heavy rain", "thunderstorm", "snow")
    return {
        "location": city.label,
        "date": day.isoformat(),
        "high": high["celsius"],
        "low": low["celsius"],
        "conditions": high["conditions"],
        "precipitation_mm": world.chance("rain", city.name, date).number(1, 40, 1) if wet else 0.0,
    }


@tool(
    "weather.alerts",
    {"location": str, "alerts": [{"severity": str, "event": str, "until": str}]},
    {"location": "Manila"},
    fails=[{"location": "Atlantis"}],
    aliases=["get_weather_alerts", "weather_alerts", "weather_warnings", "storm_alerts"],
)
def alerts(world: World, location: str) -> Result:
    """List the current weather warnings for a city. The list is empty if there are none."""
    city = city_named(location)
    chance = world.chance("alerts", city.name)
    events = ["strong wind", "heavy rain", "heat", "frost", "thunderstorm", "flooding"]
    listed = [
        {
            "severity": chance.choice(["minor", "moderate", "severe"]),
            "event": event,
            "until": (world.now + timedelta(hours=chance.integer(3, 48))).strftime("%Y-%m-%dT%H:%M"),
        }
        for event in chance.sample(events, chance.integer(0, 2))
    ]
    return {"location": city.label, "alerts": listed}


@tool(
    "air_quality.get",
    {"location": str, "aqi": int, "category": str, "pm2_5": float, "main_pollutant": str},
    {"location": "Delhi"},
    fails=[{"location": "Atlantis"}],
    aliases=["get_air_quality", "air_quality", "air_quality_index", "get_aqi", "air_pollution"],
)
def air_quality(world: World, location: str) -> Result:
    """Get the air quality index (US scale) of a city, its category, and the main pollutant."""
    city = city_named(location)
    chance = world.chance("air", city.name)
    aqi = chance.integer(12, 180)
    limits = ((50, "good"), (100, "moderate"), (150, "unhealthy for sensitive groups"), (500, "unhealthy"))
    return {
        "location": city.label,
        "aqi": aqi,
        "category": next(name for limit, name in limits if aqi <= limit),
        "pm2_5": round(aqi * 0.31, 1),
        "main_pollutant": chance.choice(["pm2_5", "pm10", "ozone", "nitrogen dioxide"]),
    }


@tool(
    "astronomy.sun_times",
    {"location": str, "date": str, "sunrise": str, "sunset": str, "day_length_hours": float},
    {"location": "Rome", "date": "2026-06-21"},
    fails=[{"location": "Rome", "date": "midsummer"}],
    aliases=["sunrise_sunset", "get_sunrise_sunset", "sun_times", "get_sunrise", "get_sunset"],
)
def sun_times(world: World, location: str, date: Date) -> Result:
    """Get the times of sunrise and sunset in a city on a day, in local solar time."""
    city, day = city_named(location), parse_day(date)
    tilt = math.radians(-23.44 * math.cos(2 * math.pi / 365 * (day.timetuple().tm_yday + 10)))
    angle = -math.tan(math.radians(city.lat)) * math.tan(tilt)
    hours = round(math.degrees(math.acos(max(-1.0, min(1.0, angle)))) / 7.5, 2)  # before and after noon
    rise, fall = (round((12 + sign * hours / 2) * 60) for sign in (-1, 1))
    return {
        "location": city.label,
        "date": day.isoformat(),
        "sunrise": f"{rise // 60:02d}:{rise % 60:02d}",
        "sunset": f"{min(fall, 1439) // 60:02d}:{min(fall, 1439) % 60:02d}",
        "day_length_hours": hours,
    }


@tool(
    "marine.tides",
    {"station": str, "date": str, "tides": [{"time": str, "type": str, "height_m": float}]},
    {"station": "Bergen", "date": "2026-03-20"},
    fails=[{"station": "", "date": "2026-03-20"}],
    aliases=["get_tides", "tide_times", "tide_table"],
)
def tides(world: World, station: str, date: Date) -> Result:
    """Get the times and heights of the high and low tides at a harbour on a day."""
    day = parse_day(date)
    if not station.strip():
        raise ToolFailure("invalid", "station is empty")
    chance = world.chance("tides", station.strip().lower())
    offset = (chance.integer(0, 742) + day.toordinal() * 50) % 745  # the tide comes 50 minutes later each day
    size = chance.number(0.6, 4.0)
    listed = []
    for number, minute in enumerate(range(offset % 372, 1440, 372)):
        high = number % 2 == 0
        listed.append(
            {
                "time": f"{minute // 60:02d}:{minute % 60:02d}",
                "type": "high" if high else "low",
                "height_m": size if high else round(size * 0.2, 2),
            }
        )
    return {"station": station, "date": day.isoformat(), "tides": listed}


@tool(
    "carbon.intensity",
    {"region": str, "time": str, "grams_co2_per_kwh": int, "level": str},
    {"region": "Norway"},
    fails=[{"region": ""}],
    aliases=["carbon_intensity", "get_carbon_intensity", "grid_carbon_intensity", "co2_intensity"],
)
def intensity(world: World, region: str, dt: DateTime | None = None) -> Result:
    """Get the carbon dioxide that one kilowatt hour of electricity causes in a region, now or at another time."""
    if not region.strip():
        raise ToolFailure("invalid", "region is empty")
    moment = parse_time(dt) if dt else world.now.replace(tzinfo=None)
    base = world.chance("carbon", region.strip().lower()).integer(20, 600)
    grams = max(5, round(base * (1 + 0.2 * math.sin((moment.hour - 6) / 24 * 2 * math.pi))))
    level = "low" if grams < 150 else "moderate" if grams < 350 else "high"
    return {
        "region": region,
        "time": moment.strftime("%Y-%m-%dT%H:%M"),
        "grams_co2_per_kwh": grams,
        "level": level,
    }
