"""Mock tools for flights, hotels, trains, cars, airports and visas. Bookings change the mock world."""

from __future__ import annotations

import calendar
from datetime import date as Day
from datetime import datetime, timedelta
from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import CITIES, COUNTRIES, City, city_named, country_named, distance_km
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import Date
from bestofn.sandbox.tools.when import format_time, parse_day
from bestofn.sandbox.tools.world import Record, Table, World, table

Cabin = Literal["economy", "premium", "business", "first"]
FLIGHT = {
    "flight_id": str,
    "airline": str,
    "origin": str,
    "destination": str,
    "departure": str,
    "arrival": str,
    "stops": int,
    "price": float,
    "currency": str,
}
_AIRLINES = ("NA", "Nordic Air"), ("SB", "Skybridge"), ("GO", "Globe One"), ("TW", "Transwest")
_CABINS = {"economy": 1.0, "premium": 1.6, "business": 3.1, "first": 4.8}


@table("bookings")
def _bookings(chance: Seeded) -> Table:
    return {
        "BKG-1001": {
            "booking_id": "BKG-1001",
            "kind": "flight",
            "item": "NA101-OSL-LHR-20260402",
            "status": "confirmed",
            "price": 148.0,
            "detail": {"passengers": ["Ada Almeida"]},
        },
        "BKG-1002": {
            "booking_id": "BKG-1002",
            "kind": "flight",
            "item": "SB202-CDG-JFK-20260110",
            "status": "flown",
            "price": 512.0,
            "detail": {"passengers": ["Ada Almeida"]},
        },
    }


def _ahead(world: World, text: str) -> Day:
    day = parse_day(text)
    if not 0 <= (day - world.now.date()).days <= 400:
        today = world.now.date().isoformat()
        raise ToolFailure(
            "invalid", f"{text} cannot be booked; it is {today}, and bookings are possible for the next 400 days"
        )
    return day


def _flights(world: World, origin: City, destination: City, day: Day, cabin: str) -> list[Record]:
    km = distance_km(origin, destination)
    chance = world.chance("flights", origin.airport, destination.airport, day.isoformat())
    listed = []
    for number in range(chance.integer(2, 4)):
        code, airline = chance.choice(_AIRLINES)
        stops = 0 if km < 2500 else chance.integer(0, 1)
        start = datetime(day.year, day.month, day.day, chance.integer(6, 21), chance.choice([0, 15, 30, 45]))
        end = start + timedelta(minutes=round(km / 13.5) + 35 + 95 * stops)
        price = (45 + km * 0.085) * chance.number(0.75, 1.5) * _CABINS[cabin] * (0.85 if stops else 1)
        name = f"{code}{100 + 7 * number + chance.integer(1, 6)}"
        listed.append(
            {
                "flight_id": f"{name}-{origin.airport}-{destination.airport}-{day:%Y%m%d}",
                "airline": airline,
                "origin": origin.airport,
                "destination": destination.airport,
                "departure": format_time(start),
                "arrival": format_time(end),
                "stops": stops,
                "price": round(price, 2),
                "currency": "USD",
            }
        )
    return sorted(listed, key=lambda flight: (flight["price"], flight["flight_id"]))


def _pair(origin: str, destination: str) -> tuple[City, City]:
    first, second = city_named(origin), city_named(destination)
    if first is second:
        raise ToolFailure("invalid", "origin and destination are the same place")
    return first, second


@tool(
    "flights.search",
    {"flights": [FLIGHT]},
    {"origin": "Oslo", "destination": "London", "date": "2026-04-02"},
    {"origin": "JFK", "destination": "Tokyo", "date": "2026-05-01", "cabin": "business"},
    fails=[
        {"origin": "Oslo", "destination": "Atlantis", "date": "2026-04-02"},
        {"origin": "Oslo", "destination": "London", "date": "2020-04-02"},
    ],
    aliases=["search_flights", "find_flights", "flight_search", "search_direct_flight", "get_flights"],
)
def search_flights(world: World, origin: str, destination: str, date: Date, cabin: Cabin = "economy") -> Result:
    """Search flights between two cities or airports on a day, cheapest first."""
    first, second = _pair(origin, destination)
    return {"flights": _flights(world, first, second, _ahead(world, date), cabin)}


