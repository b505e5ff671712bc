"""Mock tools for sports: well-known teams and players with invented results."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import plain
from bestofn.sandbox.tools.world import World

# league: (sport, teams, each as team/city)
_LEAGUES = {
    "Premier League": ("football", ("Arsenal/London", "Liverpool/Liverpool", "Manchester City/Manchester",
                                    "Manchester United/Manchester", "Chelsea/London", "Everton/Liverpool")),
    "La Liga": ("football", ("Real Madrid/Madrid", "Barcelona/Barcelona", "Atletico Madrid/Madrid", "Sevilla/Sevilla")),
    "Bundesliga": ("football", ("Bayern Munich/Munich", "Borussia Dortmund/Dortmund", "Leverkusen/Leverkusen",
                                "Freiburg/Freiburg")),
    "NBA": ("basketball", ("Lakers/Los Angeles", "Celtics/Boston", "Warriors/San Francisco", "Bulls/Chicago",
                           "Heat/Miami", "Knicks/New York")),
    "NFL": ("american football", ("Patriots/Boston", "Cowboys/Dallas", "Chiefs/Kansas City", "Packers/Green Bay")),
    "MLB": ("baseball", ("Yankees/New York", "Red Sox/Boston", "Dodgers/Los Angeles", "Cubs/Chicago")),
    "NHL": ("hockey", ("Bruins/Boston", "Rangers/New York", "Maple Leafs/Toronto", "Oilers/Edmonton")),
}  # fmt: skip
_SPORTS = sorted({sport for sport, _ in _LEAGUES.values()})
_PLAYERS = {
    "Lionel Messi": ("football", "forward", 1987, "Argentina"),
    "Cristiano Ronaldo": ("football", "forward", 1985, "Portugal"),
    "Kylian Mbappe": ("football", "forward", 1998, "France"),
    "Erling Haaland": ("football", "forward", 2000, "Norway"),
    "LeBron James": ("basketball", "forward", 1984, "United States"),
    "Stephen Curry": ("basketball", "guard", 1988, "United States"),
    "Michael Jordan": ("basketball", "guard", 1963, "United States"),
    "Tom Brady": ("american football", "quarterback", 1977, "United States"),
    "Serena Williams": ("tennis", "singles", 1981, "United States"),
    "Roger Federer": ("tennis", "singles", 1981, "Switzerland"),
}


def _teams(league: str) -> list[str]:
    return [team.split("/")[0] for team in _LEAGUES[league][1]]


def _league(name: str) -> str:
    league_name = next((league for league in _LEAGUES if plain(league) == plain(name)), None)
    if league_name is None:
        raise ToolFailure("not_found", f"there is no league {name!r}; expected one of {', '.join(_LEAGUES)}")
    return league_name


def _team(name: str) -> tuple[str, str, str]:
    """Return the name, league and city of a team. Raises ``ToolFailure`` if the team is unknown."""
    sought = plain(name)
    for league, (_, teams) in _LEAGUES.items():
        for entry in teams:
            team, city = entry.split("/")
            if sought and sought in (plain(team), plain(f"{city} {team}"), plain(f"{team} fc"), plain(f"fc {team}")):
                return team, league, city
    raise ToolFailure("not_found", f"there is no team {name!r}")


def _score(world: World, sport: str, *name: Any) -> tuple[int, int]:
    chance = world.chance("score", *name)
    low, high = {"basketball": (88, 128), "american football": (3, 38)}.get(sport, (0, 4))
    return chance.integer(low, high), chance.integer(low, high)


GAME = {"home": str, "away": str, "home_score": int, "away_score": int}


@tool(
    "sports.live_scores",
    {"sport": str, "games": [{**GAME, "league": str, "status": str}]},
    {"sport": "basketball"},
    fails=[{"sport": "quidditch"}],
    aliases=["live_scores", "get_live_scores", "get_scores", "sports_scores", "get_game_score"],
)
def live_scores(world: World, sport: str) -> Result:
    """List the games of a sport that are live or have finished today, with their scores."""
    kind = {"soccer": "football", "ice hockey": "hockey"}.get(plain(sport), plain(sport))
    leagues = [league for league, (played, _) in _LEAGUES.items() if played == kind]
    if not leagues:
        raise ToolFailure("not_found", f"there is no sport {sport!r}; expected one of {', '.join(_SPORTS)}")
    games = []
    for league in leagues:
        chance = world.chance("today", league)
        teams = chance.sample(_teams(league), 4)
        for home, away in zip(teams[::2], teams[1::2], strict=True):
            scores = _score(world, kind, "today", home, away)
            games.append(
                {
                    "league": league,
                    "home": home,
                    "away": away,
                    "home_score": scores[0],
                    "away_score": scores[1],
                    "status": chance.choice(["live", "finished"]),
                }
            )
    return {"sport": kind, "games": games}


@tool(
    "sports.standings",
    {"league": str, "season": str, "table": [{"rank": int, "team": str, "played": int, "wins": int, "points": int}]},
    {"league": "Premier League", "season": "2025"},
    fails=[{"league": "Moon League", "season": "2025"}],
    aliases=["get_standings", "league_table", "get_league_standings", "standings"],
)
def standings(world: World, league: str, season: str) -> Result:
    """Get the table of a league in a season: rank, games played, wins and points of each team."""
    name, chance = _league(league), world.chance("standings", _league(league), season.strip())
    rows = []
    for team in _teams(name):
        wins, draws = chance.integer(6, 26), chance.integer(0, 8)
        rows.append({"team": team, "played": 38, "wins": wins, "points": 3 * wins + draws})
    rows.sort(key=lambda row: (-row["points"], row["team"]))
    return {
        "league": name,
        "season": season.strip(),
        "table": [{"rank": rank, **row} for rank, row in enumerate(rows, 1)],
    }


@tool(
    "sports.schedule",
    {"team": str, "games": [{"date": str, "home": str, "away": str}]},
    {"team": "Arsenal"},
    fails=[{"team": "Nobody United"}],
    aliases=[
        "get_schedule_for_team",
        "team_schedule",
        "get_fixtures",
        "upcoming_games",
        "next_game",
        "get_team_schedule",
    ],
)
def schedule(world: World, team: str, season: str = "2026") -> Result:
    """List the next games of a team with their dates."""
    name, league, _ = _team(team)
    others = [other for other in _teams(league) if other != name]
    chance = world.chance("schedule", name, season.strip())
    games = []
    for number, other in enumerate(chance.sample(others, 5), 1):
        day = world.now.date() + timedelta(days=7 * number)
        home, away = (name, other) if chance.chance(0.5) else (other, name)
        games.append({"date": day.isoformat(), "home": home, "away": away})
    return {"team": name, "games": games}


@tool(
    "sports.team",
    {"team": str, "league": str, "sport": str, "city": str, "founded": int, "coach": str},
    {"team": "Lakers"},
    fails=[{"team": "Nobody United"}],
    aliases=["get_team", "team_info", "get_team_info", "sports_team"],
)
def team(world: World, team: str) -> Result:
    """Get the league, sport, city, founding year and coach of a team."""
    name, league, city = _team(team)
    chance = world.chance("team", name)
    return {
        "team": name,
        "league": league,
        "sport": _LEAGUES[league][0],
        "city": city,
        "founded": chance.integer(1880, 1970),
        "coach": chance.choice(["P. Novak", "G. Rossi", "L. Hansen", "M. Okafor"]),
    }


@tool(
    "sports.player",
    {"name": str, "sport": str, "position": str, "born": int, "country": str, "games": int},
    {"name": "Erling Haaland"},
    fails=[{"name": "Nobody"}],
    aliases=["get_player", "player_info", "player_stats", "get_player_stats", "sports_player"],
)
def player(world: World, name: str) -> Result:
    """Get the sport, position, year of birth, country and number of games of a well-known player."""
    sought = plain(name)
    player_name = next(
        (full for full in _PLAYERS if sought and (sought == plain(full) or sought in plain(full).split())), None
    )
    if player_name is None:
        raise ToolFailure("not_found", f"there is no player {name!r}")
    sport, position, born, country = _PLAYERS[player_name]
    games = world.chance("player", player_name).integer(200, 1200)
    return {"name": player_name, "sport": sport, "position": position, "born": born, "country": country, "games": games}


@tool(
    "sports.head_to_head",
    {"team_a": str, "team_b": str, "wins_a": int, "wins_b": int, "draws": int, "last_games": [GAME]},
    {"team_a": "Real Madrid", "team_b": "Barcelona"},
    fails=[{"team_a": "Real Madrid", "team_b": "Lakers"}],
    aliases=["head_to_head", "compare_teams", "h2h", "get_head_to_head"],
)
def head_to_head(world: World, team_a: str, team_b: str) -> Result:
    """Compare two teams of the same sport: the wins of each team, the draws, and the scores of their last games."""
    (first, league_a, _), (second, league_b, _) = _team(team_a), _team(team_b)
    sport = _LEAGUES[league_a][0]
    if first == second or sport != _LEAGUES[league_b][0]:
        raise ToolFailure("invalid", f"{first} and {second} do not play each other")
    chance = world.chance("history", *sorted((first, second)))
    wins = {name: chance.integer(3, 40) for name in sorted((first, second))}
    games = []
    for number in range(3):
        scores = _score(world, sport, "history", first, second, number)
        games.append({"home": first, "away": second, "home_score": scores[0], "away_score": scores[1]})
    return {
        "team_a": first,
        "team_b": second,
        "wins_a": wins[first],
        "wins_b": wins[second],
        "draws": chance.integer(0, 15),
        "last_games": games,
    }
