"""Mock tools for body measurements, medicines and appointments.

The answers are plausible training data, never medical advice.
"""

from __future__ import annotations

import itertools

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import plain
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import DateTime
from bestofn.sandbox.tools.when import format_time, parse_time
from bestofn.sandbox.tools.world import Table, World, table

APPOINTMENT = {"appointment_id": str, "user_id": str, "provider": str, "time": str}


@table("appointments")
def _appointments(chance: Seeded) -> Table:
    return {
        "APT-1001": {
            "appointment_id": "APT-1001",
            "user_id": "USR-1001",
            "provider": "Dr. Novak",
            "time": "2026-03-18T10:30",
        }
    }


@tool(
    "health.bmi",
    {"bmi": float, "category": str},
    {"height_cm": 180, "weight_kg": 75},
    fails=[{"height_cm": 0, "weight_kg": 75}],
    aliases=["calculate_bmi", "bmi", "bmi_calculator", "body_mass_index"],
)
def bmi(world: World, height_cm: float, weight_kg: float) -> Result:
    """Calculate the body mass index and its category as defined by the World Health Organization."""
    if not 40 <= height_cm <= 280 or not 2 <= weight_kg <= 500:
        raise ToolFailure("invalid", "height_cm must be from 40 to 280, and weight_kg from 2 to 500")
    value = round(weight_kg / (height_cm / 100) ** 2, 1)
    limits = ((18.5, "underweight"), (25.0, "normal"), (30.0, "overweight"), (float("inf"), "obese"))
    return {"bmi": value, "category": next(name for limit, name in limits if value < limit)}


# metabolic equivalents: kcal per kg and hour
_EFFORT = {"walking": 3.5, "running": 9.8, "cycling": 7.5, "swimming": 6.0, "yoga": 2.5, "hiking": 6.0, "rowing": 7.0,
           "dancing": 5.0, "tennis": 7.3, "football": 7.0, "weight training": 5.0}  # fmt: skip


@tool(
    "health.calories_burned",
    {"activity": str, "minutes": int, "kcal": int},
    {"activity": "running", "minutes": 30, "weight_kg": 70},
    fails=[{"activity": "levitation", "minutes": 30, "weight_kg": 70}],
    aliases=["calories_burned", "calculate_calories", "calculate_calories_burned", "calorie_burn"],
)
def calories_burned(world: World, activity: str, minutes: int, weight_kg: float) -> Result:
    """Calculate the energy in kcal that a person uses in an activity, from its metabolic equivalent."""
    name = plain(activity)
    name = {"run": "running", "walk": "walking", "bike": "cycling", "swim": "swimming", "hike": "hiking"}.get(
        name, name
    )
    if name not in _EFFORT:
        raise ToolFailure("not_found", f"there is no activity {activity!r}; expected one of {', '.join(_EFFORT)}")
    if not 1 <= minutes <= 1440 or not 2 <= weight_kg <= 500:
        raise ToolFailure("invalid", "minutes must be from 1 to 1440, and weight_kg from 2 to 500")
    return {"activity": name, "minutes": minutes, "kcal": round(_EFFORT[name] * weight_kg * minutes / 60)}


_INTERACTIONS = {
    frozenset(("aspirin", "warfarin")): ("major", "higher risk of bleeding"),
    frozenset(("ibuprofen", "warfarin")): ("major", "higher risk of bleeding"),
    frozenset(("aspirin", "ibuprofen")): ("moderate", "ibuprofen may weaken the effect of aspirin"),
    frozenset(("simvastatin", "clarithromycin")): ("major", "higher risk of muscle damage"),
    frozenset(("lisinopril", "potassium")): ("moderate", "potassium in the blood may rise"),
}
_DRUGS = {"aspirin", "warfarin", "ibuprofen", "simvastatin", "clarithromycin", "lisinopril", "potassium", "paracetamol",
          "metformin", "amoxicillin", "omeprazole"}  # fmt: skip


@tool(
    "pharmacy.interactions",
    {"drugs": [str], "interactions": [{"drugs": [str], "severity": str, "effect": str}]},
    {"drugs": ["Aspirin", "Warfarin", "Paracetamol"]},
    fails=[{"drugs": ["aspirin"]}, {"drugs": ["aspirin", "moonstone"]}],
    aliases=["drug_interactions", "check_drug_interactions", "check_interactions", "medication_interactions"],
)
def interactions(world: World, drugs: list[str]) -> Result:
    """List the known interactions between medicines. Only a few medicines are known."""
    names = list(dict.fromkeys(plain(drug) for drug in drugs))
    unknown = [drug for drug in names if drug not in _DRUGS]
    if unknown:
        raise ToolFailure(
            "not_found", f"there is no medicine {unknown[0]!r}; expected names among {', '.join(sorted(_DRUGS))}"
        )
    if len(names) < 2:
        raise ToolFailure("invalid", "at least two medicines are needed")
    effects = []
    for pair in itertools.combinations(names, 2):
        if frozenset(pair) in _INTERACTIONS:
            severity, effect = _INTERACTIONS[frozenset(pair)]
            effects.append({"drugs": sorted(pair), "severity": severity, "effect": effect})
    return {"drugs": names, "interactions": effects}


@tool(
    "appointments.book",
    APPOINTMENT,
    {"provider": "Dr. Berg", "dt": "2026-03-24T14:00"},
    fails=[{"provider": "Dr. Novak", "dt": "2026-03-18T10:30"}, {"provider": "Dr. Berg", "dt": "2020-01-01T10:00"}],
    aliases=["book_appointment", "schedule_appointment", "make_appointment", "create_appointment"],
    changes=True,
)
def book_appointment(world: World, provider: str, dt: DateTime) -> Result:
    """Book an appointment with a doctor or another provider. It is booked for the user USR-1001."""
    moment = parse_time(dt)
    if not provider.strip() or moment <= world.now.replace(tzinfo=None):
        raise ToolFailure("invalid", f"provider is empty, or {dt} has passed")
    for other in world["appointments"].values():
        if plain(other["provider"]) == plain(provider) and other["time"] == format_time(moment):
            raise ToolFailure("conflict", f"{provider} has another appointment at {dt}")
    key = world.new_key("appointments", "APT-")
    booked = {"appointment_id": key, "user_id": "USR-1001", "provider": provider.strip(), "time": format_time(moment)}
    world["appointments"][key] = booked
    return booked


@tool(
    "appointments.list",
    {"appointments": [APPOINTMENT]},
    {"user_id": "USR-1001"},
    fails=[{"user_id": "USR-9"}],
    aliases=["list_appointments", "get_appointments", "view_appointments"],
)
def list_appointments(world: World, user_id: str) -> Result:
    """List the appointments of a user, earliest first."""
    if user_id.strip() not in world["users"]:
        raise ToolFailure("not_found", f"there is no user {user_id!r}")
    matches = [booked for booked in world["appointments"].values() if booked["user_id"] == user_id.strip()]
    return {"appointments": sorted(matches, key=lambda booked: (booked["time"], booked["appointment_id"]))}