@tool(
    "flights.cheapest_by_month",
    {"origin": str, "destination": str, "month": str, "date": str, "price": float, "currency": str},
    {"origin": "Paris", "destination": "New York", "month": "2026-06"},
    fails=[{"origin": "Paris", "destination": "New York", "month": "June"}],
    aliases=["cheapest_flight", "cheapest_flights_by_month", "find_cheapest_flight", "flight_price_calendar"],
)
def cheapest(world: World, origin: str, destination: str, month: str) -> Result:
    """Find the cheapest day to fly between two cities in a month (YYYY-MM)."""
    first, second = _pair(origin, destination)
    start = parse_day(f"{month.strip()}-01")
    days = [start + timedelta(days=ahead) for ahead in range(calendar.monthrange(start.year, start.month)[1])]
    coming = [day for day in days if 0 <= (day - world.now.date()).days <= 400]
    if not coming:
        raise ToolFailure("invalid", f"{month} has passed, or is more than 400 days ahead")
    prices = {day: _flights(world, first, second, day, "economy")[0]["price"] for day in coming}
    day = min(prices, key=lambda day: (prices[day], day))
    return {
        "origin": first.airport,
        "destination": second.airport,
        "month": month.strip(),
        "date": day.isoformat(),
        "price": prices[day],
        "currency": "USD",
    }


@tool(
    "flights.status",
    {"flight_no": str, "date": str, "status": str, "delay_min": int, "gate": str, "terminal": str},
    {"flight_no": "NA101", "date": "2026-03-16"},
    fails=[{"flight_no": "hello", "date": "2026-03-16"}],
    aliases=["get_flight_status", "flight_status", "track_flight", "check_flight_status"],
)
def flight_status(world: World, flight_no: str, date: Date) -> Result:
    """Get the status of a flight: on time or delayed, the delay in minutes, the gate and the terminal."""
    name, day = flight_no.replace(" ", "").upper(), parse_day(date)
    if not (2 <= len(name) <= 7 and name[:2].isalnum() and name[2:].isdigit()):
        raise ToolFailure("invalid", f"{flight_no!r} is not a flight number; write it as in NA101")
    chance = world.chance("status", name, day.isoformat())
    delay = chance.integer(10, 180) if chance.chance(0.3) else 0
    return {
        "flight_no": name,
        "date": day.isoformat(),
        "status": "delayed" if delay else "on time",
        "delay_min": delay,
        "gate": f"{chance.choice('ABCD')}{chance.integer(1, 40)}",
        "terminal": str(chance.integer(1, 3)),
    }


BOOKING = {"booking_id": str, "kind": str, "item": str, "status": str, "price": float, "detail": dict}


def _book(world: World, kind: str, item: str, price: float, detail: Record) -> Result:
    key = world.new_key("bookings", "BKG-")
    world["bookings"][key] = {
        "booking_id": key,
        "kind": kind,
        "item": item,
        "status": "confirmed",
        "price": round(price, 2),
        "detail": detail,
    }
    return world["bookings"][key]


def _offered(world: World, flight_id: str) -> Result:
    """Return the flight with an id from ``flights.search``, with its economy price.

    Raises ``ToolFailure`` if there is no such flight.
    """
    parts = flight_id.strip().split("-")
    airports = {city.airport: city for city in CITIES}
    if len(parts) == 4 and parts[1] in airports and parts[2] in airports and parts[3].isdigit() and len(parts[3]) == 8:
        day = _ahead(world, f"{parts[3][:4]}-{parts[3][4:6]}-{parts[3][6:]}")
        for flight in _flights(world, airports[parts[1]], airports[parts[2]], day, "economy"):
            if flight["flight_id"] == flight_id.strip():
                return flight
    raise ToolFailure("not_found", f"there is no flight {flight_id!r}; take an id from flights.search")


@tool(
    "flights.book",
    BOOKING,
    {"flight_id": "TW104-OSL-LHR-20260402", "passengers": [{"name": "Ada Almeida"}]},
    fails=[
        {"flight_id": "NA999-OSL-LHR-20260402", "passengers": [{"name": "Ada Almeida"}]},
        {"flight_id": "x", "passengers": []},
    ],
    aliases=["book_flight", "book_reservation", "reserve_flight", "purchase_flight"],
    changes=True,
)
def book_flight(world: World, flight_id: str, passengers: list[dict]) -> Result:
    """Book a flight for one or more passengers. The flight id is from flights.search.

    Each passenger needs at least a name.
    """
    flight = _offered(world, flight_id)
    if not passengers or not all(isinstance(someone.get("name"), str) and someone["name"] for someone in passengers):
        raise ToolFailure("invalid", "passengers must contain at least one passenger, and each needs a name")
    return _book(world, "flight", flight["flight_id"], flight["price"] * len(passengers), {"passengers": passengers})


