"""Mock tools for vehicles, identity numbers and companies."""

from __future__ import annotations

import re

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import COUNTRIES, country_named, plain
from bestofn.sandbox.tools.world import World

_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_VALUES = dict(
    zip("ABCDEFGHJKLMNPRSTUVWXYZ", (1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9), strict=True)
)
_YEARS = "ABCDEFGHJKLMNPRSTVWXY123456789"  # the model year letters from 1980 on; they repeat from 2010 on
_MAKERS = {"1HG": "Honda", "1FA": "Ford", "1G1": "Chevrolet", "WBA": "BMW", "WVW": "Volkswagen", "JTD": "Toyota",
           "5YJ": "Tesla", "YV1": "Volvo", "ZFF": "Ferrari", "KMH": "Hyundai"}  # fmt: skip


@tool(
    "vehicle.decode_vin",
    {"vin": str, "maker": str, "region": str, "model_year": int, "check_digit_valid": bool},
    {"vin": "1HGCM82633A004352"},
    fails=[{"vin": "123"}, {"vin": "IOQ00000000000000"}],
    aliases=["decode_vin", "vin_decoder", "vin_lookup", "get_vehicle_info"],
)
def decode_vin(world: World, vin: str) -> Result:
    """Decode a vehicle identification number (VIN): maker, region, model year, and whether the check digit is right."""
    text = vin.strip().upper()
    if not re.fullmatch(r"[A-HJ-NPR-Z0-9]{17}", text):
        raise ToolFailure("invalid", f"{vin!r} is not a VIN; a VIN has 17 letters and digits without I, O and Q")
    total = sum(w * (int(c) if c.isdigit() else _VALUES[c]) for w, c in zip(_WEIGHTS, text, strict=True))
    year = _YEARS.find(text[9])
    old = text[6].isdigit()  # a digit in position 7 means a model year before 2010
    first = text[0]
    regions = (("12345", "North America"), ("67", "Oceania"), ("89", "South America"), ("ABCDEFGH", "Africa"),
               ("JKLMNPR", "Asia"))  # fmt: skip
    return {
        "vin": text,
        "maker": _MAKERS.get(text[:3], "unknown"),
        "region": next((name for letters, name in regions if first in letters), "Europe"),
        "model_year": (1980 if old else 2010) + max(year, 0),
        "check_digit_valid": text[8] == "0123456789X"[total % 11],
    }


@tool(
    "vehicle.recalls",
    {"make": str, "model": str, "year": int, "recalls": [{"campaign": str, "component": str, "remedy": str}]},
    {"make": "Toyota", "model": "Corolla", "year": 2019},
    fails=[{"make": "", "model": "x", "year": 2019}, {"make": "Ford", "model": "T", "year": 1850}],
    aliases=["vehicle_recalls", "check_recalls", "get_recalls", "car_recalls"],
)
def recalls(world: World, make: str, model: str, year: int) -> Result:
    """List the recalls of a car model and year, with campaign number, component and remedy."""
    if not plain(make) or not plain(model) or not 1950 <= year <= 2027:
        raise ToolFailure("invalid", "make and model must not be empty, and year must be from 1950 to 2027")
    chance = world.chance("recalls", plain(make), plain(model), year)
    parts = ["air bag", "brake line", "seat belt", "fuel pump", "software", "door latch"]
    return {
        "make": make,
        "model": model,
        "year": year,
        "recalls": [
            {
                "campaign": f"{str(year)[2:]}V{chance.integer(100, 999)}",
                "component": part,
                "remedy": f"The dealer replaces or updates the {part} free of charge.",
            }
            for part in chance.sample(parts, chance.integer(0, 2))
        ],
    }


_IBAN_LENGTHS = {"NO": 15, "DE": 22, "GB": 22, "FR": 27, "ES": 24, "IT": 27, "NL": 18, "SE": 24, "DK": 18, "CH": 21,
                 "AT": 20, "PL": 28, "PT": 25, "IE": 22, "GR": 27, "TR": 26, "AE": 23}  # fmt: skip


@tool(
    "id.validate_iban",
    {"iban": str, "valid": bool, "country": (str, None), "reason": str},
    {"iban": "GB82 WEST 1234 5698 7654 32"},
    {"iban": "DE89370400440532013001"},
    fails=[{"iban": ""}],
    aliases=["validate_iban", "check_iban", "iban_validator"],
)
def validate_iban(world: World, iban: str) -> Result:
    """Check whether an IBAN is valid: its length for the country and its check digits (ISO 7064, modulo 97).

    Returns the reason if the IBAN is not valid.
    """
    text = re.sub(r"[\s-]", "", iban).upper()
    if not text:
        raise ToolFailure("invalid", "iban is empty")
    reason = ""
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{6,30}", text):
        reason = "it does not have the form of an IBAN"
    elif text[:2] in _IBAN_LENGTHS and len(text) != _IBAN_LENGTHS[text[:2]]:
        reason = f"an IBAN of {text[:2]} has {_IBAN_LENGTHS[text[:2]]} characters; this one has {len(text)}"
    elif int("".join(str(int(character, 36)) for character in text[4:] + text[:4])) % 97 != 1:
        reason = "the check digits are wrong"
    country = COUNTRIES[text[:2]].name if text[:2] in COUNTRIES else None
    return {"iban": text, "valid": not reason, "country": country, "reason": reason}


