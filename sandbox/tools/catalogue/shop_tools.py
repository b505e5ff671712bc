"""A mock shop with a cart and orders. Calls can change the cart, the orders and the stock."""

from __future__ import annotations

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import plain
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.world import Table, World, table

PRODUCT = {"product_id": str, "name": str, "category": str, "price": float, "stock": int, "rating": float}
LINE = {"product_id": str, "name": str, "qty": int, "price": float}
CART = {"items": [LINE], "total": float}
ORDER = {
    "order_id": str,
    "status": str,
    "items": [LINE],
    "total": float,
    "address_id": str,
    "payment_id": str,
    "returned": [str],
    "reason": (str, None),
}
_GOODS = (
    ("Wireless headphones", "electronics", 89.0),
    ("USB-C charger", "electronics", 19.9),
    ("Laptop stand", "electronics", 42.0),
    ("Smart watch", "electronics", 149.0),
    ("Running shoes", "sports", 95.0),
    ("Yoga mat", "sports", 28.5),
    ("Water bottle", "sports", 14.0),
    ("Rain jacket", "clothing", 79.0),
    ("Wool sweater", "clothing", 65.0),
    ("Cotton T-shirt", "clothing", 17.5),
    ("Coffee maker", "home", 74.0),
    ("Desk lamp", "home", 39.0),
    ("Chef's knife", "home", 54.0),
    ("Board game", "toys", 32.0),
    ("Building blocks", "toys", 45.0),
    ("Garden gloves", "garden", 11.5),
)
_COUPONS = {"WELCOME10": (10, 0.0), "SPRING20": (20, 100.0), "FREE5": (5, 20.0)}
_ADDRESSES = ("ADR-1", "ADR-2")
_PAYMENTS = ("PAY-1", "PAY-2")


@table("products")
def _products(chance: Seeded) -> Table:
    return {
        f"PRD-{1001 + number}": {
            "product_id": f"PRD-{1001 + number}",
            "name": name,
            "category": category,
            "price": price,
            "stock": 0 if number == 14 else chance.integer(3, 60),
            "rating": chance.number(2.8, 5.0, 1),
        }
        for number, (name, category, price) in enumerate(_GOODS)
    }


@table("cart")
def _cart(chance: Seeded) -> Table:
    return {}


@table("orders")
def _orders(chance: Seeded) -> Table:
    orders: Table = {}
    for number, (status, at) in enumerate((("delivered", 0), ("shipped", 7), ("processing", 10), ("cancelled", 13))):
        name, _, price = _GOODS[at]
        qty = chance.integer(1, 3)
        key = f"ORD-{1001 + number}"
        orders[key] = {
            "order_id": key,
            "status": status,
            "items": [{"product_id": f"PRD-{1001 + at}", "name": name, "qty": qty, "price": price}],
            "total": round(price * qty, 2),
            "address_id": "ADR-1",
            "payment_id": "PAY-1",
            "returned": [],
            "reason": "ordered by mistake" if status == "cancelled" else None,
        }
    return orders


def _product(world: World, product_id: str) -> Result:
    product = world["products"].get(product_id.strip())
    if product is None:
        raise ToolFailure("not_found", f"there is no product {product_id!r}")
    return product


def _order(world: World, order_id: str) -> Result:
    order = world["orders"].get(order_id.strip().lstrip("#"))
    if order is None:
        raise ToolFailure("not_found", f"there is no order {order_id!r}")
    return order


def _view(world: World) -> Result:
    items = list(world["cart"].values())
    return {"items": items, "total": round(sum(item["qty"] * item["price"] for item in items), 2)}


@tool(
    "shop.search",
    {"products": [PRODUCT]},
    {"query": "shoes"},
    {"query": "", "category": "electronics", "max_price": 50},
    fails=[{"query": ""}],
    aliases=["search_products", "product_search", "amazon_search", "find_products", "search_shop", "shopping_search"],
)
def search(world: World, query: str, category: str = "", max_price: float | None = None) -> Result:
    """Search products by words of the name, by category and by maximum price, best rated first."""
    sought = plain(query).split()
    if not sought and not category:
        raise ToolFailure("invalid", "query and category are empty")
    matches = [
        product
        for product in world["products"].values()
        if all(word.rstrip("s") in plain(product["name"] + " " + product["category"]) for word in sought)
        and plain(category) in ("", product["category"])
        and (max_price is None or product["price"] <= max_price)
    ]
    return {"products": sorted(matches, key=lambda product: (-product["rating"], product["product_id"]))}


