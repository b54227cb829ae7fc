from hypothesis import given
from hypothesis import strategies as st

from training.plan.machine import HostFacts
from training.plan.placement import place_ranks

hosts = st.lists(st.builds(HostFacts, name=st.uuids().map(str), cores=st.integers(1, 128)), min_size=1, max_size=8)


@given(st.integers(1, 64), hosts)
def test_every_rank_is_placed_once_in_blocks(world_size, hosts):
    placements = place_ranks(world_size, hosts)

    assert [p.rank for p in placements] == list(range(world_size))
    order = [host.name for host in hosts]
    assert [order.index(p.host) for p in placements] == sorted(order.index(p.host) for p in placements)
    for name in order:
        local = [p for p in placements if p.host == name]
        assert [p.local_rank for p in local] == list(range(len(local)))
        assert {p.local_size for p in local} <= {len(local)}


@given(st.integers(1, 64), hosts)
def test_hosts_differ_by_one_rank_at_most(world_size, hosts):
    sizes = [sum(p.host == host.name for p in place_ranks(world_size, hosts)) for host in hosts]

    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 64), st.integers(1, 128))
def test_threads_never_oversubscribe_a_host_that_has_a_core_for_each_rank(world_size, cores):
    """K12: threads per rank default to cores / local ranks."""
    placements = place_ranks(world_size, [HostFacts(cores=cores)])

    assert sum(p.threads for p in placements) <= max(cores, world_size)


def test_threads_can_be_asked_for():
    assert {p.threads for p in place_ranks(2, [HostFacts(cores=8)], threads=3)} == {3}
