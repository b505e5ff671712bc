"""Mock tools that search a small invented web, an encyclopedia, a dictionary, papers, books and quotations."""

from __future__ import annotations

from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import plain
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import Date
from bestofn.sandbox.tools.when import parse_day
from bestofn.sandbox.tools.world import Record, World

# title: (summary, related words)
_ARTICLES = {
    "Photosynthesis": (
        "Photosynthesis is how plants make sugar and oxygen from light, water and carbon dioxide.",
        "plant light chlorophyll biology",
    ),
    "Black hole": (
        "A black hole is a region of space whose gravity lets nothing escape, not even light.",
        "space gravity star astronomy",
    ),
    "Roman Empire": (
        "The Roman Empire ruled the lands around the Mediterranean from 27 BC; its western part fell in 476.",
        "rome history caesar europe",
    ),
    "Machine learning": (
        "Machine learning is the study of programs that improve at a task with data.",
        "computer data model intelligence ai",
    ),
    "Mount Everest": (
        "Mount Everest, 8,849 metres, is the highest mountain above sea level.",
        "mountain nepal himalaya climb geography",
    ),
    "DNA": (
        "DNA is the molecule, shaped as a double helix, that carries the genes of living things.",
        "gene biology helix molecule",
    ),
    "World War II": (
        "World War II lasted from 1939 to 1945 and involved most of the countries of the world.",
        "war history 1939 1945 battle",
    ),
    "Python (programming language)": (
        "Python is a programming language that favours readable code; it first appeared in 1991.",
        "python code programming software language",
    ),
    "Climate change": (
        "Climate change is the lasting shift of temperatures and weather, today caused mainly by greenhouse gases.",
        "climate warming carbon weather environment",
    ),
    "Leonardo da Vinci": (
        "Leonardo da Vinci (1452-1519) was a painter, engineer and student of nature; he painted the Mona Lisa.",
        "art painter renaissance mona lisa italy",
    ),
    "Great Barrier Reef": (
        "The Great Barrier Reef off Australia is the largest system of coral reefs on Earth.",
        "reef coral australia sea ocean",
    ),
    "Electric car": (
        "An electric car is driven by electric motors that draw on a battery.",
        "car battery electric vehicle energy",
    ),
    "Vaccine": (
        "A vaccine prepares the immune system for a disease without causing it.",
        "vaccine health immune disease medicine",
    ),
    "Coffee": (
        "Coffee is a drink brewed from roasted coffee beans, first grown in Ethiopia and Yemen.",
        "coffee drink bean cafe",
    ),
    "Football": (
        "Football is played by two teams of eleven; the team with more goals wins.",
        "football soccer sport goal team",
    ),
    "Solar System": (
        "The Solar System is the Sun and what orbits it: eight planets, moons, asteroids and comets.",
        "planet sun space earth mars jupiter",
    ),
}

_DEFINITIONS = {
    "serendipity": ("noun", "the finding of good things by chance", ("chance", "fortune", "luck")),
    "ephemeral": ("adjective", "lasting a very short time", ("fleeting", "transient", "momentary")),
    "ubiquitous": ("adjective", "found everywhere", ("omnipresent", "universal", "pervasive")),
    "resilient": ("adjective", "able to recover quickly", ("tough", "robust", "hardy")),
    "happy": ("adjective", "feeling or showing pleasure", ("glad", "joyful", "cheerful")),
    "sad": ("adjective", "feeling or showing sorrow", ("unhappy", "sorrowful", "gloomy")),
    "big": ("adjective", "of great size", ("large", "huge", "great")),
    "small": ("adjective", "of little size", ("little", "tiny", "minor")),
    "fast": ("adjective", "moving at high speed", ("quick", "rapid", "swift")),
    "run": ("verb", "to move fast on foot", ("sprint", "race", "dash")),
    "begin": ("verb", "to do the first part of something", ("start", "commence", "launch")),
    "house": ("noun", "a building in which people live", ("home", "dwelling", "residence")),
    "ocean": ("noun", "a very large body of salt water", ("sea", "deep", "main")),
    "knowledge": ("noun", "what is known about something", ("understanding", "insight", "learning")),
    "brave": ("adjective", "ready to face danger", ("courageous", "bold", "fearless")),
    "algorithm": ("noun", "a set of steps that solves a problem", ("procedure", "method", "recipe")),
}

