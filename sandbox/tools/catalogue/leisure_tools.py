"""Mock tools for restaurants, recipes, films, music, events and games."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import City, city_named, plain
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import Date, DateTime
from bestofn.sandbox.tools.when import format_time, parse_day, parse_time
from bestofn.sandbox.tools.world import Record, Table, World, table

_CUISINES = ("italian", "japanese", "mexican", "indian", "french", "thai", "vegetarian")


@table("reservations")
def _reservations(chance: Seeded) -> Table:
    return {}


@table("tickets_bought")
def _tickets_bought(chance: Seeded) -> Table:
    return {}


def _restaurants(world: World, city: City) -> list[Record]:
    chance = world.chance("restaurants", city.name)
    names = ("Trattoria Luna", "Sakura", "La Cantina", "Spice Garden", "Chez Nous", "Lotus", "Green Leaf")
    return [
        {
            "restaurant_id": f"RST-{city.airport}-{number}",
            "name": name,
            "cuisine": cuisine,
            "rating": chance.number(3.2, 5.0, 1),
            "price_level": chance.integer(1, 4),
        }
        for number, (name, cuisine) in enumerate(zip(names, _CUISINES, strict=True), 1)
    ]


@tool(
    "restaurants.search",
    {
        "location": str,
        "restaurants": [{"restaurant_id": str, "name": str, "cuisine": str, "rating": float, "price_level": int}],
    },
    {"location": "Milan"},
    {"location": "Tokyo", "cuisine": "japanese"},
    fails=[{"location": "Atlantis"}],
    aliases=["find_restaurants", "search_restaurants", "restaurant_search", "get_restaurants", "find_restaurant"],
)
def search_restaurants(world: World, location: str, cuisine: str = "") -> Result:
    """Search the restaurants of a city, of one cuisine if it is given. The best rated come first."""
    city, kind = city_named(location), plain(cuisine)
    places = [place for place in _restaurants(world, city) if kind in ("", place["cuisine"])]
    places.sort(key=lambda place: (-place["rating"], place["restaurant_id"]))
    return {"location": city.label, "restaurants": places}


@tool(
    "restaurants.reserve",
    {"reservation_id": str, "restaurant_id": str, "restaurant": str, "time": str, "party": int},
    {"restaurant_id": "RST-OSL-2", "dt": "2026-03-20T19:00", "party": 4},
    fails=[
        {"restaurant_id": "RST-OSL-9", "dt": "2026-03-20T19:00", "party": 2},
        {"restaurant_id": "RST-OSL-2", "dt": "2026-03-20T19:00", "party": 40},
        {"restaurant_id": "RST-OSL-2", "dt": "2026-03-20T04:00", "party": 2},
    ],
    aliases=["reserve_restaurant", "book_restaurant", "book_table", "make_reservation", "restaurant_reservation"],
    changes=True,
)
def reserve(world: World, restaurant_id: str, dt: DateTime, party: int) -> Result:
    """Reserve a table at a restaurant for 1 to 12 people, between 11:00 and 22:59.

    The restaurant id is from restaurants.search.
    """
    parts = restaurant_id.strip().split("-")
    place = None
    if len(parts) == 3:
        listed = _restaurants(world, city_named(parts[1]))
        place = next((one for one in listed if one["restaurant_id"] == restaurant_id.strip()), None)
    if place is None:
        raise ToolFailure("not_found", f"there is no restaurant {restaurant_id!r}; take an id from restaurants.search")
    moment = parse_time(dt)
    if not 11 <= moment.hour <= 22 or moment <= world.now.replace(tzinfo=None):
        raise ToolFailure("invalid", f"{dt} has passed or is outside the opening hours, 11:00 to 22:59")
    if not 1 <= party <= 12:
        raise ToolFailure("denied", f"party is {party}; expected 1 to 12")
    key = world.new_key("reservations", "RSV-")
    world["reservations"][key] = {
        "reservation_id": key,
        "restaurant_id": place["restaurant_id"],
        "restaurant": place["name"],
        "time": format_time(moment),
        "party": party,
    }
    return world["reservations"][key]


_RECIPES = (
    ("Tomato pasta", ("pasta", "tomato", "garlic", "olive oil"), ("vegan", "vegetarian"), 25),
    ("Omelette", ("egg", "butter", "cheese"), ("vegetarian", "gluten_free"), 10),
    ("Lentil soup", ("lentil", "carrot", "onion"), ("vegan", "vegetarian", "gluten_free"), 40),
    ("Chicken curry", ("chicken", "rice", "coconut milk", "curry"), ("gluten_free",), 45),
    ("Greek salad", ("tomato", "cucumber", "feta", "olive oil"), ("vegetarian", "gluten_free"), 15),
    ("Fried rice", ("rice", "egg", "carrot", "soy sauce"), ("vegetarian",), 20),
    ("Pancakes", ("flour", "milk", "egg"), ("vegetarian",), 25),
    ("Baked salmon", ("salmon", "lemon", "butter"), ("gluten_free",), 30),
    ("Bean chili", ("bean", "tomato", "onion", "pepper"), ("vegan", "vegetarian", "gluten_free"), 50),
)


@tool(
    "recipes.search",
    {"recipes": [{"name": str, "ingredients": [str], "missing": [str], "minutes": int}]},
    {"ingredients": ["eggs", "rice"]},
    {"ingredients": ["tomatoes"], "diet": "vegan"},
    fails=[{"ingredients": []}],
    aliases=["search_recipes", "find_recipes", "get_recipe", "recipe_search", "get_recipes"],
)
def recipes(
    world: World, ingredients: list[str], diet: Literal["vegan", "vegetarian", "gluten_free"] | None = None
) -> Result:
    """Search recipes that use at least one of the ingredients. Returns the missing ingredients of each recipe.

    Recipes with the fewest missing ingredients come first.
    """
    have = {_singular(name) for name in ingredients if name.strip()}
    if not have:
        raise ToolFailure("invalid", "ingredients is empty")
    recipes = [
        {
            "name": name,
            "ingredients": list(needed),
            "missing": [item for item in needed if item not in have],
            "minutes": minutes,
        }
        for name, needed, diets, minutes in _RECIPES
        if have & set(needed) and (diet is None or diet in diets)
    ]
    return {"recipes": sorted(recipes, key=lambda recipe: (len(recipe["missing"]), recipe["name"]))}


def _singular(name: str) -> str:
    text = plain(name)
    return text[:-2] if text.endswith("toes") else text[:-1] if text.endswith("s") and text[-2:] != "ss" else text


# per 100 grams: kcal, protein, carbohydrate, fat
_FOODS = {
    "apple": (52, 0.3, 14.0, 0.2), "banana": (89, 1.1, 23.0, 0.3), "bread": (265, 9.0, 49.0, 3.2),
    "rice": (130, 2.7, 28.0, 0.3), "egg": (143, 12.6, 0.7, 9.5), "milk": (61, 3.2, 4.8, 3.3),
    "chicken": (165, 31.0, 0.0, 3.6), "salmon": (208, 20.0, 0.0, 13.0), "potato": (77, 2.0, 17.0, 0.1),
    "cheese": (402, 25.0, 1.3, 33.0), "chocolate": (546, 4.9, 61.0, 31.0), "tomato": (18, 0.9, 3.9, 0.2),
    "pasta": (158, 5.8, 31.0, 0.9), "butter": (717, 0.9, 0.1, 81.0), "carrot": (41, 0.9, 10.0, 0.2),
}  # fmt: skip


@tool(
    "nutrition.lookup",
    {"food": str, "grams": float, "kcal": float, "protein_g": float, "carbohydrate_g": float, "fat_g": float},
    {"food": "banana"},
    {"food": "eggs", "grams": 120},
    fails=[{"food": "gravel"}, {"food": "egg", "grams": -1}],
    aliases=["get_nutrition", "nutrition_info", "get_calories", "food_nutrition", "calorie_lookup"],
)
def nutrition(world: World, food: str, grams: float = 100) -> Result:
    """Get the energy, protein, carbohydrate and fat of a food, for the given amount in grams."""
    name = _singular(food)
    if name not in _FOODS:
        raise ToolFailure("not_found", f"there is no food {food!r}")
    if not 0 < grams <= 100_000:
        raise ToolFailure("invalid", f"grams is {grams}; expected above 0")
    kcal, protein, carbohydrate, fat = (round(value * grams / 100, 1) for value in _FOODS[name])
    return {
        "food": name,
        "grams": grams,
        "kcal": kcal,
        "protein_g": protein,
        "carbohydrate_g": carbohydrate,
        "fat_g": fat,
    }


_FILMS = (
    ("Metropolis", 1927, "Fritz Lang", "science fiction", 8.3),
    ("City Lights", 1931, "Charlie Chaplin", "comedy", 8.5),
    ("Casablanca", 1942, "Michael Curtiz", "drama", 8.5),
    ("Seven Samurai", 1954, "Akira Kurosawa", "action", 8.6),
    ("Psycho", 1960, "Alfred Hitchcock", "thriller", 8.5),
    ("2001: A Space Odyssey", 1968, "Stanley Kubrick", "science fiction", 8.3),
    ("The Godfather", 1972, "Francis Ford Coppola", "drama", 9.2),
    ("Jaws", 1975, "Steven Spielberg", "thriller", 8.1),
    ("Alien", 1979, "Ridley Scott", "science fiction", 8.5),
    ("The Matrix", 1999, "Lana and Lilly Wachowski", "science fiction", 8.7),
    ("Spirited Away", 2001, "Hayao Miyazaki", "animation", 8.6),
    ("Inception", 2010, "Christopher Nolan", "science fiction", 8.8),
)


@tool(
    "movies.search",
    {"movies": [{"title": str, "year": int, "director": str, "genre": str, "rating": float}]},
    {"title": "matrix"},
    {"title": "", "year": 1979},
    fails=[{"title": ""}],
    aliases=["search_movies", "get_movie", "movie_info", "find_movies", "get_movie_details", "movie_search"],
)
def movies(world: World, title: str, year: int | None = None) -> Result:
    """Search films by part of the title, director or genre, and by year."""
    sought = plain(title)
    if not sought and year is None:
        raise ToolFailure("invalid", "title is empty, and no year is given")
    movies = [
        {"title": name, "year": made, "director": director, "genre": genre, "rating": rating}
        for name, made, director, genre, rating in _FILMS
        if sought in plain(f"{name} {director} {genre}") and year in (None, made)
    ]
    return {"movies": movies}


@tool(
    "tv.schedule",
    {"date": str, "programmes": [{"channel": str, "time": str, "title": str}]},
    {"date": "2026-03-16"},
    {"date": "2026-03-17", "channel": "One"},
    fails=[{"date": "2026-03-17", "channel": "Ninety"}, {"date": "today"}],
    aliases=["tv_schedule", "get_tv_schedule", "tv_guide", "what_is_on_tv"],
)
def tv(world: World, date: Date, channel: str = "") -> Result:
    """Get the television programmes of a day. The channels are One, Two and Kids."""
    day, channels = parse_day(date), ("One", "Two", "Kids")
    if channel and plain(channel) not in map(plain, channels):
        raise ToolFailure("not_found", f"there is no channel {channel!r}; expected one of {', '.join(channels)}")
    programmes = []
    for name in channels:
        if channel and plain(name) != plain(channel):
            continue
        chance = world.chance("tv", name, day.isoformat())
        shows = ["News", "Quiz night", "Wild rivers", "The long case", "Cooking together", "Late film"]
        for hour, show in zip((17, 18, 20, 21), chance.sample(shows, 4), strict=True):
            programmes.append(
                {"channel": name, "time": f"{hour:02d}:{chance.choice(['00', '15', '30'])}", "title": show}
            )
    return {"date": day.isoformat(), "programmes": programmes}


_SONGS = (
    ("Ode to Joy", "Ludwig van Beethoven", "Symphony No. 9", 1824),
    ("Clair de lune", "Claude Debussy", "Suite bergamasque", 1905),
    ("Nessun dorma", "Giacomo Puccini", "Turandot", 1926),
    ("Take Five", "Dave Brubeck Quartet", "Time Out", 1959),
    ("So What", "Miles Davis", "Kind of Blue", 1959),
    ("Yesterday", "The Beatles", "Help!", 1965),
    ("Space Oddity", "David Bowie", "David Bowie", 1969),
    ("Bohemian Rhapsody", "Queen", "A Night at the Opera", 1975),
    ("Billie Jean", "Michael Jackson", "Thriller", 1982),
    ("Smells Like Teen Spirit", "Nirvana", "Nevermind", 1991),
)


@tool(
    "music.search",
    {"tracks": [{"title": str, "artist": str, "album": str, "year": int}]},
    {"query": "queen"},
    fails=[{"query": ""}],
    aliases=["search_music", "search_songs", "find_song", "spotify_search", "play_song", "get_artist"],
)
def music(world: World, query: str) -> Result:
    """Search pieces of music by words of the title, artist or album."""
    sought = plain(query).split()
    if not sought:
        raise ToolFailure("invalid", "query is empty")
    tracks = [
        {"title": title, "artist": artist, "album": album, "year": year}
        for title, artist, album, year in _SONGS
        if all(word in plain(f"{title} {artist} {album}") for word in sought)
    ]
    return {"tracks": tracks}


@tool(
    "video.details",
    {"video_id": str, "title": str, "channel": str, "seconds": int, "views": int, "likes": int},
    {"video_id": "abc123XYZ"},
    fails=[{"video_id": "??"}],
    aliases=["get_video", "youtube_video", "video_info", "get_video_details", "youtube_search"],
)
def video(world: World, video_id: str) -> Result:
    """Get the title, channel, length in seconds, views and likes of a video."""
    key = video_id.strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]{4,40}", key):
        raise ToolFailure("not_found", f"there is no video {video_id!r}")
    chance = world.chance("video", key)
    views = chance.integer(200, 9_000_000)
    return {
        "video_id": key,
        "title": chance.choice(["How bridges are built", "A walk in the old town", "Bread in one hour", "Night sky"]),
        "channel": chance.choice(["Made by hand", "Slow travel", "Explained", "Field notes"]),
        "seconds": chance.integer(45, 3600),
        "views": views,
        "likes": round(views * chance.number(0.01, 0.09, 3)),
    }


def _events(world: World, city: City) -> list[Record]:
    chance = world.chance("city events", city.name)
    names = ("Jazz evening", "Food market", "Marathon", "Open-air cinema", "Book fair", "Symphony concert")
    return [
        {
            "event_id": f"EVN-{city.airport}-{number}",
            "name": name,
            "date": (world.now.date() + timedelta(days=chance.integer(1, 90))).isoformat(),
            "price": chance.number(0, 80),
            "left": chance.integer(0, 50),
        }
        for number, name in enumerate(names, 1)
    ]


@tool(
    "events.search",
    {"location": str, "events": [{"event_id": str, "name": str, "date": str, "price": float, "left": int}]},
    {"location": "Vienna", "from": "2026-03-16", "to": "2026-06-16"},
    fails=[{"location": "Vienna", "from": "2026-06-16", "to": "2026-03-16"}],
    aliases=["search_events", "find_events", "get_local_events", "event_search", "find_concerts"],
)
def search_events(world: World, location: str, from_: Date, to: Date) -> Result:
    """Search events such as concerts and markets in a city between two dates, earliest first."""
    city, first, last = city_named(location), parse_day(from_), parse_day(to)
    if last < first:
        raise ToolFailure("invalid", f"'to' ({to}) is before 'from' ({from_})")
    events = [event for event in _events(world, city) if first.isoformat() <= event["date"] <= last.isoformat()]
    return {"location": city.label, "events": sorted(events, key=lambda event: (event["date"], event["event_id"]))}


@tool(
    "events.tickets",
    {"order_id": str, "event_id": str, "name": str, "qty": int, "total": float},
    {"event_id": "EVN-OSL-1", "qty": 2},
    fails=[{"event_id": "EVN-OSL-99", "qty": 1}, {"event_id": "EVN-OSL-1", "qty": 500}],
    aliases=["buy_tickets", "book_tickets", "purchase_tickets", "get_event_tickets"],
    changes=True,
)
def buy_tickets(world: World, event_id: str, qty: int) -> Result:
    """Buy tickets for an event. The event id is from events.search."""
    parts = event_id.strip().split("-")
    listed = _events(world, city_named(parts[1])) if len(parts) == 3 else []
    event = next((one for one in listed if one["event_id"] == event_id.strip()), None)
    if event is None:
        raise ToolFailure("not_found", f"there is no event {event_id!r}; take an id from events.search")
    sold = sum(order["qty"] for order in world["tickets_bought"].values() if order["event_id"] == event["event_id"])
    if not 1 <= qty <= event["left"] - sold:
        raise ToolFailure("conflict", f"{max(event['left'] - sold, 0)} tickets are left, and qty is {qty}")
    key = world.new_key("tickets_bought", "TKT-")
    total = round(event["price"] * qty, 2)
    order = {"order_id": key, "event_id": event["event_id"], "name": event["name"], "qty": qty, "total": total}
    world["tickets_bought"][key] = order
    return order


@tool(
    "games.roll_dice",
    {"notation": str, "rolls": [int], "total": int},
    {"notation": "2d6+3", "seed": 4},
    {"notation": "d20"},
    fails=[{"notation": "two dice"}, {"notation": "1000d6"}],
    aliases=["roll_dice", "dice_roll", "roll_die"],
)
def roll_dice(world: World, notation: str, seed: int = 0) -> Result:
    """Roll dice in a notation such as "2d6+3". The same seed gives the same roll."""
    match = re.fullmatch(r"\s*(\d{0,3})d(\d{1,4})\s*([+-]\s*\d{1,5})?\s*", notation.lower())
    count, sides = (int(match.group(1) or 1), int(match.group(2))) if match else (0, 0)
    if match is None or not 1 <= count <= 100 or sides < 2:
        raise ToolFailure(
            "invalid", f"{notation!r} is not a dice notation; write it as in 2d6+3, with at most 100 dice"
        )
    chance = world.chance("dice", notation, seed)
    rolls = [chance.integer(1, sides) for _ in range(count)]
    return {"notation": notation, "rolls": rolls, "total": sum(rolls) + int((match.group(3) or "0").replace(" ", ""))}
