"""``passhat serve`` and a page of another site, in a real browser.

In a module of its own: while the browser is up, ``asyncio.run`` cannot be called in this thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from tests.integrations.agentbeats.test_green_agent import asked_of
from tests.integrations.agentbeats.test_serve_guard import send_message

Serving = Callable[[Callable[[str], Any]], str]


def test_a_page_on_another_origin_starts_reads_and_resets_nothing(
    white: str, start_green: Any, serving: Serving, browser_page: Callable[..., Any]
) -> None:
    """In a real browser, in every way a page can send a request."""
    green = start_green()
    page_at = serving(lambda _: Starlette(routes=[Route("/", lambda _: HTMLResponse("<h1>"))]))
    own = browser_page(page_at.replace("127.0.0.1", "localhost"))
    body = json.dumps(send_message(asked_of(white, k=1, task_id=0)))
    results = own.page.evaluate(
        """async ([urls, body]) => {
            const tried = [];
            for (const url of urls)
                for (const mode of ['cors', 'no-cors'])
                    for (const type of [null, 'text/plain', 'application/json',
                                        'application/x-www-form-urlencoded'])
                        for (const method of ['GET', 'POST']) {
                            const asked = {method, mode, credentials: 'include'};
                            if (method === 'POST') asked.body = body;
                            if (type) asked.headers = {'content-type': type};
                            let read = '';
                            try { read = await (await fetch(url, asked)).text(); }
                            catch (error) { read = ''; }
                            tried.push(read);
                        }
            for (const url of urls) {
                navigator.sendBeacon(url, body);
                navigator.sendBeacon(url, new Blob([body], {type: 'text/plain'}));
                await new Promise(done => {
                    const frame = document.createElement('iframe');
                    frame.name = 'f' + Math.random();
                    document.body.append(frame);
                    const form = document.createElement('form');
                    form.action = url; form.method = 'POST'; form.enctype = 'text/plain';
                    form.target = frame.name;
                    const field = document.createElement('input');
                    field.name = body; form.append(field); document.body.append(form);
                    frame.onload = () => setTimeout(done, 50); form.submit();
                    setTimeout(done, 1000);
                });
            }
            return tried;
        }""",
        [
            [
                f"{green.url}/",
                f"{green.url}/.well-known/agent-card.json",
                f"{green.launcher}/reset",
                f"{green.launcher}/status",
            ],
            body,
        ],
    )
    assert len(results) == 4 * 2 * 4 * 2
    assert set(results) == {""}
    assert green.agent.finished == green.agent.turns.going_on == 0
    assert not Path(green.store).exists()
