"""The section of `postroad doctor` and its hourly checks."""

from postroad.config import addresses
from postroad.config.section import Section
from postroad.config.sources import ConfigError


class Doctor(Section, frozen=True):
    """The checks of the installation."""

    hourly: bool
    probe_host: str
    blocklists: dict[str, str]

    def check(self) -> None:
        if self.probe_host:
            addresses.remote(self.probe_host, name="doctor.probe_host")
        for zone in self.blocklists:
            if not addresses.is_host_name(zone):
                raise ConfigError(f"doctor.blocklists: {zone!r} is not a domain name")
