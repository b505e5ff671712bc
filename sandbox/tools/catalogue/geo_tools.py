"""Mock tools for places, distances, routes and countries. All these tools use the list of cities in ``places``."""

from __future__ import annotations

import ipaddress
from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import (
    CITIES,
    City,
    city_named,
    country_named,
    distance_km,
    find_city,
    great_circle_km,
)
from bestofn.sandbox.tools.world import World

PLACE = {"name": str, "country": str, "lat": float, "lon": float}


def _place(city: City) -> Result:
    return {"name": city.name, "country": city.country, "lat": city.lat, "lon": city.lon}


def _nearest(lat: float, lon: float) -> City:
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise ToolFailure("invalid", f"({lat}, {lon}) is not a place on Earth")
    return min(CITIES, key=lambda city: (great_circle_km(lat, lon, city.lat, city.lon), city.name))


@tool(
    "geo.geocode",
    {**PLACE, "confidence": float},
    {"address": "Karl Johans gate 1, Oslo"},
    fails=[{"address": "Atlantis"}],
    aliases=["geocode", "get_coordinates", "geocode_address", "address_to_coordinates", "get_lat_long"],
)
def geocode(world: World, address: str) -> Result:
    """Get the coordinates of an address or place."""
    city = city_named(address)
    exact = find_city(address.split(",")[0]) is city
    return {**_place(city), "confidence": 1.0 if exact else 0.8}


@tool(
    "geo.reverse",
    {**PLACE, "distance_km": float},
    {"lat": 48.85, "lon": 2.35},
    fails=[{"lat": 91, "lon": 0}],
    aliases=["reverse_geocode", "coordinates_to_address", "reverse_geocoding"],
)
def reverse(world: World, lat: float, lon: float) -> Result:
    """Find the known city that is nearest to given coordinates."""
    city = _nearest(lat, lon)
    return {**_place(city), "distance_km": great_circle_km(lat, lon, city.lat, city.lon)}


@tool(
    "geo.distance",
    {"a": str, "b": str, "distance": float, "unit": str},
    {"a": "Paris", "b": "London"},
    {"a": "New York", "b": "Tokyo", "unit": "mi"},
    fails=[{"a": "Paris", "b": "Atlantis"}],
    aliases=["calculate_distance", "get_distance", "distance_between", "distance_between_cities"],
)
def distance(world: World, a: str, b: str, unit: Literal["km", "mi"] = "km") -> Result:
    """Get the great-circle distance between two cities."""
    first, second = city_named(a), city_named(b)
    km = distance_km(first, second)
    return {
        "a": first.label,
        "b": second.label,
        "distance": km if unit == "km" else round(km / 1.609344, 1),
        "unit": unit,
    }


@tool(
    "geo.timezone",
    {"timezone": str, "nearest_city": str},
    {"lat": 35.7, "lon": 139.7},
    fails=[{"lat": 0, "lon": 400}],
    aliases=["get_timezone", "timezone_lookup", "timezone_by_coordinates"],
)
def timezone(world: World, lat: float, lon: float) -> Result:
    """Get the time zone at given coordinates. It is the time zone of the nearest known city."""
    city = _nearest(lat, lon)
    return {"timezone": city.timezone, "nearest_city": city.name}


Mode = Literal["driving", "walking", "cycling", "transit"]
_SPEEDS = {"driving": 78.0, "walking": 4.8, "cycling": 16.0, "transit": 62.0}


@tool(
    "maps.route",
    {"origin": str, "destination": str, "mode": str, "distance_km": float, "duration_min": int, "steps": [str]},
    {"origin": "Oslo", "destination": "Bergen"},
    {"origin": "Paris", "destination": "Lyon", "mode": "transit"},
    fails=[{"origin": "Oslo", "destination": "Tokyo"}, {"origin": "Oslo", "destination": "Oslo"}],
    aliases=["get_directions", "directions", "get_route", "route_planner", "calculate_route", "navigate"],
)
def route(world: World, origin: str, destination: str, mode: Mode = "driving") -> Result:
    """Plan a route by land between two cities. Returns its distance, duration and steps."""
    first, second = city_named(origin), city_named(destination)
    if first is second:
        raise ToolFailure("invalid", "origin and destination are the same place")
    air = distance_km(first, second)
    if air > 3500:
        raise ToolFailure("not_found", f"there is no land route from {first.name} to {second.name}")
    km = round(air * 1.27, 1)
    return {
        "origin": first.label,
        "destination": second.label,
        "mode": mode,
        "distance_km": km,
        "duration_min": round(km / _SPEEDS[mode] * 60),
        "steps": [
            f"Leave {first.name}",
            f"Follow the main road for {round(km * 0.96, 1)} km",
            f"Arrive in {second.name}",
        ],
    }


