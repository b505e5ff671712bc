"""Mock tools for markets, whose prices depend on the seed, and for a bank. Calls can change the bank's accounts."""

from __future__ import annotations

import math
from datetime import date as Day
from datetime import timedelta
from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import country_named, plain
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import Currency, Date
from bestofn.sandbox.tools.when import parse_day
from bestofn.sandbox.tools.world import Table, World, table

# symbol: (name, sector, mean price, dividend per year)
_STOCKS = {
    "AAPL": ("Apple Inc.", "Technology", 210.0, 1.0),
    "MSFT": ("Microsoft Corporation", "Technology", 430.0, 3.0),
    "GOOGL": ("Alphabet Inc.", "Communication", 170.0, 0.8),
    "AMZN": ("Amazon.com, Inc.", "Retail", 185.0, 0.0),
    "TSLA": ("Tesla, Inc.", "Automotive", 240.0, 0.0),
    "META": ("Meta Platforms, Inc.", "Communication", 510.0, 2.0),
    "NVDA": ("NVIDIA Corporation", "Semiconductors", 125.0, 0.04),
    "NFLX": ("Netflix, Inc.", "Media", 660.0, 0.0),
    "IBM": ("International Business Machines", "Technology", 190.0, 6.6),
    "INTC": ("Intel Corporation", "Semiconductors", 30.0, 0.5),
    "JPM": ("JPMorgan Chase & Co.", "Banking", 205.0, 4.6),
    "KO": ("The Coca-Cola Company", "Beverages", 65.0, 1.9),
    "DIS": ("The Walt Disney Company", "Media", 100.0, 0.9),
    "BA": ("The Boeing Company", "Aerospace", 180.0, 0.0),
    "EQNR": ("Equinor ASA", "Energy", 27.0, 1.4),
    "SAP": ("SAP SE", "Technology", 190.0, 2.2),
}
_COINS = {
    "BTC": ("Bitcoin", 64_000.0),
    "ETH": ("Ethereum", 3_100.0),
    "SOL": ("Solana", 145.0),
    "XRP": ("XRP", 0.55),
    "ADA": ("Cardano", 0.42),
    "DOGE": ("Dogecoin", 0.13),
    "LTC": ("Litecoin", 82.0),
}
# amount of each currency that equals one US dollar
_RATES = {"USD": 1.0, "EUR": 0.92, "GBP": 0.79, "NOK": 10.6, "SEK": 10.4, "DKK": 6.87, "CHF": 0.89, "JPY": 151.0,
          "CNY": 7.2, "INR": 83.2, "CAD": 1.36, "AUD": 1.52, "NZD": 1.64, "MXN": 17.1, "BRL": 5.1, "ARS": 870.0,
          "ZAR": 18.6, "KRW": 1340.0, "SGD": 1.34, "THB": 36.0, "PHP": 56.2, "AED": 3.6725, "EGP": 47.5, "KES": 131.0,
          "TRY": 32.2, "PLN": 3.96, "CZK": 23.3, "PEN": 3.7, "CLP": 945.0}  # fmt: skip
_COMMODITIES = {
    "gold": (2300.0, "USD/troy ounce"),
    "silver": (27.5, "USD/troy ounce"),
    "copper": (4.4, "USD/pound"),
    "brent oil": (83.0, "USD/barrel"),
    "natural gas": (2.4, "USD/MMBtu"),
    "wheat": (5.9, "USD/bushel"),
    "corn": (4.4, "USD/bushel"),
    "coffee": (2.2, "USD/pound"),
}


def _stock(symbol: str) -> str:
    """Return the ticker symbol for a symbol or a company name. Raises ``ToolFailure`` if the stock is unknown."""
    key = symbol.strip().upper()
    if key in _STOCKS:
        return key
    name = plain(symbol)
    for known, (company, *_) in _STOCKS.items():
        if name and plain(company).startswith(name):
            return known
    raise ToolFailure("not_found", f"there is no stock {symbol!r}")


def _wave(base: float, key: str, day: Day, seed: int) -> float:
    """Return the price on ``day``. It moves around ``base`` in two waves with a little noise.

    ``seed`` and ``key`` determine the waves and the noise.
    """
    chance = Seeded(seed, "price", key)
    turn, at = 2 * math.pi / 365, day.toordinal()
    slow = 0.14 * math.sin(at * turn * chance.number(0.6, 1.4, 3) + chance.number(0, 6, 3))
    fast = 0.04 * math.sin(at * turn * chance.number(7, 13, 3) + chance.number(0, 6, 3))
    noise = Seeded(seed, "noise", key, at).number(-0.012, 0.012, 5)
    return base * (1 + slow + fast + noise)