@tool(
    "id.validate_email",
    {"email": str, "valid": bool, "domain": (str, None), "disposable": bool},
    {"email": "ada@example.com"},
    {"email": "not an address"},
    fails=[{"email": ""}],
    aliases=["validate_email", "check_email", "verify_email", "email_validator"],
)
def validate_email(world: World, email: str) -> Result:
    """Check whether a text has the form of an e-mail address. Returns the domain and whether it is disposable."""
    text = email.strip()
    if not text or len(text) > 320:
        raise ToolFailure("invalid", "email is empty or longer than 320 characters")
    name, _, domain = text.rpartition("@")
    labels = domain.split(".")
    named = re.fullmatch(r"[A-Za-z0-9._%+'-]{1,64}", name) is not None and ".." not in name and name.strip(".") == name
    placed = len(labels) > 1 and all(re.fullmatch(r"[A-Za-z0-9-]{1,63}", label) for label in labels)
    valid = named and placed and not labels[-1].isdigit()
    return {
        "email": text,
        "valid": valid,
        "domain": domain.lower() if valid else None,
        "disposable": valid and any(word in domain.lower() for word in ("temp", "trash", "10minute", "mailinator")),
    }


COMPANY = {"name": str, "domain": str, "industry": str, "country": str, "employees": int, "founded": int}
_COMPANIES = (
    ("Northwind Foods", "northwind.example", "food", "NO"),
    ("Bluebird Software", "bluebird.example", "software", "US"),
    ("Solaris Energy", "solaris.example", "energy", "DE"),
    ("Harbour Logistics", "harbour.example", "transport", "NL"),
    ("Lumen Health", "lumen.example", "health", "GB"),
    ("Quartz Mining", "quartz.example", "mining", "AU"),
    ("Maple Insurance", "maple.example", "insurance", "CA"),
    ("Sakura Robotics", "sakura.example", "robotics", "JP"),
)


def _company(world: World, row: tuple[str, str, str, str]) -> Result:
    name, domain, industry, country = row
    chance = world.chance("company", domain)
    return {
        "name": name,
        "domain": domain,
        "industry": industry,
        "country": COUNTRIES[country].name,
        "employees": chance.integer(20, 40_000),
        "founded": chance.integer(1890, 2018),
    }


@tool(
    "company.profile",
    COMPANY,
    {"domain": "bluebird.example"},
    fails=[{"domain": "nobody.example"}],
    aliases=["get_company", "company_profile", "company_info", "get_company_info", "enrich_company"],
)
def company_profile(world: World, domain: str) -> Result:
    """Get the company that owns a domain: name, industry, country, number of employees and founding year."""
    name = domain.strip().lower().removeprefix("https://").removeprefix("www.").rstrip("/")
    row = next((row for row in _COMPANIES if row[1] == name), None)
    if row is None:
        raise ToolFailure("not_found", f"no company is known for {domain!r}")
    return _company(world, row)


@tool(
    "company.search",
    {"companies": [COMPANY]},
    {"name": "software"},
    fails=[{"name": ""}],
    aliases=["search_companies", "find_company", "company_search", "lookup_company"],
)
def company_search(world: World, name: str) -> Result:
    """Search companies by part of their name or industry."""
    sought = plain(name)
    if not sought:
        raise ToolFailure("invalid", "name is empty")
    return {"companies": [_company(world, row) for row in _COMPANIES if sought in plain(f"{row[0]} {row[2]}")]}


_LISTED = ("Viktor Dragan", "Oleander Trading", "Kestrel Holdings")


@tool(
    "sanctions.screen",
    {"name": str, "match": bool, "score": float, "listed_as": (str, None)},
    {"name": "Viktor Dragan"},
    {"name": "Ada Almeida", "country": "Norway"},
    fails=[{"name": ""}, {"name": "x", "country": "Atlantis"}],
    aliases=["sanctions_check", "screen_sanctions", "check_sanctions", "sanctions_screening"],
)
def screen(world: World, name: str, country: str | None = None) -> Result:
    """Check whether a name is on the sanctions list of the mock world.

    Names are compared by the words that they share. Returns a score from 0 to 1 and the most similar name on the list.
    """
    sought = set(plain(name).split())
    if not sought:
        raise ToolFailure("invalid", "name is empty")
    if country:
        country_named(country)
    scores = {
        listed: len(sought & set(plain(listed).split())) / len(set(plain(listed).split()) | sought)
        for listed in _LISTED
    }
    best = max(scores, key=lambda listed: scores[listed])
    is_match = scores[best] >= 0.5
    return {"name": name, "match": is_match, "score": round(scores[best], 2), "listed_as": best if is_match else None}