_QUOTES = (
    ("The journey of a thousand miles begins with a single step.", "Lao Tzu", "life"),
    ("Nothing in life is to be feared, it is only to be understood.", "Marie Curie", "science"),
    ("If I have seen further, it is by standing on the shoulders of giants.", "Isaac Newton", "science"),
    ("Well begun is half done.", "Aristotle", "work"),
    ("The unexamined life is not worth living.", "Socrates", "life"),
    ("Fortune favours the bold.", "Virgil", "courage"),
    ("To err is human; to forgive, divine.", "Alexander Pope", "life"),
    ("Knowledge is power.", "Francis Bacon", "learning"),
)

Category = Literal["general", "business", "technology", "science", "sports", "health", "entertainment"]


def _article_titles(query: str, count: int) -> list[str]:
    """Return the titles of the articles that share words with the query, best match first.

    Raises ``ToolFailure`` if the query contains no word.
    """
    sought = set(plain(query).split())
    if not sought:
        raise ToolFailure("invalid", "query is empty")
    scores = {}
    for title, (text, related) in _ARTICLES.items():
        named, described = set(plain(title).split()), set(plain(f"{text} {related}").split())
        scores[title] = 3 * len(sought & named) + len(sought & described)
    ranked = sorted((title for title in scores if scores[title]), key=lambda title: (-scores[title], title))
    return ranked[:count]


def _address(title: str) -> str:
    return f"https://encyclopedia.example/{plain(title).replace(' ', '-')}"


@tool(
    "web.search",
    {"query": str, "results": [{"title": str, "url": str, "snippet": str}]},
    {"query": "how do plants make oxygen"},
    {"query": "best hiking boots", "num_results": 2},
    fails=[{"query": "  "}, {"query": "x", "num_results": 0}],
    aliases=[
        "search",
        "google_search",
        "web_search",
        "search_web",
        "internet_search",
        "bing_search",
        "duckduckgo_search",
    ],
)
def search(world: World, query: str, num_results: int = 5) -> Result:
    """Search the web. Returns the title, address and a snippet of each page."""
    if not 1 <= num_results <= 20:
        raise ToolFailure("invalid", f"num_results is {num_results}; expected 1 to 20")
    results = [
        {"title": title, "url": _address(title), "snippet": _ARTICLES[title][0]}
        for title in _article_titles(query, num_results)
    ]
    chance, slug = world.chance("web", plain(query)), plain(query).replace(" ", "-")[:60]
    kinds = ["A short guide to", "Ten facts about", "Questions and answers:", "The history of", "Beginners:"]
    for kind in chance.sample(kinds, num_results - len(results)):
        site = chance.choice(["guide", "daily", "forum", "review"])
        results.append(
            {
                "title": f"{kind} {query.strip()}",
                "url": f"https://{site}.example/{slug}",
                "snippet": f"{kind} {query.strip()}, with {chance.integer(3, 40)} comments by readers.",
            }
        )
    return {"query": query, "results": results}


@tool(
    "web.fetch",
    {"url": str, "status": int, "title": str, "text": str},
    {"url": "https://encyclopedia.example/black-hole"},
    fails=[{"url": "not a url"}, {"url": "https://example.invalid/"}],
    aliases=["fetch_url", "fetch_webpage", "open_url", "scrape_website", "get_webpage", "read_webpage", "browse"],
)
def fetch(world: World, url: str) -> Result:
    """Get the text of a web page."""
    scheme, separator, rest = url.strip().partition("://")
    host, _, path = rest.partition("/")
    if scheme not in ("http", "https") or not separator or "." not in host:
        raise ToolFailure("invalid", f"{url!r} is not a web address")
    if host.endswith((".invalid", ".local")):
        raise ToolFailure("unavailable", f"{host} cannot be reached")
    for title, (text, _) in _ARTICLES.items():
        if url.strip().rstrip("/") == _address(title):
            return {"url": url, "status": 200, "title": title, "text": text}
    name = plain(path.replace("-", " ").replace("/", " ")) or host
    text = f"{name.capitalize()}. This page of {host} was last changed on 2026-02-11."
    return {"url": url, "status": 200, "title": name.capitalize(), "text": text}


