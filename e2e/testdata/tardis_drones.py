"""Runs drones of TARDIS, with its own classes: the drone and its states, the fake site and
the fake batch system that it comes with, its registry, and its plugin for AUDITOR.

    tardis_drones.py HOST PORT FOLDER COUNT

Ends with 0 when COUNT drones have been there and are gone. As in COBalD, an error of a
plugin ends the program; started again, it goes on with what the registry has. Each change
of a drone's state is a line of FOLDER/states: the drone, the state, and when, in
microseconds.
"""

import asyncio
import os
import random
import sys
from datetime import datetime, timedelta, timezone

from tardis.adapters.batchsystems.fakebatchsystem import FakeBatchSystemAdapter
from tardis.adapters.sites.fakesite import FakeSiteAdapter
from tardis.agents.batchsystemagent import BatchSystemAgent
from tardis.agents.siteagent import SiteAgent
from tardis.configuration.configuration import Configuration
from tardis.interfaces.plugin import Plugin
from tardis.interfaces.siteadapter import ResourceStatus
from tardis.plugins.auditor import Auditor
from tardis.plugins.sqliteregistry import SqliteRegistry
from tardis.resources.drone import Drone
from tardis.resources.dronestates import ShuttingDownState
from tardis.utilities.utils import load_states
from tzlocal import get_localzone

HOST, PORT, FOLDER, COUNT = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
SITE, TYPE, TOGETHER = "FakeSite", "m1.small", 12


class Delay:
    """A value of the configuration, as TARDIS's simulators are."""

    def __init__(self, seconds):
        self.seconds = seconds

    def get_value(self):
        return self.seconds


Configuration(
    {
        "Sites": [{"name": SITE, "adapter": "FakeSite", "quota": 1000, "drone_heartbeat_interval": 0}],
        SITE: {
            "api_response_delay": Delay(0.02),
            "resource_boot_time": Delay(0.05),
            "MachineTypes": [TYPE],
            "MachineTypeConfiguration": {TYPE: {}},
            "MachineMetaData": {TYPE: {"Cores": 8, "Memory": 16, "Disk": 160}},
        },
        "BatchSystem": {"adapter": "FakeBatchSystem", "allocation": 1.0, "utilisation": 1.0, "machine_status": "Available"},
        "Plugins": {
            "Auditor": {"host": HOST, "port": PORT, "user": "tardis", "group": "pilots", "components": {TYPE: {"Cores": {"HEPSPEC": 18.4}}}},
            "SqliteRegistry": {"db_file": os.path.join(FOLDER, "registry.db")},
        },
    }
)


class Witness(Plugin):
    def __init__(self):
        self.file = open(os.path.join(FOLDER, "states"), "a")

    async def notify(self, state, attributes):
        at = attributes.updated.replace(tzinfo=get_localzone()).astimezone(timezone.utc)
        micros = (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
        self.file.write(f"{attributes.drone_uuid} {type(state).__name__} {micros}\n")
        self.file.flush()


def known():
    try:
        with open(os.path.join(FOLDER, "states")) as file:
            return {line.split()[0] for line in file}
    except FileNotFoundError:
        return set()


async def main():
    registry = SqliteRegistry()
    # What AUDITOR was not told is not in the registry, so that it is told again.
    plugins = [Witness(), Auditor(), registry]
    site = SiteAgent(FakeSiteAdapter(machine_type=TYPE, site_name=SITE))
    batch = BatchSystemAgent(FakeBatchSystemAdapter())

    async def live(drone, unwanted):
        if unwanted:
            drone.demand = 0  # it never becomes available
        else:
            asyncio.get_running_loop().call_later(random.uniform(0.3, 2), setattr, drone, "demand", 0)
        await drone.run()

    count = len(known())
    running = set()
    for one in load_states(registry.get_resources(site_name=SITE, machine_type=TYPE)):
        fields = {k: one[k] for k in ("remote_resource_uuid", "drone_uuid", "state", "created", "updated")}
        drone = Drone(site, batch, plugins, **fields)
        if isinstance(drone.state, ShuttingDownState):  # a site remembers what it was told; the fake one does not
            drone.resource_attributes.resource_status = ResourceStatus.Stopped
        running.add(asyncio.create_task(live(drone, False)))
    while running or count < COUNT:
        while count < COUNT and len(running) < TOGETHER:
            running.add(asyncio.create_task(live(Drone(site, batch, plugins), count % 10 == 9)))
            count += 1
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


asyncio.run(main())
