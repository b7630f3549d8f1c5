"""The command line. `main` is the command `postroad`; each module has the commands of one subject.

The tables have what help prints, so that it needs no import. The line of a command is the first sentence of its
docstring; a test compares them.
"""

from collections.abc import Mapping
from typing import Final

import click

from postroad.cli import lazy_commands

GROUPS: Final[Mapping[str, str]] = {
    "account": "Manage accounts.",
    "user": "Manage users.",
    "operator": "Manage operators of the installation.",
    "sso": "Show and remove the single sign-on of an account.",
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
    "dev": ("dev:dev", "Run the whole service for development, with a demo account and without configuration."),
    "serve": ("serve:serve", "Run the service until SIGTERM or Ctrl-C."),
    "init": ("init:init", "Set up an installation: settings, key, database, first account and domain."),
    "deploy-files": (
        "deploy_files:deploy_files",
        "Write files for systemd, Docker, Kubernetes, proxies and Prometheus to a folder.",
    ),
    "login": ("login:login", "Store the URL and the API key of a server for other commands."),
    "logout": ("login:logout", "Delete the stored API key of a server."),
    "send": ("send:send", "Send a message."),
    "messages": ("messages:messages", "List messages, newest first."),
    "show": ("messages:show", "Show everything about a message: recipients, attempts, why it waits, and webhooks."),
    "top": ("top:top", "Show the live state of an installation: rates, queue, destinations and hosts, until Ctrl-C."),
    "tail": ("tail:tail", "Show messages and their results as they happen, until Ctrl-C."),
    "account create": ("accounts:create", "Create an account."),
    "account list": ("accounts:show_list", "List accounts, oldest first."),
    "account show": ("accounts:show", "Show an account, by id or unique name."),
    "account suspend": ("accounts:suspend", "Suspend an account."),
    "account resume": ("accounts:resume", "Resume a suspended account."),
    "account rename": ("accounts:rename", "Rename an account."),
    "account limits": ("accounts:limits", "Set the limits of an account."),
    "account close": ("account_closure:close", "Close an account."),
    "account reopen": ("account_closure:reopen", "Reopen a closed account."),
    "account remove": ("account_closure:remove", "Remove a closed account and delete all its data."),
    "user create": ("users:create", "Create a user."),
    "user invite": ("users:invite", "Create a user and show a link for setting the password."),
    "user list": ("users:show_list", "List the users of an account."),
    "user password": ("users:set_password", "Set a new password for a user and end all their sessions."),
    "user link": ("users:link", "Show a link for setting a new password."),
    "user role": ("users:set_role", "Change the role of a user."),
    "user disable": ("users:disable", "Disable a user."),
    "user enable": ("users:enable", "Enable a disabled user."),
    "user remove": ("users:remove", "Remove a user and end all their sessions."),
    "operator add": ("operators:add", "Make a user an operator of the installation."),
    "operator list": ("operators:show_list", "List the operators of the installation."),
    "operator remove": ("operators:remove", "End the operator role of a user."),
    "sso show": ("sso:show", "Show the single sign-on of an account."),
    "sso remove": ("sso:remove", "Remove the single sign-on of an account."),
    "token": ("users:token", "Issue a login token (JWT) for a user; default: the first owner of the account."),
    "credits add": ("credits:add", "Add credits to an account."),
    "credits unlimited": ("credits:unlimited", "Give an account unlimited credits (on), or charge it again (off)."),
    "domain add": ("domains:add", "Add a sender domain to an account."),
    "domain list": ("domains:show_list", "List an account's domains."),
    "domain show": ("domains:show", "Show a domain with its DNS records and warm-up."),
    "domain verify": ("domains:verify", "Mark a domain as verified without a DNS check."),
    "domain check": ("domain_check:check", "Check the DNS records of a domain."),
    "domain rotate-key": ("domains:rotate_key", "Create a new DKIM key for a domain."),
    "domain records": ("domains:zone_records", "Print the DKIM keys of all domains as lines of the operator's zone."),
    "domain warm": ("domains:warm", "Exempt a domain with an established reputation from warm-up."),
    "domain remove": ("domains:remove", "Remove a domain and its DKIM key from an account."),
    "credential create": ("credentials:create", "Create an SMTP credential and show its password once."),
    "credential list": ("credentials:show_list", "List an account's SMTP credentials."),
    "credential revoke": ("credentials:revoke", "Revoke an SMTP credential and its API keys."),
    "apikey create": ("api_keys:create", "Create an API key and show it once."),
    "apikey list": ("api_keys:show_list", "List an account's API keys."),
    "apikey revoke": ("api_keys:revoke", "Revoke an API key."),
    "template put": ("templates:put", "Create a template, or replace the one with this alias."),
    "template list": ("templates:show_list", "List an account's templates by alias."),
    "template push": (
        "template_folder:push",
        "Make the templates of a server those of a folder, after showing the difference.",
    ),
    "template pull": ("template_folder:pull", "Write the templates of a server to a folder."),
    "template diff": ("template_folder:diff", "Show how the templates of a server differ from a folder."),
    "queue list": ("queue:show_list", "List queued recipients, oldest first, with a summary."),
    "queue show": ("queue:show", "Show a message or one recipient: its state, the reason, and every attempt."),
    "queue retry": ("queue:retry", "Schedule the next attempt of waiting recipients now."),
    "queue cancel": ("queue:cancel", "Cancel recipients: they fail without further attempts."),
    "queue hold": ("holds:hold", "Hold delivery: of all mail, of an account's mail, or of mail to a domain."),
    "queue release": ("holds:release", "Release what 'postroad queue hold' or a restore holds."),
    "suppression list": ("suppressions:show_list", "List the suppressed addresses of an account."),
    "suppression add": ("suppressions:add", "Add an address to the suppression list of an account."),
    "suppression remove": ("suppressions:remove", "Remove an address from the suppression list of an account."),
    "suppression import": (
        "suppressions_local:import_file",
        "Add the addresses of a CSV file to the suppression list of an account.",
    ),
    "suppression export": (
        "suppressions_local:export_file",
        "Export the suppression list of an account as CSV, to FILE or standard output.",
    ),
    "import resend": (
        "imports:from_resend",
        "Import domains, templates, suppressions and webhooks from Resend into an account.",
    ),
    "import postmark": (
        "imports:from_postmark",
        "Import domains, templates, suppressions and webhooks from a server of Postmark into an account.",
    ),
    "upstream test": (
        "upstreams:test",
        "Connect to an upstream and log in, and send a test message if an address is given.",
    ),
    "certificate list": ("certificates:show_list", "List the certificates of the listeners, with the days left."),
    "certificate renew": ("certificates:renew", "Order the certificate of acme.names now, whether it is due or not."),
    "webhook listen": (
        "webhook_listen:listen",
        "Receive webhooks on this machine, and print one line for each, until Ctrl-C.",
    ),
    "mcp": ("mcp:mcp", "Serve the tools for AI agents on standard input and output, with an API key."),
    "key rotate": ("keys:rotate", "Replace the installation key and re-encrypt every stored secret."),
    "audit-log": ("audit_log:audit_log", "Show who changed what in an account, newest first."),
    "backup": ("backup:backup", "Write a verified backup of the database to FILE, while the service runs."),
    "restore": ("backup:restore", "Restore a backup into the database, with the delivery of all mail held."),
    "migrate": ("maintenance:migrate", "Migrate the database schema to this version."),
    "verify": ("maintenance:verify", "Check that stored sums, counts and statuses are consistent."),
    "doctor": ("doctor:doctor", "Check this host and the installation, and say what to do about each finding."),
    "completion": ("completion:completion", "Print the completion script of a shell: bash, zsh or fish."),
    "check-config": (
        "maintenance:check_config",
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
