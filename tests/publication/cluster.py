"""A standalone Spark cluster of the tests' own on loopback: a master, two workers, everything encrypted."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from dualmandate.publication.spark.session import SEALED

PATIENCE = 120.0  # seconds for a daemon to say where it listens
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
LOOPBACK = "127.0.0.1"
# An address of its own for each: Spark gives no task a second chance on the same machine.
WORKERS = {"first worker": "127.0.0.2", "second worker": "127.0.0.3"}


@dataclass(eq=False)
class Cluster:
    """Where the master listens, the folder with everything the cluster writes, and its running daemons."""

    folder: Path
    master: str = ""
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, role: str, host: str, *words: str) -> None:
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        with self._log(name).open("wb") as opened:
            # A session of its own: to kill it with all that it started is to pull a machine's plug.
            self.daemons[name] = subprocess.Popen(
                [*command, "--host", host, "--webui-port", "0", *words],
                env=os.environ | self.variables() | {"SPARK_LOCAL_IP": host},
                stdout=opened,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, name: str) -> str:
        """The master that a daemon is, or has found."""
        log = self._log(name)
        said = re.compile(r"Starting Spark master at (\S+)|Successfully registered with master (\S+)")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.daemons[name].poll() is None:
            found = said.search(log.read_text(errors="replace"))
            if found:
                return str(found[1] or found[2])
            time.sleep(0.05)
        raise AssertionError(f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}")

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def start_worker(self, name: str) -> None:
        size = ("--cores", "1", "--memory", "1g")
        place = str(self.folder / "work" / name)
        self.start(name, "worker.Worker", WORKERS[name], *size, "--work-dir", place, self.master)

    def kill(self, name: str) -> None:
        """At once, with the executors that it started."""
        daemon = self.daemons.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()

    def kill_all(self) -> None:
        for name in list(self.daemons):
            self.kill(name)

    def variables(self) -> dict[str, str]:
        return {
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_LOG_DIR": str(self.folder / "logs"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _java(self.folder),
            "PYSPARK_PYTHON": sys.executable,
        }


def _java(folder: Path) -> str:
    """What is killed leaves its files behind: all of them in one folder."""
    return f"{QUICK_JAVA} -Djava.io.tmpdir={folder / 'local'}"


def configuration(folder: Path) -> dict[str, str]:
    """What every machine of the cluster is set to; its secret is made for this run."""
    return SEALED | {
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": _java(folder),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{folder / 'events'}",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": _java(folder),
        "spark.executor.memory": "512m",
        "spark.pyspark.python": sys.executable,
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
        "spark.speculation": "true",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.quantile": "0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": f"file://{folder / 'warehouse'}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """The cluster; whatever was started is ended, also where the start fails half-way."""
    with ExitStack() as ending:
        folder = Path(tempfile.mkdtemp(prefix="dualmandate-spark-"))
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in ("conf", "events", "local", "logs", "work"):
            (folder / name).mkdir(mode=0o700)
        settings = folder / "conf" / "spark-defaults.conf"
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{key} {value}\n" for key, value in configuration(folder).items()))
        cluster = Cluster(folder)
        ending.callback(cluster.kill_all)
        cluster.start("master", "master.Master", LOOPBACK, "--port", "0")
        cluster.master = cluster.wait_for("master")
        for name in WORKERS:
            cluster.start_worker(name)
        for name in WORKERS:
            cluster.wait_for(name)
        yield cluster