@tool(
    "shop.product",
    PRODUCT,
    {"product_id": "PRD-1001"},
    fails=[{"product_id": "PRD-1"}],
    aliases=["get_product", "product_details", "get_product_details", "get_product_info", "amazon_product"],
)
def product(world: World, product_id: str) -> Result:
    """Get a product by its id."""
    return _product(world, product_id)


@tool(
    "shop.reviews",
    {"product_id": str, "rating": float, "reviews": [{"stars": int, "text": str}]},
    {"product_id": "PRD-1005", "limit": 2},
    fails=[{"product_id": "PRD-1"}],
    aliases=["get_reviews", "product_reviews", "get_product_reviews", "amazon_reviews"],
)
def reviews(world: World, product_id: str, limit: int = 5) -> Result:
    """Get the reviews that customers wrote about a product."""
    item = _product(world, product_id)
    chance = world.chance("reviews", item["product_id"])
    texts = {
        5: ("Excellent, would buy again", "Exactly what I needed"),
        4: ("Good value", "Works well, box was dented"),
        3: ("It is all right", "Does the job"),
        2: ("Expected more", "Stopped working after a month"),
        1: ("Sent it back", "Does not fit"),
    }
    listed = []
    for _ in range(min(max(limit, 0), 10)):
        stars = min(5, max(1, round(item["rating"] + chance.number(-1.4, 1.0))))
        listed.append({"stars": stars, "text": chance.choice(texts[stars])})
    return {"product_id": item["product_id"], "rating": item["rating"], "reviews": listed}


@tool(
    "shop.offers",
    {"product_id": str, "offers": [{"seller": str, "price": float, "delivery_days": int}]},
    {"product_id": "PRD-1004"},
    fails=[{"product_id": "PRD-1"}],
    aliases=["get_offers", "product_offers", "compare_prices", "price_comparison"],
)
def offers(world: World, product_id: str) -> Result:
    """List the prices and delivery times of all sellers for a product, cheapest first."""
    item = _product(world, product_id)
    chance = world.chance("offers", item["product_id"])
    listed = [
        {
            "seller": seller,
            "price": round(item["price"] * chance.number(0.9, 1.2), 2),
            "delivery_days": chance.integer(1, 9),
        }
        for seller in ("Main store", "Quick Parcel", "Second Shelf")
    ]
    return {"product_id": item["product_id"], "offers": sorted(listed, key=lambda offer: offer["price"])}


@tool(
    "cart.add",
    CART,
    {"product_id": "PRD-1002"},
    {"product_id": "PRD-1006", "qty": 2},
    fails=[
        {"product_id": "PRD-1", "qty": 1},
        {"product_id": "PRD-1002", "qty": 0},
        {"product_id": "PRD-1015", "qty": 1},
    ],
    aliases=["add_to_cart", "cart_add", "add_item_to_cart", "add_product_to_cart"],
    changes=True,
)
def add_to_cart(world: World, product_id: str, qty: int = 1) -> Result:
    """Add a product to the cart. Returns the cart.

    If the product is already in the cart, the quantity is added to the existing quantity.
    """
    item = _product(world, product_id)
    key = item["product_id"]
    there = world["cart"].get(key, {"qty": 0})["qty"]
    if qty < 1:
        raise ToolFailure("invalid", f"qty is {qty}; expected at least 1")
    if there + qty > item["stock"]:
        raise ToolFailure("conflict", f"only {item['stock']} of {key} are in stock")
    world["cart"][key] = {"product_id": key, "name": item["name"], "qty": there + qty, "price": item["price"]}
    return _view(world)


@tool(
    "cart.view",
    CART,
    {},
    fails=[{"user": "x"}],
    aliases=["view_cart", "get_cart", "show_cart", "cart_contents"],
)
def view_cart(world: World) -> Result:
    """Get the items in the cart and their total price."""
    return _view(world)


@tool(
    "cart.remove",
    CART,
    {"product_id": "PRD-1002"},
    after=[("cart.add", {"product_id": "PRD-1002", "qty": 1})],
    fails=[{"product_id": "PRD-1001"}],
    aliases=["remove_from_cart", "cart_remove", "delete_from_cart"],
    changes=True,
)
def remove_from_cart(world: World, product_id: str) -> Result:
    """Remove a product from the cart. Returns the cart."""
    if world["cart"].pop(product_id.strip(), None) is None:
        raise ToolFailure("not_found", f"{product_id!r} is not in the cart")
    return _view(world)


