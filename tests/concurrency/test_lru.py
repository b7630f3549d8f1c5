"""A dictionary that lets go of what was used least lately."""

from postroad.concurrency import caches


def test_what_was_used_least_lately_goes_first() -> None:
    values: caches.LruCache[str, int] = caches.LruCache(2)
    values.put("a", 1)
    values.put("b", 2)
    assert values.get("a") == 1
    values.put("c", 3)
    assert [values.get(key) for key in "abc"] == [1, None, 3]
    assert len(values) == 2


def test_room_is_made_only_when_there_is_none() -> None:
    values: caches.LruCache[str, int] = caches.LruCache(2)
    values.put("a", 1)
    assert values.evict() is None
    values.put("b", 2)
    assert values.evict() == 1
    assert (values.get("a"), values.get("b")) == (None, 2)
