"""The command line. `main` is the command `postroad`; each module has the commands of one subject."""

import click

import postroad
from postroad.cli import (
    accounts,
    api_keys,
    audit_log,
    credentials,
    dev,
    domains,
    maintenance,
    queue,
    send,
    serve,
    suppressions,
    templates,
    users,
    webhooks,
)
from postroad.cli import credits as credits_commands

main = click.Group(
    "postroad",
    help="Postroad: a self-hosted transactional email service.",
    commands=[
        dev.dev,
        serve.serve,
        accounts.GROUP,
        users.GROUP,
        users.token,
        credits_commands.GROUP,
        domains.GROUP,
        credentials.GROUP,
        api_keys.GROUP,
        templates.GROUP,
        queue.GROUP,
        suppressions.GROUP,
        send.send,
        webhooks.GROUP,
        audit_log.audit_log,
        maintenance.migrate,
        maintenance.verify,
        maintenance.check_config,
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(postroad.__version__, prog_name="postroad")(main)
