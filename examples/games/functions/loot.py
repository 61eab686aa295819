"""Loot in the order in which each player found it."""

from collections.abc import Iterator
from dataclasses import dataclass

from mainstem import State, stateful


@dataclass
class Found:
    city: str
    player: str
    item: str
    gold: int


@dataclass
class Purse:
    items: int
    gold: int


@dataclass
class Numbered:
    player: str
    number: int
    city: str
    item: str
    purse: int


@stateful(stream="loot", key="player")
def loot_in_order(found: Found, state: State[Purse]) -> Iterator[Numbered]:
    """Numbers a player's finds and keeps what the purse holds after each."""
    purse = state.value or Purse(0, 0)
    state.value = Purse(purse.items + 1, purse.gold + found.gold)
    yield Numbered(found.player, state.value.items, found.city, found.item, state.value.gold)