@tool(
    "flights.cancel",
    {**BOOKING, "refund": float},
    {"booking_id": "BKG-1001"},
    fails=[{"booking_id": "BKG-1"}, {"booking_id": "BKG-1002"}],
    aliases=["cancel_flight", "cancel_reservation", "cancel_booking", "cancel_flight_booking"],
    changes=True,
)
def cancel_flight(world: World, booking_id: str) -> Result:
    """Cancel a booking that has not been used. 80 per cent of the price is refunded."""
    booking = world["bookings"].get(booking_id.strip())
    if booking is None:
        raise ToolFailure("not_found", f"there is no booking {booking_id!r}")
    if booking["status"] != "confirmed":
        raise ToolFailure("conflict", f"booking {booking_id} is {booking['status']}")
    booking["status"] = "cancelled"
    return {**booking, "refund": round(booking["price"] * 0.8, 2)}


def _stay(world: World, checkin: str, checkout: str) -> tuple[Day, int]:
    first, nights = _ahead(world, checkin), (parse_day(checkout) - parse_day(checkin)).days
    if not 1 <= nights <= 60:
        raise ToolFailure("invalid", f"a stay has 1 to 60 nights; {checkin} to {checkout} has {nights}")
    return first, nights


def _hotels(world: World, city: City) -> list[Record]:
    chance = world.chance("hotels", city.name)
    names = ("Grand Hotel", "Harbour Inn", "Station Hotel", "Garden Rooms")
    return [
        {
            "hotel_id": f"HTL-{city.airport}-{number}",
            "name": f"{name} {city.name}",
            "stars": chance.integer(2, 5),
            "price_per_night": chance.number(60, 320),
            "rooms": ["single", "double"] + (["suite"] if number % 2 else []),
        }
        for number, name in enumerate(names, 1)
    ]