_HEADLINES = {
    "general": ("City opens new library", "Bridge closed for repairs", "Festival draws record crowd"),
    "business": ("Central bank holds its rate", "Shipping firm orders ten vessels", "Retail sales rise in February"),
    "technology": ("New chip halves its power use", "Open-source project turns twenty", "Phone maker drops charger"),
    "science": ("Probe sends first pictures", "Old bones rewrite a family tree", "Reef shows signs of recovery"),
    "sports": ("Home side wins in extra time", "Marathon record falls", "Young swimmer takes three titles"),
    "health": ("Study links sleep and memory", "Clinic opens at night", "New vaccine enters trials"),
    "entertainment": (
        "Director returns to the stage",
        "Album tops charts for a month",
        "Series renewed for a third year",
    ),
}


def _articles(chance: Seeded, categories: list[str], day: str) -> list[Record]:
    return [
        {
            "title": title,
            "source": chance.choice(["Daily Courier", "Evening Post", "The Observer", "Northern Herald"]),
            "category": category,
            "date": day[:8] + f"{chance.integer(1, 15):02d}",
        }
        for category in categories
        for title in _HEADLINES[category]
    ]


NEWS = {"title": str, "source": str, "category": str, "date": str}


@tool(
    "news.search",
    {"articles": [NEWS]},
    {"query": "record", "category": "sports"},
    {"query": "anything new about storage"},
    fails=[{"query": ""}, {"query": "x", "from": "lately"}],
    aliases=["search_news", "news_search", "get_news", "find_news", "get_news_articles"],
)
def search_news(world: World, query: str, from_: Date | None = None, category: Category | None = None) -> Result:
    """Search the news of this month."""
    sought = set(plain(query).split())
    if not sought:
        raise ToolFailure("invalid", "query is empty")
    first = parse_day(from_).isoformat() if from_ else ""
    day = world.now.date().isoformat()
    listed = _articles(world.chance("news"), [category] if category else list(_HEADLINES), day)
    articles = [
        a for a in listed if a["date"] >= first and sought & set(plain(a["title"] + " " + a["category"]).split())
    ]
    if not articles and not from_:
        articles = [
            {
                "title": f"What is new: {query.strip()}",
                "source": "Daily Courier",
                "category": category or "general",
                "date": day,
            }
        ]
    return {"articles": articles}


@tool(
    "news.headlines",
    {"articles": [NEWS]},
    {},
    {"category": "science", "country": "Norway"},
    fails=[{"category": "gossip"}],
    aliases=["get_headlines", "top_headlines", "get_top_headlines", "latest_news", "get_latest_news"],
)
def headlines(world: World, category: Category = "general", country: str = "") -> Result:
    """Get the top headlines of a news category."""
    chance = world.chance("headlines", category, plain(country))
    return {"articles": _articles(chance, [category], world.now.date().isoformat())}


@tool(
    "encyclopedia.lookup",
    {"title": str, "summary": str, "url": str, "see_also": [str]},
    {"title": "Black hole"},
    fails=[{"title": "Qwxyz"}],
    aliases=["wikipedia", "wikipedia_search", "search_wikipedia", "get_wikipedia_summary", "lookup_encyclopedia"],
)
def lookup(world: World, title: str, lang: str = "en") -> Result:
    """Look up an article in the encyclopedia. Returns its summary (in English), its address and related articles."""
    titles = _article_titles(title, 4)
    if not titles:
        raise ToolFailure("not_found", f"there is no article {title!r}")
    return {"title": titles[0], "summary": _ARTICLES[titles[0]][0], "url": _address(titles[0]), "see_also": titles[1:]}


def _word(word: str) -> tuple[str, tuple[str, str, tuple[str, ...]]]:
    key = plain(word)
    if key not in _DEFINITIONS:
        raise ToolFailure("not_found", f"{word!r} is not in the dictionary")
    return key, _DEFINITIONS[key]


@tool(
    "dictionary.define",
    {"word": str, "part_of_speech": str, "definition": str},
    {"word": "serendipity"},
    fails=[{"word": "blargh"}],
    aliases=["define_word", "get_definition", "dictionary_lookup", "word_definition", "define"],
)
def define(world: World, word: str) -> Result:
    """Get the part of speech and the definition of a word."""
    key, (part, meaning, _) = _word(word)
    return {"word": key, "part_of_speech": part, "definition": meaning}


