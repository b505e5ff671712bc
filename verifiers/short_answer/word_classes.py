"""Small closed classes of words, such as colors. Two different words of one class are different answers."""

from __future__ import annotations

CLASSES = tuple(
    frozenset(words.split())
    for words in (
        "north south east west northeast northwest southeast southwest",
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "spring summer autumn winter",
        "red orange yellow green blue purple violet pink brown black white gray",
        "odd even",
        "left right",
        "male female",
        "mercury venus earth mars jupiter saturn uranus neptune pluto",
        "africa asia europe antarctica australia oceania",
        "convex concave",
        "increase decrease",
        "solid liquid gas plasma",
        "positive negative neutral",
        "vowel consonant",
        "plaintiff defendant",
        "clockwise counterclockwise anticlockwise",
    )
)
"""The words of each class, as normal forms."""