@tool(
    "hotels.search",
    {
        "city": str,
        "nights": int,
        "hotels": [
            {"hotel_id": str, "name": str, "stars": int, "price_per_night": float, "rooms": [str], "total": float}
        ],
    },
    {"city": "Rome", "checkin": "2026-05-10", "checkout": "2026-05-13"},
    fails=[
        {"city": "Rome", "checkin": "2026-05-13", "checkout": "2026-05-10"},
        {"city": "Atlantis", "checkin": "2026-05-10", "checkout": "2026-05-13"},
    ],
    aliases=["search_hotels", "find_hotels", "hotel_search", "get_hotels", "hotel_booking_search"],
)
def search_hotels(world: World, city: str, checkin: Date, checkout: Date, guests: int = 1) -> Result:
    """Search hotels in a city for a stay, cheapest first. The total is for all guests, with two guests per room."""
    place, (_, nights) = city_named(city), _stay(world, checkin, checkout)
    if not 1 <= guests <= 12:
        raise ToolFailure("invalid", f"guests is {guests}; expected 1 to 12")
    listed = [
        {**hotel, "total": round(hotel["price_per_night"] * nights * -(-guests // 2), 2)}
        for hotel in _hotels(world, place)
    ]
    return {
        "city": place.label,
        "nights": nights,
        "hotels": sorted(listed, key=lambda hotel: (hotel["total"], hotel["hotel_id"])),
    }


@tool(
    "hotels.book",
    BOOKING,
    {"hotel_id": "HTL-FCO-1", "room": "double", "checkin": "2026-05-10", "checkout": "2026-05-13"},
    fails=[
        {"hotel_id": "HTL-FCO-9", "room": "double", "checkin": "2026-05-10", "checkout": "2026-05-13"},
        {"hotel_id": "HTL-FCO-1", "room": "igloo", "checkin": "2026-05-10", "checkout": "2026-05-13"},
    ],
    aliases=["book_hotel", "reserve_hotel", "hotel_booking", "book_room", "reserve_room"],
    changes=True,
)
def book_hotel(world: World, hotel_id: str, room: str, checkin: Date, checkout: Date) -> Result:
    """Book a room in a hotel. The hotel id is from hotels.search."""
    first, nights = _stay(world, checkin, checkout)
    parts = hotel_id.strip().split("-")
    city = next((city for city in CITIES if len(parts) == 3 and city.airport == parts[1]), None)
    hotel = (
        next((hotel for hotel in _hotels(world, city) if hotel["hotel_id"] == hotel_id.strip()), None) if city else None
    )
    if hotel is None:
        raise ToolFailure("not_found", f"there is no hotel {hotel_id!r}; take an id from hotels.search")
    if room.strip().lower() not in hotel["rooms"]:
        raise ToolFailure("not_found", f"{hotel['name']} has no room {room!r}; it has {', '.join(hotel['rooms'])}")
    detail = {"room": room.strip().lower(), "checkin": first.isoformat(), "nights": nights}
    return _book(world, "hotel", hotel["hotel_id"], hotel["price_per_night"] * nights, detail)


@tool(
    "trains.search",
    {"trains": [{"train_no": str, "departure": str, "arrival": str, "changes": int, "price": float, "currency": str}]},
    {"origin": "Paris", "destination": "Lyon", "date": "2026-03-20"},
    fails=[{"origin": "Paris", "destination": "Tokyo", "date": "2026-03-20"}],
    aliases=["search_trains", "train_search", "find_trains", "get_train_schedule", "train_timetable"],
)
def search_trains(world: World, origin: str, destination: str, date: Date) -> Result:
    """Search trains between two cities on a day, earliest first."""
    first, second = _pair(origin, destination)
    day, km = _ahead(world, date), distance_km(first, second)
    if km > 2200:
        raise ToolFailure("not_found", f"there is no train from {first.name} to {second.name}")
    chance = world.chance("trains", first.name, second.name, day.isoformat())
    listed = []
    for hour in (6, 9, 12, 15, 18):
        start = datetime(day.year, day.month, day.day, hour, chance.choice([2, 14, 31, 47]))
        changes = chance.integer(0, 1 if km < 500 else 2)
        end = start + timedelta(minutes=round(km / 2.4) + 25 * changes + 10)
        listed.append(
            {
                "train_no": f"{chance.choice(['IC', 'RE', 'EX'])} {chance.integer(100, 999)}",
                "departure": format_time(start),
                "arrival": format_time(end),
                "changes": changes,
                "price": round(9 + km * chance.number(0.08, 0.16, 3), 2),
                "currency": "EUR",
            }
        )
    return {"trains": listed}


@tool(
    "cars.rent_search",
    {"city": str, "days": int, "cars": [{"car": str, "class": str, "price_per_day": float, "total": float}]},
    {"city": "Lisbon", "from": "2026-04-01", "to": "2026-04-05"},
    fails=[{"city": "Lisbon", "from": "2026-04-05", "to": "2026-04-01"}],
    aliases=["search_car_rentals", "rent_car", "car_rental", "find_rental_cars", "search_cars"],
)
def rent_search(world: World, city: str, from_: Date, to: Date) -> Result:
    """Search cars for rent in a city, cheapest first."""
    place, (_, days) = city_named(city), _stay(world, from_, to)
    chance = world.chance("cars", place.name)
    models = (("Small Hatch", "economy", 28), ("Family Estate", "standard", 46), ("Electric Compact", "electric", 52),
              ("Seven Seater", "van", 81))  # fmt: skip
    cars = []
    for car, kind, base in models:
        price = round(base * chance.number(0.85, 1.35), 2)
        cars.append({"car": car, "class": kind, "price_per_day": price, "total": round(price * days, 2)})
    return {"city": place.label, "days": days, "cars": sorted(cars, key=lambda car: car["total"])}


@tool(
    "airports.lookup",
    {"code": str, "city": str, "country": str, "timezone": str, "lat": float, "lon": float},
    {"code": "LHR"},
    {"code": "Oslo"},
    fails=[{"code": "QQQ"}],
    aliases=["airport_lookup", "get_airport", "airport_info", "get_airport_code", "find_airport", "list_all_airports"],
)
def airport(world: World, code: str) -> Result:
    """Get the airport of a city or of an IATA code: city, country, time zone and coordinates."""
    city = city_named(code)
    return {
        "code": city.airport,
        "city": city.name,
        "country": COUNTRIES[city.country].name,
        "timezone": city.timezone,
        "lat": city.lat,
        "lon": city.lon,
    }


@tool(
    "visa.requirements",
    {"nationality": str, "destination": str, "visa_required": bool, "max_stay_days": int, "note": str},
    {"nationality": "Norway", "destination": "Japan"},
    fails=[{"nationality": "Atlantis", "destination": "Japan"}],
    aliases=["visa_requirements", "check_visa", "get_visa_requirements", "visa_check"],
)
def visa(world: World, nationality: str, destination: str) -> Result:
    """Check whether citizens of a country need a visa to visit another country, by the rules of the mock world."""
    home, abroad = country_named(nationality), country_named(destination)
    if home.code == abroad.code:
        return {
            "nationality": home.name,
            "destination": abroad.name,
            "visa_required": False,
            "max_stay_days": 36500,
            "note": "A citizen may stay without limit.",
        }
    free = home.continent == abroad.continent or world.chance("visa", home.code, abroad.code).chance(0.6)
    days = 90 if free else 30
    note = "A valid passport is enough." if free else "Apply at the embassy at least three weeks before."
    return {
        "nationality": home.name,
        "destination": abroad.name,
        "visa_required": not free,
        "max_stay_days": days,
        "note": note,
    }