@tool(
    "dictionary.synonyms",
    {"word": str, "synonyms": [str]},
    {"word": "happy"},
    fails=[{"word": "blargh"}],
    aliases=["get_synonyms", "synonyms", "thesaurus", "find_synonyms"],
)
def synonyms(world: World, word: str) -> Result:
    """Get words that have a similar meaning."""
    key, (_, _, others) = _word(word)
    return {"word": key, "synonyms": list(others)}


@tool(
    "papers.search",
    {"papers": [{"title": str, "authors": [str], "year": int, "venue": str, "citations": int}]},
    {"query": "protein folding"},
    {"query": "graph search", "year_from": 2023},
    fails=[{"query": ""}],
    aliases=["search_papers", "arxiv_search", "search_arxiv", "scholar_search", "find_papers", "academic_search"],
)
def papers(world: World, query: str, year_from: int = 2000) -> Result:
    """Search scientific papers on a subject, most cited first."""
    topic = plain(query)
    if not topic:
        raise ToolFailure("invalid", "query is empty")
    chance = world.chance("papers", topic)
    forms = ("A survey of {}", "{} revisited", "On the limits of {}", "Towards reliable {}", "Measuring {} at scale")
    listed = [
        {
            "title": form.format(topic).capitalize(),
            "authors": [
                f"{chance.choice('ABCDEFGHJKLM')}. {name}"
                for name in chance.sample(["Berg", "Ito", "Novak", "Silva", "Kumar", "Rossi"], 2)
            ],
            "year": chance.integer(2012, 2025),
            "venue": chance.choice(["Annals of Computation", "Open Science Letters", "Proceedings of Methods"]),
            "citations": chance.integer(0, 900),
        }
        for form in forms
    ]
    kept = [paper for paper in listed if paper["year"] >= year_from]
    return {"papers": sorted(kept, key=lambda paper: (-paper["citations"], paper["title"]))}


_BOOKS = (
    ("Pride and Prejudice", "Jane Austen", 1813),
    ("Emma", "Jane Austen", 1815),
    ("Moby-Dick", "Herman Melville", 1851),
    ("Frankenstein", "Mary Shelley", 1818),
    ("Dracula", "Bram Stoker", 1897),
    ("War and Peace", "Leo Tolstoy", 1869),
    ("Anna Karenina", "Leo Tolstoy", 1878),
    ("Great Expectations", "Charles Dickens", 1861),
    ("A Tale of Two Cities", "Charles Dickens", 1859),
    ("Crime and Punishment", "Fyodor Dostoevsky", 1866),
    ("The Time Machine", "H. G. Wells", 1895),
    ("Alice's Adventures in Wonderland", "Lewis Carroll", 1865),
    ("On the Origin of Species", "Charles Darwin", 1859),
)


@tool(
    "books.search",
    {"books": [{"title": str, "author": str, "year": int}]},
    {"query": "tale"},
    {"query": "", "author": "Austen"},
    fails=[{"query": ""}],
    aliases=["search_books", "find_book", "book_search", "get_book", "google_books"],
)
def books(world: World, query: str, author: str = "") -> Result:
    """Search books by part of the title, by part of the author's name, or by both."""
    sought, writer = plain(query), plain(author)
    if not sought and not writer:
        raise ToolFailure("invalid", "query and author are empty")
    books = [
        {"title": title, "author": name, "year": year}
        for title, name, year in _BOOKS
        if writer in plain(name) and (sought in plain(title) or (not writer and sought in plain(name)))
    ]
    return {"books": books}


@tool(
    "quotes.random",
    {"quote": str, "author": str, "topic": str},
    {},
    {"topic": "science", "seed": 3},
    fails=[{"topic": "plumbing"}],
    aliases=["random_quote", "get_quote_of_the_day", "quote_of_the_day", "inspirational_quote", "get_random_quote"],
)
def quote(world: World, topic: str = "", seed: int = 0) -> Result:
    """Get a random quotation, on any topic or on one topic (life, science, work, courage or learning).

    The same seed gives the same quotation.
    """
    fitting = [entry for entry in _QUOTES if plain(topic) in ("", entry[2])]
    if not fitting:
        raise ToolFailure("not_found", f"there is no quotation on {topic!r}")
    text, author, about = world.chance("quote", topic, seed).choice(fitting)
    return {"quote": text, "author": author, "topic": about}