def _close(world: World, symbol: str, day: Day) -> float:
    return round(_wave(_STOCKS[symbol][2], symbol, day, world.seed), 2)


def _past(world: World, text: str) -> Day:
    day = parse_day(text)
    if not world.now.date() - timedelta(days=9000) <= day <= world.now.date():
        raise ToolFailure("invalid", f"{text} is outside the price history, which ends {world.now.date().isoformat()}")
    return day


@tool(
    "stock.quote",
    {"symbol": str, "name": str, "price": float, "change_percent": float, "volume": int, "currency": str},
    {"symbol": "AAPL"},
    {"symbol": "Tesla"},
    fails=[{"symbol": "ZZZZ"}],
    aliases=["get_stock_price", "stock_price", "get_quote", "get_stock_quote", "stock_quote", "get_stock_info"],
)
def quote(world: World, symbol: str) -> Result:
    """Get the current share price of a stock, its change since yesterday in per cent, and the volume."""
    key, today = _stock(symbol), world.now.date()
    price, before = _close(world, key, today), _close(world, key, today - timedelta(days=1))
    return {
        "symbol": key,
        "name": _STOCKS[key][0],
        "price": price,
        "change_percent": round((price / before - 1) * 100, 2),
        "volume": world.chance("volume", key).integer(1_000_000, 90_000_000),
        "currency": "USD",
    }


@tool(
    "stock.history",
    {"symbol": str, "interval": str, "prices": [{"date": str, "close": float}]},
    {"symbol": "MSFT", "from": "2026-03-02", "to": "2026-03-13"},
    {"symbol": "IBM", "from": "2026-01-01", "to": "2026-03-01", "interval": "weekly"},
    fails=[
        {"symbol": "IBM", "from": "2026-03-01", "to": "2026-01-01"},
        {"symbol": "X?", "from": "2026-01-01", "to": "2026-01-02"},
    ],
    aliases=["stock_history", "get_historical_prices", "get_stock_history", "historical_stock_prices"],
)
def history(
    world: World, symbol: str, from_: Date, to: Date, interval: Literal["daily", "weekly", "monthly"] = "daily"
) -> Result:
    """Get the closing prices of a stock between two dates, for at most 400 intervals."""
    key, first, last = _stock(symbol), _past(world, from_), _past(world, to)
    step = {"daily": 1, "weekly": 7, "monthly": 30}[interval]
    if last < first or (last - first).days // step > 400:
        raise ToolFailure("invalid", "'to' must not be before 'from', and at most 400 intervals after it")
    days = [first + timedelta(days=ahead) for ahead in range(0, (last - first).days + 1, step)]
    traded = [day for day in days if step > 1 or day.weekday() < 5]
    prices = [{"date": day.isoformat(), "close": _close(world, key, day)} for day in traded]
    return {"symbol": key, "interval": interval, "prices": prices}


@tool(
    "stock.fundamentals",
    {
        "symbol": str,
        "name": str,
        "sector": str,
        "market_cap": int,
        "pe_ratio": float,
        "eps": float,
        "dividend_yield": float,
    },
    {"symbol": "KO"},
    fails=[{"symbol": "NOPE"}],
    aliases=["get_fundamentals", "company_fundamentals", "stock_fundamentals", "get_financials", "company_financials"],
)
def fundamentals(world: World, symbol: str) -> Result:
    """Get the market capitalisation, P/E ratio, earnings (EPS) and dividend yield of a stock."""
    key = _stock(symbol)
    name, sector, _, dividend = _STOCKS[key]
    chance, price = world.chance("fundamentals", key), _close(world, key, world.now.date())
    earnings = round(price / chance.number(12, 45), 2)
    return {
        "symbol": key,
        "name": name,
        "sector": sector,
        "market_cap": round(price * chance.integer(300, 9000)) * 1_000_000,
        "pe_ratio": round(price / earnings, 2),
        "eps": earnings,
        "dividend_yield": round(dividend / price * 100, 2),
    }