_KINDS = {
    "restaurant": ("Golden Fork", "Blue Olive", "Corner Bistro", "Harbour Grill"),
    "cafe": ("Morning Cup", "Bean Street", "Little Oven", "Quiet Corner"),
    "hotel": ("Grand Hotel", "City Inn", "Riverside Rooms", "Station Hotel"),
    "museum": ("City Museum", "Museum of Modern Art", "Maritime Museum", "Science Centre"),
    "pharmacy": ("Central Pharmacy", "Green Cross", "Night Pharmacy", "Old Town Pharmacy"),
    "park": ("Botanical Garden", "Castle Park", "River Meadow", "Hill Park"),
    "hospital": ("City Hospital", "University Clinic", "Children's Hospital", "St Anne's"),
    "supermarket": ("Fresh Market", "Daily Store", "Corner Shop", "Big Basket"),
    "atm": ("First Bank ATM", "Station ATM", "Market ATM", "Harbour ATM"),
    "gas station": ("Road Fuel", "Blue Pump", "City Petrol", "Express Fuel"),
}


@tool(
    "maps.places_nearby",
    {"location": str, "places": [{"name": str, "category": str, "distance_m": int, "rating": float}]},
    {"location": "Berlin", "category": "museum"},
    fails=[{"location": "Atlantis", "category": "cafe"}, {"location": "Berlin", "category": "volcano"}],
    aliases=["places_nearby", "nearby_search", "search_nearby", "find_nearby_places", "nearby_places", "find_places"],
)
def places_nearby(world: World, location: str, category: str, radius_m: int = 2000) -> Result:
    """Find places of a category near a location, nearest first.

    Examples of categories are restaurant, cafe, hotel, museum, pharmacy, park and hospital.
    """
    city = city_named(location)
    kind = category.strip().lower()
    kind = next((name for name in _KINDS if kind.rstrip("s") in (name, name.rstrip("s")) or kind == name + "s"), "")
    if not kind:
        raise ToolFailure("not_found", f"there is no category {category!r}; expected one of {', '.join(_KINDS)}")
    chance = world.chance("nearby", city.name, kind)
    places = [
        {"name": name, "category": kind, "distance_m": chance.integer(80, 3000), "rating": chance.number(3.0, 5.0, 1)}
        for name in _KINDS[kind]
    ]
    near = [place for place in places if place["distance_m"] <= radius_m]
    return {"location": city.label, "places": sorted(near, key=lambda place: (place["distance_m"], place["name"]))}


@tool(
    "geo.country_info",
    {
        "name": str,
        "code": str,
        "capital": str,
        "currency": str,
        "population": int,
        "area_km2": int,
        "languages": [str],
        "continent": str,
    },
    {"country": "Norway"},
    {"country": "jp"},
    fails=[{"country": "Atlantis"}],
    aliases=["country_info", "get_country_info", "country_details", "get_country", "get_capital", "country_population"],
)
def country_info(world: World, country: str) -> Result:
    """Get the capital, currency, population, area, languages and continent of a country."""
    known = country_named(country)
    names = ("name", "code", "capital", "currency", "population", "area_km2", "continent")
    return {**{name: getattr(known, name) for name in names}, "languages": list(known.languages)}


@tool(
    "geo.list_cities",
    {"country": str, "cities": [{"name": str, "population": int}]},
    {"country": "Germany", "min_population": 1000000},
    fails=[{"country": "Atlantis"}],
    aliases=["list_cities", "get_cities", "cities_in_country", "largest_cities"],
)
def list_cities(world: World, country: str, min_population: int = 0) -> Result:
    """List the known cities of a country with at least the given population, largest first."""
    known = country_named(country)
    cities = [city for city in CITIES if city.country == known.code and city.population >= min_population]
    cities.sort(key=lambda city: -city.population)
    return {"country": known.name, "cities": [{"name": city.name, "population": city.population} for city in cities]}


@tool(
    "geo.ip_lookup",
    {"ip": str, "version": int, "private": bool, "city": (str, None), "country": (str, None), "provider": (str, None)},
    {"ip": "203.0.113.9"},
    {"ip": "192.168.1.5"},
    fails=[{"ip": "300.1.1.1"}],
    aliases=["ip_lookup", "ip_geolocation", "get_ip_info", "ip_location", "locate_ip"],
)
def ip_lookup(world: World, ip: str) -> Result:
    """Get the city, country and provider of an IP address. They are null for a private address."""
    try:
        address = ipaddress.ip_address(ip.strip())
    except ValueError:
        raise ToolFailure("invalid", f"{ip!r} is not an IP address") from None
    answer = {
        "ip": str(address),
        "version": address.version,
        "private": ip.startswith(("10.", "192.168.", "127.", "fd")),
    }
    if answer["private"]:
        return answer | {"city": None, "country": None, "provider": None}
    chance = world.chance("ip", str(address))
    city = chance.choice(CITIES)
    provider = chance.choice(["Northern Net", "Blue Fibre", "Metro Cable", "Open Cloud"])
    return answer | {"city": city.name, "country": city.country, "provider": provider}
