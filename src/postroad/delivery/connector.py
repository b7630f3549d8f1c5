"""Opens connections to hosts: from their source address, and to an upstream with its login and its authorities."""

from postroad import config
from postroad.delivery import routing
from postroad.network import smtp_connection


class Connector:
    """Opens connections with the settings. Raises ConfigError if the password of an upstream cannot be read."""

    def __init__(self, settings: config.Settings, *, hello_name: str) -> None:
        delivery = settings.delivery
        self._hello_name = hello_name
        self._timeouts = smtp_connection.Timeouts(
            connect=delivery.connect_seconds, reply=delivery.reply_seconds, content=delivery.content_seconds
        )
        self._sources = {source.name: source for source in settings.sources}
        self._upstreams = {
            upstream.name: (upstream, config.upstream_credentials(upstream)) for upstream in settings.upstreams
        }

    async def connect(self, host: routing.Host) -> smtp_connection.SmtpConnection:
        """A session that is ready for mail; raises `ConnectFailed`."""
        upstream, credentials = self._upstreams.get(host.upstream, (None, None))
        source = self._sources[host.source] if host.source else None
        destination = smtp_connection.Destination(
            host=host.name,
            address=host.address,
            port=host.port,
            tls=host.tls,
            source_address=source.address if source is not None else None,
            implicit_tls=upstream is not None and upstream.tls == "tls",
            credentials=credentials,
        )
        trusted = {"ca_file": upstream.ca_file} if upstream is not None and upstream.ca_file else {}
        hello_name = (source.hello_name if source is not None else "") or self._hello_name
        return await smtp_connection.connect(destination, hello_name=hello_name, timeouts=self._timeouts, **trusted)