@tool(
    "stock.dividends",
    {"symbol": str, "year": int, "dividends": [{"date": str, "amount": float}]},
    {"symbol": "IBM"},
    {"symbol": "KO", "year": 2024},
    fails=[{"symbol": "IBM", "year": 2040}],
    aliases=["get_dividends", "dividend_history", "stock_dividends"],
)
def dividends(world: World, symbol: str, year: int = 2025) -> Result:
    """List the quarterly dividends of a stock in a year."""
    key = _stock(symbol)
    if not 2000 <= year <= world.now.year:
        raise ToolFailure("invalid", f"year is {year}; expected 2000 to {world.now.year}")
    amount = round(_STOCKS[key][3] / 4 * 0.97 ** (2025 - year), 3)
    paid = [{"date": f"{year}-{month:02d}-10", "amount": amount} for month in (3, 6, 9, 12)]
    return {"symbol": key, "year": year, "dividends": paid if amount else []}


@tool(
    "stock.search",
    {"results": [{"symbol": str, "name": str, "sector": str}]},
    {"query": "technology"},
    fails=[{"query": ""}],
    aliases=["search_stocks", "symbol_search", "find_ticker", "search_symbol", "ticker_lookup"],
)
def search_stocks(world: World, query: str) -> Result:
    """Search stocks by part of their name, symbol or sector."""
    sought = plain(query)
    if not sought:
        raise ToolFailure("invalid", "query is empty")
    listed = [
        {"symbol": key, "name": name, "sector": sector}
        for key, (name, sector, *_) in _STOCKS.items()
        if sought in plain(f"{key} {name} {sector}")
    ]
    return {"results": listed}


@tool(
    "crypto.price",
    {"coin": str, "name": str, "vs": str, "price": float, "change_24h_percent": float},
    {"coin": "bitcoin"},
    {"coin": "ETH", "vs": "EUR"},
    fails=[{"coin": "madeupcoin"}, {"coin": "BTC", "vs": "XYZ"}],
    aliases=["get_crypto_price", "crypto_price", "get_bitcoin_price", "cryptocurrency_price", "coin_price"],
)
def crypto(world: World, coin: str, vs: Currency = "USD") -> Result:
    """Get the current price of a cryptocurrency and its change in 24 hours."""
    sought = coin.strip().lower()
    key = next((key for key, (name, _) in _COINS.items() if sought in (key.lower(), name.lower())), None)
    if key is None:
        raise ToolFailure("not_found", f"there is no coin {coin!r}")
    name, base = _COINS[key]
    today = world.now.date()
    price, before = (_wave(base, key, day, world.seed) for day in (today, today - timedelta(days=1)))
    return {
        "coin": key,
        "name": name,
        "vs": vs.upper(),
        "price": round(price * _rate(vs), 4),
        "change_24h_percent": round((price / before - 1) * 100, 2),
    }


def _rate(code: str) -> float:
    try:
        return _RATES[code.strip().upper()]
    except KeyError:
        raise ToolFailure("not_found", f"there is no currency {code!r}") from None


def _exchange(world: World, base: str, quoted: str, day: Day) -> float:
    def level(code: str) -> float:
        plain_rate = _rate(code)
        return plain_rate if code.upper() == "USD" else _wave(plain_rate, code.upper(), day, world.seed)

    return level(quoted) / level(base) if base.upper() != quoted.upper() else 1.0


@tool(
    "fx.rate",
    {"base": str, "quote": str, "rate": float, "date": str},
    {"base": "EUR", "quote": "USD"},
    {"base": "NOK", "quote": "SEK", "date": "2025-12-01"},
    fails=[{"base": "EUR", "quote": "XXX"}, {"base": "EUR", "quote": "USD", "date": "2031-01-01"}],
    aliases=["get_exchange_rate", "exchange_rate", "fx_rate", "currency_rate", "get_currency_exchange_rate"],
)
def fx_rate(world: World, base: Currency, quote: Currency, date: Date | None = None) -> Result:
    """Get the exchange rate of two currencies: how much of the quote currency one unit of the base currency buys."""
    day = _past(world, date) if date else world.now.date()
    rate = round(_exchange(world, base, quote, day), 6)
    return {"base": base.upper(), "quote": quote.upper(), "rate": rate, "date": day.isoformat()}


@tool(
    "fx.convert",
    {"amount": float, "base": str, "quote": str, "rate": float, "result": float},
    {"amount": 100, "base": "USD", "quote": "NOK"},
    fails=[{"amount": -1, "base": "USD", "quote": "NOK"}, {"amount": 1, "base": "USD", "quote": "ZZZ"}],
    aliases=["convert_currency", "currency_converter", "currency_conversion", "exchange_currency"],
)
def fx_convert(world: World, amount: float, base: Currency, quote: Currency) -> Result:
    """Convert an amount of money from the base currency to the quote currency at today's rate."""
    if amount < 0:
        raise ToolFailure("invalid", "amount is negative")
    rate = round(_exchange(world, base, quote, world.now.date()), 6)
    return {
        "amount": amount,
        "base": base.upper(),
        "quote": quote.upper(),
        "rate": rate,
        "result": round(amount * rate, 2),
    }


