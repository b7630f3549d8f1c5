"""The command line. `main` is the command `postroad`; each module has the commands of one subject.

The tables have what help prints, so that it needs no import, and extensions have tables of their own.
The line of a command is the first sentence of its docstring; a test compares them.
"""

from collections.abc import Mapping
from typing import Final

import click

from postroad.cli.framework import lazy_commands

GROUPS: Final[Mapping[str, str]] = {
    "account": "Manage accounts.",
    "user": "Manage users.",
    "operator": "Manage operators of the installation.",
    "sso": "Show and remove the single sign-on settings of an account.",
    "credits": "Manage credits.",
    "domain": "Manage sender domains.",
    "credential": "Manage SMTP credentials.",
    "apikey": "Manage API keys.",
    "template": "Manage templates.",
    "queue": "Inspect and manage the queue.",
    "certificate": "Show and renew the certificates of the listeners.",
    "suppression": "Manage the suppression list.",
    "import": "Import an account from another service.",
    "upstream": "Test upstreams.",
    "webhook": "Receive webhooks on this machine.",
    "key": "Manage the installation key.",
}
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "dev": (
        "postroad.cli.dev.service.dev",
        "Run the whole service for development, with a demo account and without configuration.",
    ),
    "serve": ("postroad.cli.installation.serve.serve", "Run the service until SIGTERM or Ctrl-C."),
    "init": (
        "postroad.cli.installation.init.init",
        "Set up an installation: settings, key, database, first account and domain.",
    ),
    "deploy-files": (
        "postroad.cli.installation.deploy_files.deploy_files",
        "Write files for systemd, Docker, Kubernetes, proxies and Prometheus to a folder.",
    ),
    "login": ("postroad.cli.server.login.login", "Store the URL and the API key of a server for other commands."),
    "logout": ("postroad.cli.server.login.logout", "Delete the stored API key of a server."),
    "send": ("postroad.cli.server.send.send", "Send a message."),
    "messages": ("postroad.cli.server.messages.messages", "List messages, newest first."),
    "show": (
        "postroad.cli.server.messages.show",
        "Show everything about a message: recipients, attempts, why it waits, and webhooks.",
    ),
    "top": (
        "postroad.cli.server.top.top",
        "Show the live state of an installation: rates, queue, destinations and hosts, until Ctrl-C.",
    ),
    "tail": ("postroad.cli.server.messages.tail", "Show messages and their results as they happen, until Ctrl-C."),
    "account create": ("postroad.cli.server.accounts.create", "Create an account."),
    "account list": ("postroad.cli.server.accounts.show_list", "List accounts, oldest first."),
    "account show": ("postroad.cli.server.accounts.show", "Show an account, by id or unique name."),
    "account suspend": ("postroad.cli.server.accounts.suspend", "Suspend an account."),
    "account resume": ("postroad.cli.server.accounts.resume", "Resume a suspended account."),
    "account rename": ("postroad.cli.server.accounts.rename", "Rename an account."),
    "account limits": ("postroad.cli.server.accounts.limits", "Set the limits of an account."),
    "account close": ("postroad.cli.server.accounts.close", "Close an account."),
    "account reopen": ("postroad.cli.server.accounts.reopen", "Reopen a closed account."),
    "account remove": ("postroad.cli.server.accounts.remove", "Remove a closed account and delete all its data."),
    "user create": ("postroad.cli.server.users.create", "Create a user."),
    "user invite": ("postroad.cli.server.users.invite", "Create a user and show a link for setting the password."),
    "user list": ("postroad.cli.server.users.show_list", "List the users of an account."),
    "user password": (
        "postroad.cli.server.users.set_password",
        "Set a new password for a user and end all their sessions.",
    ),
    "user link": ("postroad.cli.server.users.link", "Show a link for setting a new password."),
    "user role": ("postroad.cli.server.users.set_role", "Change the role of a user."),
    "user disable": ("postroad.cli.server.users.disable", "Disable a user."),
    "user enable": ("postroad.cli.server.users.enable", "Enable a disabled user."),
    "user remove": ("postroad.cli.server.users.remove", "Remove a user and end all their sessions."),
    "operator add": ("postroad.cli.server.users.add_operator", "Make a user an operator of the installation."),
    "operator list": ("postroad.cli.server.users.list_operators", "List the operators of the installation."),
    "operator remove": ("postroad.cli.server.users.remove_operator", "End the operator role of a user."),
    "sso show": ("postroad.cli.server.users.show_sso", "Show the single sign-on settings of an account."),
    "sso remove": ("postroad.cli.server.users.remove_sso", "Remove the single sign-on settings of an account."),
    "token": (
        "postroad.cli.server.users.token",
        "Issue a login token (JWT) for a user; default: the first owner of the account.",
    ),
    "credits add": ("postroad.cli.server.accounts.add_credits", "Add credits to an account."),
    "credits unlimited": (
        "postroad.cli.server.accounts.unlimited_credits",
        "Give an account unlimited credits (on), or charge it again (off).",
    ),
    "domain add": ("postroad.cli.server.domains.add", "Add a sender domain to an account."),
    "domain list": ("postroad.cli.server.domains.show_list", "List an account's domains."),
    "domain show": ("postroad.cli.server.domains.show", "Show a domain with its DNS records and warm-up."),
    "domain verify": ("postroad.cli.server.domains.verify", "Mark a domain as verified without a DNS check."),
    "domain check": ("postroad.cli.server.domains.check", "Check the DNS records of a domain."),
    "domain rotate-key": ("postroad.cli.server.domains.rotate_key", "Create a new DKIM key for a domain."),
    "domain records": (
        "postroad.cli.server.domains.zone_records",
        "Print the DKIM records of all domains in zone-file format, for domains.key_zone.",
    ),
    "domain warm": ("postroad.cli.server.domains.warm", "Exempt a domain with an established reputation from warm-up."),
    "domain remove": ("postroad.cli.server.domains.remove", "Remove a domain and its DKIM key from an account."),
    "credential create": (
        "postroad.cli.server.credentials.create",
        "Create an SMTP credential and show its password once.",
    ),
    "credential list": ("postroad.cli.server.credentials.show_list", "List an account's SMTP credentials."),
    "credential revoke": ("postroad.cli.server.credentials.revoke", "Revoke an SMTP credential and its API keys."),
    "apikey create": ("postroad.cli.server.credentials.create_key", "Create an API key and show it once."),
    "apikey list": ("postroad.cli.server.credentials.list_keys", "List an account's API keys."),
    "apikey revoke": ("postroad.cli.server.credentials.revoke_key", "Revoke an API key."),
    "template put": ("postroad.cli.server.templates.put", "Create a template, or replace the one with this alias."),
    "template list": ("postroad.cli.server.templates.show_list", "List an account's templates by alias."),
    "template push": (
        "postroad.cli.server.templates.push",
        "Upload the templates of a folder to a server, after showing the differences.",
    ),
    "template pull": ("postroad.cli.server.templates.pull", "Write the templates of a server to a folder."),
    "template diff": (
        "postroad.cli.server.templates.diff",
        "Show how the templates of a server differ from a folder.",
    ),
    "queue list": ("postroad.cli.server.queue.show_list", "List queued recipients, oldest first, with a summary."),
    "queue show": (
        "postroad.cli.server.queue.show",
        "Show a message or one recipient: its state, the reason, and every attempt.",
    ),
    "queue retry": ("postroad.cli.server.queue.retry", "Retry waiting recipients now."),
    "queue cancel": ("postroad.cli.server.queue.cancel", "Cancel recipients: they fail without further attempts."),
    "queue hold": (
        "postroad.cli.server.queue.hold",
        "Hold delivery: of all mail, of an account's mail, or of mail to a domain.",
    ),
    "queue release": ("postroad.cli.server.queue.release", "Release what 'postroad queue hold' or a restore holds."),
    "suppression list": ("postroad.cli.server.suppressions.show_list", "List the suppressed addresses of an account."),
    "suppression add": (
        "postroad.cli.server.suppressions.add",
        "Add an address to the suppression list of an account.",
    ),
    "suppression remove": (
        "postroad.cli.server.suppressions.remove",
        "Remove an address from the suppression list of an account.",
    ),
    "suppression import": (
        "postroad.cli.server.suppressions.import_file",
        "Add the addresses of a CSV file to the suppression list of an account.",
    ),
    "suppression export": (
        "postroad.cli.server.suppressions.export_file",
        "Export the suppression list of an account as CSV, to FILE or standard output.",
    ),
    "upstream test": (
        "postroad.cli.installation.maintenance.try_upstream",
        "Connect to an upstream and log in, and send a test message if an address is given.",
    ),
    "certificate list": (
        "postroad.cli.installation.maintenance.list_certificates",
        "List the certificates of the listeners, with the days left.",
    ),
    "certificate renew": (
        "postroad.cli.installation.maintenance.renew_certificate",
        "Order the certificate of acme.names now, whether it is due or not.",
    ),
    "webhook listen": (
        "postroad.cli.dev.webhook_listen.listen",
        "Receive webhooks on this machine, and print one line for each, until Ctrl-C.",
    ),
    "key rotate": (
        "postroad.cli.installation.keys.rotate",
        "Replace the installation key and re-encrypt every stored secret.",
    ),
    "audit-log": ("postroad.cli.server.accounts.audit_log", "Show who changed what in an account, newest first."),
    "backup": (
        "postroad.cli.installation.backup.backup",
        "Write a verified backup of the database to FILE, while the service runs.",
    ),
    "restore": (
        "postroad.cli.installation.backup.restore",
        "Restore a backup into the database, with the delivery of all mail held.",
    ),
    "move": (
        "postroad.cli.installation.move.move",
        "Move all data from a SQLite FILE to PostgreSQL, and hold the delivery of all mail.",
    ),
    "migrate": ("postroad.cli.installation.maintenance.migrate", "Migrate the database schema to this version."),
    "verify": (
        "postroad.cli.installation.maintenance.verify",
        "Check that stored sums, counts and statuses are consistent.",
    ),
    "doctor": (
        "postroad.cli.installation.doctor.doctor",
        "Check this host and the installation, and say what to do about each finding.",
    ),
    "completion": ("postroad.cli.completion.completion", "Print the completion script of a shell: bash, zsh or fish."),
    "check-config": (
        "postroad.cli.installation.maintenance.check_config",
        "Validate the settings and print the effective values, with secrets masked.",
    ),
}

main = lazy_commands.LazyGroup(
    "postroad",
    help="Postroad: a self-hosted transactional email service.",
    commands=lazy_commands.listed(GROUPS, COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as click calls it
    if value and not ctx.resilient_parsing:
        from postroad import build_version  # noqa: PLC0415 - help need not wait for it

        click.echo(f"postroad, version {build_version.current()}")
        ctx.exit()


click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)(main)
