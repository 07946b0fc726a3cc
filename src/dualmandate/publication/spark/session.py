"""The Spark session that records and noise may travel through.

A cluster moves confidential rows between machines and onto their disks, and with them, inside the functions that it
sends out, the keys of a release. So it is refused unless it encrypts both ways. Keys never stand in a configuration,
in an environment variable, in a statement or in the name of a step: those are shown on pages and kept in logs.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from dualmandate.errors import Refusal, UnreadableSource
from dualmandate.publication.sources import not_installed

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# What a cluster must be set to, besides `spark.authenticate.secret` on each of its machines.
SEALED = {
    "spark.authenticate": "true",  # only those who know the cluster's secret take part
    "spark.network.crypto.enabled": "true",  # what travels is encrypted
    "spark.io.encryption.enabled": "true",  # what is put on a disk is encrypted
}

Batches = Iterator["pyarrow.RecordBatch"]
T = TypeVar("T")


def running_session() -> SparkSession:
    """The session of this process, or a new one as Spark's own configuration describes it; refused unless sealed."""
    if find_spec("pyspark") is None:
        raise not_installed("pyspark", "a table of Spark", "spark")
    # Workers of a cluster need the same Python packages; where nothing is said they are this environment's.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with quiet():
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession() or _new_session()
    check_sealed(session)
    return session


def _new_session() -> SparkSession:
    """A session whose Java says nothing on this terminal: neither its log, which may repeat values, nor its own bars.

    Spark's configuration decides where its log goes besides.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    launch: Callable[..., Any] = launch_gateway
    try:
        if SparkContext._gateway is None:
            unheard = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            SparkContext(appName="dualmandate", gateway=launch(popen_kwargs=unheard))
        session = SparkSession.builder.appName("dualmandate").getOrCreate()
    except Exception:  # Java is missing, or the cluster: py4j and Spark say it in many ways
        session = None
    if session is None:
        raise UnreadableSource(
            "Spark cannot be started here",
            why="it needs Java 17 or newer, and the cluster that its configuration names",
            instead="see what `dualmandate doctor` finds, and Spark's own spark-defaults.conf",
        )
    session.sparkContext.setLogLevel("OFF")  # Spark repeats values that it cannot convert
    return session


def check_sealed(session: SparkSession) -> None:
    """Refuse a cluster that would send or store records and keys in the clear."""
    context = session.sparkContext
    if (context.master or "").split("[")[0] == "local":
        return
    absent = [name for name, value in SEALED.items() if context.getConf().get(name, "false") != value]
    if absent:
        raise UnreadableSource(
            "this Spark cluster does not encrypt what it moves and stores",
            why=f"{', '.join(absent)} is not true",
            instead="set it on every machine of the cluster, and spark.authenticate.secret with it",
        )


def map_batches(
    frame: DataFrame, kernel: Callable[[Batches], Batches], schema: str | StructType, *, name: str
) -> DataFrame:
    """The frame that a kernel makes of each partition; what it fails with stays on the worker."""

    def guarded_kernel(batches: Batches) -> Batches:
        try:
            yield from kernel(batches)
        except Refusal as known:
            refusal = copy(known)
        except Exception:
            refusal = UnreadableSource(
                f"a part of '{name}' cannot be read to its end",
                why="it is damaged or not of the kind that was named, or a worker has no room on its disk",
                instead="see that it is whole, then try again; what was found in it is not told here",
            )
        else:
            return
        raise refusal

    with quiet():
        return frame.mapInArrow(guarded_kernel, schema)


def gathered(frame: DataFrame) -> pyarrow.Table:
    """All rows of a frame, here."""
    with quiet():
        return frame.toArrow()


def streamed(frame: DataFrame) -> Iterator[Any]:
    """The rows of a frame that was kept, part after part and in the order of its parts: one part is here at a time."""
    with quiet():
        yield from frame.toLocalIterator()


def kept(frame: DataFrame) -> DataFrame:
    """A frame that was worked out by all workers at once and stays with them, encrypted where it is on a disk."""
    with quiet():
        held = frame.persist()
        held.write.format("noop").mode("overwrite").save()
        return held


@contextmanager
def records_at_once(session: SparkSession, most: int) -> Iterator[None]:
    """Batches of at most so many records, for frames whose records are large."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = str(session.conf.get(name, "10000"))
    session.conf.set(name, str(max(min(most, int(before)), 1)))
    try:
        yield
    finally:
        session.conf.set(name, before)


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is heard of Spark's errors, which repeat values, nor of pandas 3, which it does not know yet."""
    spoken = logging.getLogger("SQLQueryContextLogger")
    before, spoken.disabled = spoken.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    finally:
        spoken.disabled = before


@runtime_checkable
class TaskListener(Protocol):
    """Somebody who is told how many tasks of a step are done."""

    def count(self, words: str, done: int, of: int, /) -> None:
        """So many of so many."""
        ...


SECONDS_BETWEEN = 0.5  # between two looks at what the cluster does


@contextmanager
def watched(words: str, listener: object) -> Iterator[None]:
    """Tell whoever listens how many tasks of this step are done, of those that the cluster knows of so far."""
    if not isinstance(listener, TaskListener):
        yield
        return
    over, tracker = threading.Event(), running_session().sparkContext.statusTracker()
    seen: dict[int, tuple[int, int]] = {}  # tasks that are done and all tasks, by stage

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN):
            active = set(tracker.getActiveStageIds())
            seen.update({stage: (of, of) for stage, (_, of) in seen.items() if stage not in active})
            told = filter(None, map(tracker.getStageInfo, active))
            seen.update({each.stageId: (each.numCompletedTasks, each.numTasks) for each in told})
            done, of = (sum(numbers) for numbers in zip((0, 0), *seen.values(), strict=True))
            if of > 1:
                listener.count(f"{words}: tasks", done, of)

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def partitions(session: SparkSession) -> int:
    """Into how many parts rows are shuffled."""
    setting: Any = session.conf.get("spark.sql.shuffle.partitions", "200")
    return int(setting)
