"""What works once works once, however many browsers use it at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.console.sign_in.conftest import ORIGIN, Site
from tests.console.sign_in.passkey import Passkey
from tests.console.sign_in.visitor import Form, Visitor, path_of

BROWSERS = 8


def send_together(site: Site, form: Form) -> list[int]:
    """Send a form from several browsers at the same time; return the statuses, sorted."""

    def send(_number: int) -> int:
        return Visitor(site.service).post(form.action, form.fields).status

    with ThreadPoolExecutor(BROWSERS) as threads:
        return sorted(threads.map(send, range(BROWSERS)))


def test_a_link_begins_one_session(site: Site, visitor: Visitor) -> None:
    form = visitor.form(path_of(site.operator_link()), "/console/sign-in/link")

    assert send_together(site, form) == [303] + [403] * (BROWSERS - 1)


def test_an_invitation_makes_one_passkey(site: Site, visitor: Visitor) -> None:
    invited = site.person()
    form = visitor.form(path_of(invited["url"]), "/console/invitation")
    form.fields["credential"] = Passkey(origin=ORIGIN).create(form.options)

    assert send_together(site, form) == [303] + [403] * (BROWSERS - 1)
    assert len(site.json("client", "show", invited["client_id"])["keys"]) == 1


def test_an_answer_of_a_passkey_begins_one_session(site: Site, visitor: Visitor) -> None:
    _first, passkey, _client = site.member()
    form = visitor.form("/console/sign-in", "/console/sign-in/passkey")
    form.fields["credential"] = passkey.sign_in(form.options)

    assert send_together(site, form) == [303] + [403] * (BROWSERS - 1)
