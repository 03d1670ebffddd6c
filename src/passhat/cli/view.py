"""passhat view"""

from __future__ import annotations

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode


@click.command(
    "view",
    cls=Command,
    examples=(
        "passhat view --open",
        "passhat view --port 8000 --allow-run",
    ),
)
@store_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: any free one."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen, as in 0.0.0.0; the printed address has the token.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Another name for browsers to call it by, as in evals.local; repeatable.",
)
@click.option("--allow-run", is_flag=True, help="Runs and regrades may be started from the page.")
@click.option("--open", "open_browser", is_flag=True, help="Open a browser, too.")
def command(
    store_path: str,
    port: int,
    host: str,
    names: tuple[str, ...],
    allow_run: bool,
    open_browser: bool,
) -> ExitCode:
    """Show the runs of a store in a browser, live while attempts finish.

    Serves this machine only, unless --host is given. The printed address opens it. Ctrl-C ends it.
    """
    import secrets
    import socket
    import sys

    from passhat.dashboard.app import address_of, listen, serve
    from passhat.dashboard.guard import Access, is_loopback
    from passhat.store import open_store, without_password

    # Opened once for writing: a store of an older version is brought up to date.
    open_store(store_path, must_exist=True, read_only=True).close()
    # Here, too: an agent that is being evaluated reaches this machine's ports, and would read the
    # hidden tests and other attempts.
    token = secrets.token_urlsafe(24)
    is_shared = not is_loopback(host)
    here = socket.gethostname()
    access = Access(host, token, (*names, here) if is_shared else names)
    listening = listen(host, port)
    address = address_of(listening, access)

    def ready() -> None:
        click.echo(f"dashboard of {without_password(store_path)}: {address}")
        if is_shared:
            click.echo(f"from other machines: {address_of(listening, access, here)}", err=True)
            click.echo("anyone with this address can read every conversation", err=True)
        click.echo("Ctrl-C ends it", err=True)
        sys.stdout.flush()
        if open_browser:
            import webbrowser

            ticket = secrets.token_urlsafe(24)
            access.tickets.add(ticket)
            webbrowser.open(address.replace(token, ticket))

    try:
        with listening:
            serve(store_path, access, listening, allow_run=allow_run, ready=ready)
    except KeyboardInterrupt:
        pass
    return ExitCode.OK