@tool(
    "commodity.price",
    {"name": str, "price": float, "unit": str},
    {"name": "gold"},
    fails=[{"name": "unobtainium"}],
    aliases=["get_commodity_price", "commodity_price", "gold_price", "oil_price"],
)
def commodity(world: World, name: str) -> Result:
    """Get the price of gold, silver, copper, Brent oil, natural gas, wheat, corn or coffee."""
    sought = plain(name)
    key = next((key for key in _COMMODITIES if sought and (sought == key or sought in key.split())), None)
    if key is None:
        raise ToolFailure("not_found", f"there is no commodity {name!r}; expected one of {', '.join(_COMMODITIES)}")
    base, unit = _COMMODITIES[key]
    return {"name": key, "price": round(_wave(base, key, world.now.date(), world.seed), 2), "unit": unit}


@table("accounts")
def _accounts(chance: Seeded) -> Table:
    kinds = (("checking", "USD"), ("savings", "USD"), ("checking", "EUR"), ("savings", "NOK"))
    return {
        f"ACC-{1001 + number}": {
            "account_id": f"ACC-{1001 + number}",
            "type": kind,
            "currency": currency,
            "balance": chance.number(1500, 9000),
        }
        for number, (kind, currency) in enumerate(kinds)
    }


@table("transactions")
def _transactions(chance: Seeded) -> Table:
    rows: Table = {}
    for number in range(16):
        key = f"TXN-{1001 + number}"
        day = Day(2026, 3, 15) - timedelta(days=4 * number)
        rows[key] = {
            "transaction_id": key,
            "account_id": f"ACC-{1001 + number % 4}",
            "date": day.isoformat(),
            "amount": chance.number(-250, 400),
            "description": chance.choice(["Groceries", "Salary", "Rent", "Coffee", "Refund", "Train ticket"]),
        }
    return rows


def _account(world: World, account_id: str) -> Result:
    account = world["accounts"].get(account_id.strip())
    if account is None:
        raise ToolFailure("not_found", f"there is no account {account_id!r}")
    return account


@tool(
    "bank.balance",
    {"account_id": str, "type": str, "currency": str, "balance": float},
    {"account_id": "ACC-1001"},
    fails=[{"account_id": "ACC-1"}],
    aliases=["get_balance", "account_balance", "check_balance", "get_account_balance"],
)
def balance(world: World, account_id: str) -> Result:
    """Get the balance of a bank account."""
    return _account(world, account_id)


@tool(
    "bank.transactions",
    {"account_id": str, "transactions": [{"transaction_id": str, "date": str, "amount": float, "description": str}]},
    {"account_id": "ACC-1001"},
    {"account_id": "ACC-1002", "from": "2026-02-01", "to": "2026-03-16"},
    fails=[{"account_id": "ACC-1"}],
    aliases=["get_transactions", "list_transactions", "transaction_history", "account_transactions"],
)
def transactions(world: World, account_id: str, from_: Date | None = None, to: Date | None = None) -> Result:
    """List the transactions of a bank account, newest first."""
    account = _account(world, account_id)
    first = parse_day(from_).isoformat() if from_ else ""
    last = parse_day(to).isoformat() if to else "9999"
    rows = [
        {name: row[name] for name in ("transaction_id", "date", "amount", "description")}
        for row in world["transactions"].values()
        if row["account_id"] == account["account_id"] and first <= row["date"] <= last
    ]
    rows.sort(key=lambda row: (row["date"], row["transaction_id"]), reverse=True)
    return {"account_id": account["account_id"], "transactions": rows}


