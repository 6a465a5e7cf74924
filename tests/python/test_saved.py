"""States, parts of memories and learners, put together; what does not belong together is refused."""

from __future__ import annotations

import pytest
import torch

from scalecom import saved

pytestmark = pytest.mark.cpu("memories are put together in host memory")
SAVE = {"method": "scalecom", "steps": 3, "world": 2}


def _numbers(first: int, end: int) -> torch.Tensor:
    return torch.arange(first, end, dtype=torch.float32)


def test_the_states_of_ranks_are_one() -> None:
    merged = saved.merge([{**SAVE, "rank0.a": 1}, {**SAVE, "rank1.a": 2}])
    assert merged == {**SAVE, "rank0.a": 1, "rank1.a": 2}


@pytest.mark.parametrize("other", [{"method": "scalecom,beta=1"}, {"steps": 4}, {"world": 3}])
def test_states_of_different_saves_are_refused(other: dict[str, object]) -> None:
    key, = other
    with pytest.raises(ValueError, match=f"not of one save: the '{key}' of one"):
        saved.merge([SAVE, {**SAVE, **other}])


@pytest.mark.parametrize("states", [[], [{}], [{"method": "scalecom", "steps": 3}]])
def test_what_is_no_state_is_refused(states: list[dict[str, object]]) -> None:
    with pytest.raises(ValueError, match="no state of scalecom"):
        saved.merge(states)


def test_parts_are_joined_in_their_order() -> None:
    joined = saved.join({"a[4:10]": _numbers(4, 10), "b": torch.ones(2, 2), "a[0:4]": _numbers(0, 4)},
                        {"a": 10, "b": 4})
    assert joined.keys() == {"a", "b"}
    assert torch.equal(joined["a"], _numbers(0, 10)) and torch.equal(joined["b"], torch.ones(4))


def test_parts_are_newer_than_a_whole_that_was_loaded() -> None:
    """Of a tensor so short that not every rank of a group has a part of it."""
    parts = {"a[0:3]": _numbers(0, 3), "a": torch.zeros(5), "a[3:5]": _numbers(3, 5)}
    assert torch.equal(saved.join(parts, {"a": 5})["a"], _numbers(0, 5))


@pytest.mark.parametrize(
    ("parts", "place"),
    [([(0, 4), (6, 10)], 4), ([(0, 6), (4, 10)], 4), ([(2, 10)], 0), ([(0, 4), (4, 8)], 8), ([(0, 12)], 10)],
    ids=["gap", "overlap", "no beginning", "no end", "too long"],
)
def test_parts_that_do_not_fit_together_are_refused(parts: list[tuple[int, int]], place: int) -> None:
    memories = {f"a[{first}:{end}]": _numbers(first, end) for first, end in parts}
    with pytest.raises(ValueError, match=f"'a' do not fit together at element {place}:"):
        saved.join(memories, {"a": 10})


def test_the_mean_is_of_all_learners() -> None:
    mean = saved.mean([{"a": torch.tensor([1.0, 2.0])}, {"a": torch.tensor([3.0, 6.0])}])
    assert torch.equal(mean["a"], torch.tensor([2.0, 4.0]))
    assert saved.mean([{}, {}]) == {}


@pytest.mark.parametrize("learner", [0, 1, 2])
def test_a_learner_that_lacks_a_memory_is_refused(learner: int) -> None:
    learners = [{"a": torch.ones(2), "b": torch.ones(3)} for _ in range(3)]
    del learners[learner]["b"]
    with pytest.raises(ValueError, match="1 of 3 learners have no memory of 'b'"):
        saved.mean(learners)


def test_learners_of_different_models_are_refused() -> None:
    with pytest.raises(ValueError, match="'a/q' have 2 and 3 elements"):
        saved.mean([{"a/q": torch.ones(3)}, {"a/q": torch.ones(2)}])
