"""The cities and countries that the tools know, with rounded numbers, and functions that find them by name."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass

from bestofn.sandbox.tools.mock_tool import ToolFailure


@dataclass(frozen=True, slots=True)
class City:
    """One city; ``airport`` is its IATA code."""

    name: str
    country: str  # ISO 3166 alpha-2
    lat: float
    lon: float
    timezone: str
    population: int
    airport: str

    @property
    def label(self) -> str:
        """The names of city and country: "Oslo, Norway"."""
        return f"{self.name}, {COUNTRIES[self.country].name}"


@dataclass(frozen=True, slots=True)
class Country:
    """One country; ``code`` is its ISO 3166 alpha-2 code, ``currency`` its ISO 4217 code."""

    code: str
    name: str
    capital: str
    currency: str
    population: int
    area_km2: int
    languages: tuple[str, ...]
    continent: str


COUNTRIES = {
    row[0]: Country(*row)
    for row in (
        ("NO", "Norway", "Oslo", "NOK", 5_500_000, 385_207, ("Norwegian",), "Europe"),
        ("SE", "Sweden", "Stockholm", "SEK", 10_500_000, 450_295, ("Swedish",), "Europe"),
        ("DK", "Denmark", "Copenhagen", "DKK", 5_900_000, 42_943, ("Danish",), "Europe"),
        ("GB", "United Kingdom", "London", "GBP", 67_600_000, 243_610, ("English",), "Europe"),
        ("IE", "Ireland", "Dublin", "EUR", 5_200_000, 70_273, ("English", "Irish"), "Europe"),
        ("FR", "France", "Paris", "EUR", 68_000_000, 551_695, ("French",), "Europe"),
        ("DE", "Germany", "Berlin", "EUR", 84_400_000, 357_022, ("German",), "Europe"),
        ("ES", "Spain", "Madrid", "EUR", 48_300_000, 505_990, ("Spanish",), "Europe"),
        ("PT", "Portugal", "Lisbon", "EUR", 10_400_000, 92_212, ("Portuguese",), "Europe"),
        ("IT", "Italy", "Rome", "EUR", 58_900_000, 301_340, ("Italian",), "Europe"),
        ("NL", "Netherlands", "Amsterdam", "EUR", 17_900_000, 41_543, ("Dutch",), "Europe"),
        ("CH", "Switzerland", "Bern", "CHF", 8_900_000, 41_285, ("German", "French", "Italian"), "Europe"),
        ("AT", "Austria", "Vienna", "EUR", 9_100_000, 83_871, ("German",), "Europe"),
        ("PL", "Poland", "Warsaw", "PLN", 37_600_000, 312_696, ("Polish",), "Europe"),
        ("CZ", "Czechia", "Prague", "CZK", 10_900_000, 78_871, ("Czech",), "Europe"),
        ("GR", "Greece", "Athens", "EUR", 10_400_000, 131_957, ("Greek",), "Europe"),
        ("TR", "Turkey", "Ankara", "TRY", 85_300_000, 783_562, ("Turkish",), "Asia"),
        ("US", "United States", "Washington", "USD", 334_900_000, 9_833_517, ("English",), "North America"),
        ("CA", "Canada", "Ottawa", "CAD", 40_100_000, 9_984_670, ("English", "French"), "North America"),
        ("MX", "Mexico", "Mexico City", "MXN", 129_700_000, 1_964_375, ("Spanish",), "North America"),
        ("BR", "Brazil", "Brasilia", "BRL", 211_100_000, 8_515_767, ("Portuguese",), "South America"),
        ("AR", "Argentina", "Buenos Aires", "ARS", 45_500_000, 2_780_400, ("Spanish",), "South America"),
        ("PE", "Peru", "Lima", "PEN", 34_000_000, 1_285_216, ("Spanish", "Quechua"), "South America"),
        ("CL", "Chile", "Santiago", "CLP", 19_600_000, 756_102, ("Spanish",), "South America"),
        ("JP", "Japan", "Tokyo", "JPY", 124_500_000, 377_975, ("Japanese",), "Asia"),
        ("CN", "China", "Beijing", "CNY", 1_410_700_000, 9_596_961, ("Mandarin",), "Asia"),
        ("IN", "India", "New Delhi", "INR", 1_438_100_000, 3_287_263, ("Hindi", "English"), "Asia"),
        ("KR", "South Korea", "Seoul", "KRW", 51_700_000, 100_210, ("Korean",), "Asia"),
        ("SG", "Singapore", "Singapore", "SGD", 5_900_000, 735, ("English", "Malay", "Mandarin", "Tamil"), "Asia"),
        ("TH", "Thailand", "Bangkok", "THB", 71_700_000, 513_120, ("Thai",), "Asia"),
        ("PH", "Philippines", "Manila", "PHP", 114_900_000, 300_000, ("Filipino", "English"), "Asia"),
        ("AE", "United Arab Emirates", "Abu Dhabi", "AED", 10_500_000, 83_600, ("Arabic",), "Asia"),
        ("EG", "Egypt", "Cairo", "EGP", 114_500_000, 1_002_450, ("Arabic",), "Africa"),
        ("KE", "Kenya", "Nairobi", "KES", 55_300_000, 580_367, ("Swahili", "English"), "Africa"),
        ("ZA", "South Africa", "Pretoria", "ZAR", 63_200_000, 1_221_037, ("Zulu", "Xhosa", "English"), "Africa"),
        ("AU", "Australia", "Canberra", "AUD", 26_600_000, 7_692_024, ("English",), "Oceania"),
        ("NZ", "New Zealand", "Wellington", "NZD", 5_200_000, 268_021, ("English", "Maori"), "Oceania"),
    )
}

CITIES = tuple(
    City(*row)
    for row in (
        ("Oslo", "NO", 59.91, 10.75, "Europe/Oslo", 717_000, "OSL"),
        ("Bergen", "NO", 60.39, 5.32, "Europe/Oslo", 291_000, "BGO"),
        ("Stockholm", "SE", 59.33, 18.07, "Europe/Stockholm", 988_000, "ARN"),
        ("Copenhagen", "DK", 55.68, 12.57, "Europe/Copenhagen", 660_000, "CPH"),
        ("London", "GB", 51.51, -0.13, "Europe/London", 8_866_000, "LHR"),
        ("Manchester", "GB", 53.48, -2.24, "Europe/London", 568_000, "MAN"),
        ("Edinburgh", "GB", 55.95, -3.19, "Europe/London", 527_000, "EDI"),
        ("Dublin", "IE", 53.35, -6.26, "Europe/Dublin", 592_000, "DUB"),
        ("Paris", "FR", 48.86, 2.35, "Europe/Paris", 2_103_000, "CDG"),
        ("Lyon", "FR", 45.76, 4.84, "Europe/Paris", 522_000, "LYS"),
        ("Nice", "FR", 43.70, 7.27, "Europe/Paris", 353_000, "NCE"),
        ("Berlin", "DE", 52.52, 13.40, "Europe/Berlin", 3_677_000, "BER"),
        ("Munich", "DE", 48.14, 11.58, "Europe/Berlin", 1_510_000, "MUC"),
        ("Hamburg", "DE", 53.55, 9.99, "Europe/Berlin", 1_892_000, "HAM"),
        ("Frankfurt", "DE", 50.11, 8.68, "Europe/Berlin", 773_000, "FRA"),
        ("Madrid", "ES", 40.42, -3.70, "Europe/Madrid", 3_332_000, "MAD"),
        ("Barcelona", "ES", 41.39, 2.17, "Europe/Madrid", 1_660_000, "BCN"),
        ("Lisbon", "PT", 38.72, -9.14, "Europe/Lisbon", 549_000, "LIS"),
        ("Rome", "IT", 41.90, 12.50, "Europe/Rome", 2_755_000, "FCO"),
        ("Milan", "IT", 45.46, 9.19, "Europe/Rome", 1_372_000, "MXP"),
        ("Amsterdam", "NL", 52.37, 4.90, "Europe/Amsterdam", 921_000, "AMS"),
        ("Zurich", "CH", 47.37, 8.54, "Europe/Zurich", 427_000, "ZRH"),
        ("Vienna", "AT", 48.21, 16.37, "Europe/Vienna", 1_983_000, "VIE"),
        ("Prague", "CZ", 50.08, 14.44, "Europe/Prague", 1_357_000, "PRG"),
        ("Warsaw", "PL", 52.23, 21.01, "Europe/Warsaw", 1_862_000, "WAW"),
        ("Athens", "GR", 37.98, 23.73, "Europe/Athens", 643_000, "ATH"),
        ("Istanbul", "TR", 41.01, 28.98, "Europe/Istanbul", 15_656_000, "IST"),
        ("New York", "US", 40.71, -74.01, "America/New_York", 8_258_000, "JFK"),
        ("Boston", "US", 42.36, -71.06, "America/New_York", 654_000, "BOS"),
        ("Washington", "US", 38.91, -77.04, "America/New_York", 679_000, "IAD"),
        ("Miami", "US", 25.76, -80.19, "America/New_York", 455_000, "MIA"),
        ("Chicago", "US", 41.88, -87.63, "America/Chicago", 2_664_000, "ORD"),
        ("Houston", "US", 29.76, -95.37, "America/Chicago", 2_314_000, "IAH"),
        ("Denver", "US", 39.74, -104.99, "America/Denver", 717_000, "DEN"),
        ("Los Angeles", "US", 34.05, -118.24, "America/Los_Angeles", 3_821_000, "LAX"),
        ("San Francisco", "US", 37.77, -122.42, "America/Los_Angeles", 809_000, "SFO"),
        ("Seattle", "US", 47.61, -122.33, "America/Los_Angeles", 755_000, "SEA"),
        ("Toronto", "CA", 43.65, -79.38, "America/Toronto", 2_794_000, "YYZ"),
        ("Vancouver", "CA", 49.28, -123.12, "America/Vancouver", 662_000, "YVR"),
        ("Mexico City", "MX", 19.43, -99.13, "America/Mexico_City", 9_210_000, "MEX"),
        ("Sao Paulo", "BR", -23.55, -46.63, "America/Sao_Paulo", 11_452_000, "GRU"),
        ("Buenos Aires", "AR", -34.60, -58.38, "America/Argentina/Buenos_Aires", 3_121_000, "EZE"),
        ("Lima", "PE", -12.05, -77.04, "America/Lima", 10_092_000, "LIM"),
        ("Santiago", "CL", -33.45, -70.67, "America/Santiago", 6_310_000, "SCL"),
        ("Tokyo", "JP", 35.68, 139.69, "Asia/Tokyo", 14_178_000, "HND"),
        ("Osaka", "JP", 34.69, 135.50, "Asia/Tokyo", 2_754_000, "KIX"),
        ("Beijing", "CN", 39.90, 116.41, "Asia/Shanghai", 21_858_000, "PEK"),
        ("Shanghai", "CN", 31.23, 121.47, "Asia/Shanghai", 24_875_000, "PVG"),
        ("Hong Kong", "CN", 22.32, 114.17, "Asia/Hong_Kong", 7_498_000, "HKG"),
        ("Delhi", "IN", 28.61, 77.21, "Asia/Kolkata", 16_788_000, "DEL"),
        ("Mumbai", "IN", 19.08, 72.88, "Asia/Kolkata", 12_442_000, "BOM"),
        ("Bangalore", "IN", 12.97, 77.59, "Asia/Kolkata", 8_444_000, "BLR"),
        ("Seoul", "KR", 37.57, 126.98, "Asia/Seoul", 9_386_000, "ICN"),
        ("Singapore", "SG", 1.35, 103.82, "Asia/Singapore", 5_918_000, "SIN"),
        ("Bangkok", "TH", 13.76, 100.50, "Asia/Bangkok", 5_456_000, "BKK"),
        ("Manila", "PH", 14.60, 120.98, "Asia/Manila", 1_847_000, "MNL"),
        ("Dubai", "AE", 25.20, 55.27, "Asia/Dubai", 3_655_000, "DXB"),
        ("Cairo", "EG", 30.04, 31.24, "Africa/Cairo", 10_203_000, "CAI"),
        ("Nairobi", "KE", -1.29, 36.82, "Africa/Nairobi", 4_397_000, "NBO"),
        ("Cape Town", "ZA", -33.92, 18.42, "Africa/Johannesburg", 4_773_000, "CPT"),
        ("Sydney", "AU", -33.87, 151.21, "Australia/Sydney", 5_450_000, "SYD"),
        ("Melbourne", "AU", -37.81, 144.96, "Australia/Melbourne", 5_207_000, "MEL"),
        ("Auckland", "NZ", -36.85, 174.76, "Pacific/Auckland", 1_478_000, "AKL"),
    )
)

_OTHER_NAMES = {
    "nyc": "new york",
    "new york city": "new york",
    "la": "los angeles",
    "sf": "san francisco",
    "san fran": "san francisco",
    "new delhi": "delhi",
    "bengaluru": "bangalore",
    "washington dc": "washington",
    "washington d c": "washington",
    "muenchen": "munich",
    "munchen": "munich",
    "roma": "rome",
    "milano": "milan",
    "lisboa": "lisbon",
    "wien": "vienna",
}
_OTHER_COUNTRIES = {
    "usa": "US",
    "america": "US",
    "united states of america": "US",
    "uk": "GB",
    "england": "GB",
    "great britain": "GB",
    "scotland": "GB",
    "holland": "NL",
    "korea": "KR",
    "uae": "AE",
    "turkiye": "TR",
}


def city_named(text: str) -> City:
    """Return the city with this name or airport code. The country may follow the name: "Oslo, Norway".

    Raises ``ToolFailure`` if the city is unknown.
    """
    city = find_city(text)
    if city is None:
        raise ToolFailure("not_found", f"no city with the name or airport code {text!r} is known")
    return city


def find_city(text: str) -> City | None:
    """Return the city that ``text`` mentions; None if ``text`` mentions no known city."""
    whole = plain(text)
    for name in (whole, plain(text.split(",")[0])):
        name = _OTHER_NAMES.get(name, name)
        for city in CITIES:
            if name and name in (plain(city.name), city.airport.lower()):
                return city
    return next((city for city in CITIES if re.search(rf"\b{re.escape(plain(city.name))}\b", whole)), None)


def country_named(text: str) -> Country:
    """Return the country with this name or ISO code. Raises ``ToolFailure`` if the country is unknown."""
    name = plain(text)
    code = _OTHER_COUNTRIES.get(name, text.strip().upper())
    for country in COUNTRIES.values():
        if country.code == code or plain(country.name) == name:
            return country
    raise ToolFailure("not_found", f"no country with the name or ISO code {text!r} is known")


def distance_km(a: City, b: City) -> float:
    """Return the great-circle distance between two cities, in kilometres."""
    return great_circle_km(a.lat, a.lon, b.lat, b.lon)


def great_circle_km(lat_a: float, lon_a: float, lat_b: float, lon_b: float) -> float:
    """Return the great-circle distance between two points in kilometres; the coordinates are in degrees.

    The haversine formula is used, with an Earth radius of 6371 km.
    """
    phi_a, phi_b = math.radians(lat_a), math.radians(lat_b)
    half = math.sin((phi_b - phi_a) / 2) ** 2
    half += math.cos(phi_a) * math.cos(phi_b) * math.sin(math.radians(lon_b - lon_a) / 2) ** 2
    return round(2 * 6371 * math.asin(min(1.0, math.sqrt(half))), 1)


def plain(text: str) -> str:
    """Return ``text`` in lower case, without accents and punctuation, and with single spaces."""
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