@tool(
    "bank.transfer",
    {"transaction_id": str, "from": str, "to": str, "amount": float, "currency": str, "balance": float},
    {"from": "ACC-1001", "to": "ACC-1002", "amount": 250, "currency": "USD"},
    fails=[
        {"from": "ACC-1001", "to": "ACC-1002", "amount": 1000000, "currency": "USD"},
        {"from": "ACC-1001", "to": "ACC-1001", "amount": 1, "currency": "USD"},
        {"from": "ACC-1001", "to": "ACC-1002", "amount": 1, "currency": "EUR"},
    ],
    aliases=["transfer_money", "make_transfer", "send_money", "transfer_funds", "bank_transfer", "make_payment"],
    changes=True,
)
def transfer(world: World, from_: str, to: str, amount: float, currency: Currency) -> Result:
    """Transfer money from one bank account to another. The amount is in the currency of the first account.

    Returns the new balance of the first account.
    """
    source, target = _account(world, from_), _account(world, to)
    if source is target or amount <= 0:
        raise ToolFailure("invalid", "a transfer needs two different accounts and an amount above 0")
    if currency.upper() != source["currency"]:
        raise ToolFailure("invalid", f"the currency of {from_} is {source['currency']}, not {currency.upper()}")
    if amount > source["balance"]:
        raise ToolFailure("denied", f"{from_} holds {source['balance']} {source['currency']}: not enough")
    rate = _exchange(world, source["currency"], target["currency"], world.now.date())
    source["balance"] = round(source["balance"] - amount, 2)
    target["balance"] = round(target["balance"] + amount * rate, 2)
    today = world.now.date().isoformat()
    for account, moved in ((source, -amount), (target, round(amount * rate, 2))):
        key = world.new_key("transactions", "TXN-")
        world["transactions"][key] = {
            "transaction_id": key,
            "account_id": account["account_id"],
            "date": today,
            "amount": moved,
            "description": f"Transfer {from_} to {to}",
        }
    return {
        "transaction_id": key,
        "from": from_,
        "to": to,
        "amount": amount,
        "currency": source["currency"],
        "balance": source["balance"],
    }


@tool(
    "loan.amortize",
    {"monthly_payment": float, "total_paid": float, "total_interest": float},
    {"principal": 200000, "annual_rate": 4.5, "months": 360},
    {"principal": 1200, "annual_rate": 0, "months": 12},
    fails=[{"principal": 0, "annual_rate": 4, "months": 12}],
    aliases=["calculate_loan_payment", "loan_payment", "mortgage_payment", "calculate_mortgage", "calculate_emi"],
)
def amortize(world: World, principal: float, annual_rate: float, months: int) -> Result:
    """Calculate the monthly payment, total payment and total interest of an annuity loan.

    The annual rate is in per cent.
    """
    if principal <= 0 or not 0 <= annual_rate <= 100 or not 1 <= months <= 1200:
        raise ToolFailure("invalid", "principal must be above 0, annual_rate from 0 to 100, and months from 1 to 1200")
    rate = annual_rate / 1200
    payment = principal * rate / (1 - (1 + rate) ** -months) if rate else principal / months
    total = payment * months
    return {
        "monthly_payment": round(payment, 2),
        "total_paid": round(total, 2),
        "total_interest": round(total - principal, 2),
    }


# (upper limit of the tax bracket in the country's currency, rate in per cent)
_BANDS = {
    "US": ((11_600, 10), (47_150, 12), (100_525, 22), (191_950, 24), (243_725, 32), (609_350, 35), (math.inf, 37)),
    "GB": ((12_570, 0), (50_270, 20), (125_140, 40), (math.inf, 45)),
    "DE": ((11_600, 0), (17_000, 19), (66_760, 33), (277_825, 42), (math.inf, 45)),
}


@tool(
    "tax.estimate",
    {"country": str, "year": int, "income": float, "tax": float, "effective_rate": float},
    {"income": 85000, "country": "US", "year": 2025},
    fails=[{"income": -1, "country": "US", "year": 2025}, {"income": 1, "country": "Atlantis", "year": 2025}],
    aliases=["estimate_tax", "calculate_tax", "income_tax", "tax_calculator", "calculate_income_tax"],
)
def tax(world: World, income: float, country: str, year: int) -> Result:
    """Estimate the income tax of a year, without deductions.

    The United States, the United Kingdom and Germany have tax brackets. In other countries, the tax is 28 per cent of
    the income.
    """
    place = country_named(country)
    if income < 0 or not 2000 <= year <= 2100:
        raise ToolFailure("invalid", "income must be at least 0, and year from 2000 to 2100")
    due, low = 0.0, 0.0
    for high, rate in _BANDS.get(place.code, ((math.inf, 28),)):
        due += max(0.0, min(income, high) - low) * rate / 100
        low = high
    return {
        "country": place.name,
        "year": year,
        "income": income,
        "tax": round(due, 2),
        "effective_rate": round(due / income * 100, 2) if income else 0.0,
    }
