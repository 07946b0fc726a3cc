"""Servers of the tests' own: PostgreSQL, as for the ledger, and a Spark cluster."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.ledger.conftest import postgres_server, postgres_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.publication.cluster import Cluster

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    from tests.publication.cluster import running_cluster

    with running_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    """A session on the cluster, with the settings that its machines have."""
    from dualmandate.publication.spark.session import quiet

    with quiet():
        from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(cluster.variables())
    try:
        with quiet():
            session = SparkSession.builder.master(cluster.master).appName("tests").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
        gc.collect()
        _end_java()
    finally:
        os.environ.clear()
        os.environ.update(before)


def _end_java() -> None:
    """A virtual machine keeps the settings that it was started with: the next cluster needs one of its own."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends when nobody is left to tell it something
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None