@tool(
    "order.place",
    ORDER,
    {"address_id": "ADR-1", "payment_id": "PAY-2"},
    after=[("cart.add", {"product_id": "PRD-1002", "qty": 1})],
    fails=[{"address_id": "ADR-1", "payment_id": "PAY-1"}],
    aliases=["place_order", "checkout", "create_order", "submit_order"],
    changes=True,
)
def place_order(world: World, address_id: str, payment_id: str) -> Result:
    """Place an order for the items in the cart. Returns the order.

    The addresses are ADR-1 and ADR-2. The payment methods are PAY-1 and PAY-2.
    """
    if address_id not in _ADDRESSES or payment_id not in _PAYMENTS:
        raise ToolFailure(
            "not_found",
            f"address_id is {address_id!r} and payment_id is {payment_id!r}; expected "
            f"{' or '.join(_ADDRESSES)}, and {' or '.join(_PAYMENTS)}",
        )
    cart = _view(world)
    if not cart["items"]:
        raise ToolFailure("conflict", "the cart is empty")
    key = world.new_key("orders", "ORD-")
    for item in cart["items"]:
        world["products"][item["product_id"]]["stock"] -= item["qty"]
    world["orders"][key] = {
        "order_id": key,
        "status": "processing",
        "items": cart["items"],
        "total": cart["total"],
        "address_id": address_id,
        "payment_id": payment_id,
        "returned": [],
        "reason": None,
    }
    world["cart"].clear()
    return world["orders"][key]


@tool(
    "order.status",
    ORDER,
    {"order_id": "ORD-1002"},
    fails=[{"order_id": "ORD-1"}],
    aliases=["get_order_status", "order_status", "track_order", "get_order", "get_order_details", "check_order"],
)
def order_status(world: World, order_id: str) -> Result:
    """Get an order and its status."""
    return _order(world, order_id)


@tool(
    "order.cancel",
    ORDER,
    {"order_id": "ORD-1003", "reason": "no longer needed"},
    fails=[{"order_id": "ORD-1001"}, {"order_id": "ORD-1"}],
    aliases=["cancel_order", "cancel_pending_order", "order_cancel"],
    changes=True,
)
def cancel_order(world: World, order_id: str, reason: str = "") -> Result:
    """Cancel an order that has not been shipped. Returns the order."""
    order = _order(world, order_id)
    if order["status"] != "processing":
        raise ToolFailure(
            "conflict",
            f"order {order['order_id']} is {order['status']}; only an order in status processing can be cancelled",
        )
    order |= {"status": "cancelled", "reason": reason or None}
    for item in order["items"]:
        world["products"][item["product_id"]]["stock"] += item["qty"]
    return order


@tool(
    "order.return",
    ORDER,
    {"order_id": "ORD-1001", "items": ["PRD-1001"]},
    fails=[{"order_id": "ORD-1003", "items": ["PRD-1011"]}, {"order_id": "ORD-1001", "items": ["PRD-1002"]}],
    aliases=["return_order", "return_items", "return_delivered_order_items", "create_return", "request_refund"],
    changes=True,
)
def return_items(world: World, order_id: str, items: list[str]) -> Result:
    """Return items of a delivered order. The items are given by their product ids."""
    order = _order(world, order_id)
    if order["status"] != "delivered":
        raise ToolFailure(
            "conflict", f"order {order['order_id']} is {order['status']}; only a delivered order can be returned"
        )
    held = {item["product_id"] for item in order["items"]} - set(order["returned"])
    wrong = [item for item in items if item not in held]
    if wrong or not items:
        raise ToolFailure("not_found", f"{wrong or 'nothing'} cannot be returned; the order holds {sorted(held)}")
    order["returned"] = sorted({*order["returned"], *items})
    return order


@tool(
    "coupon.validate",
    {"code": str, "valid": bool, "discount_percent": int, "new_total": float, "message": str},
    {"code": "WELCOME10", "total": 50},
    {"code": "SPRING20", "total": 60},
    fails=[{"code": "WELCOME10", "total": -1}],
    aliases=["validate_coupon", "apply_coupon", "check_coupon", "apply_discount", "check_promo_code"],
)
def validate_coupon(world: World, code: str, total: float) -> Result:
    """Check whether a coupon is valid for a total price. Returns the discount and the new total."""
    if total < 0:
        raise ToolFailure("invalid", "total is negative")
    percent, least = _COUPONS.get(code.strip().upper(), (0, 0.0))
    valid = percent > 0 and total >= least
    if not percent:
        message = "There is no such coupon."
    else:
        message = "The coupon holds." if valid else f"The coupon holds from {least:.2f} on."
    return {
        "code": code.strip().upper(),
        "valid": valid,
        "discount_percent": percent if valid else 0,
        "new_total": round(total * (1 - percent / 100), 2) if valid else round(total, 2),
        "message": message,
    }
