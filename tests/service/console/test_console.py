"""The console as its visitors meet it: every page for every role, the walk of an ask, and texts that stay texts."""

from __future__ import annotations

import ast
import io
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.learn import LEARNERS
from sulq.service import console
from sulq.service.clerk.access import MAX_IDLE_SECONDS
from sulq.service.clerk.tokens import hashed
from sulq.service.console.app import PAGES
from sulq.service.console.guard import HEADERS, POLICY
from sulq.service.console.page import _PAGES, TEMPLATES
from sulq.service.console.views import answer as views_answer
from sulq.sources.column_guess import suggested
from tests.service.console.visiting import ORIGIN, Visitor, shown
from tests.service.office import Office, survey

VOCABULARY = ("sulq.answers", "sulq.display", "sulq.forms", "sulq.language", "sulq.errors", "sulq.version")
ROLES = ("owner", "analyst", "auditor")
GROUPED = "SELECT city, COUNT(*) FROM survey GROUP BY city"
READ = [(path, roles) for method, path, roles, _ in PAGES if method == "GET"]
HOSTILE = "<img src=x onerror=alert(1)>"
FORMULA = '=HYPERLINK("http://x","y")'
CATEGORIES = ("<script>alert(2)</script>", FORMULA, "@SUM(1)", "plain & simple")


def address(path: str) -> str:
    named = path.replace("learn/{kind}", f"learn/{LEARNERS[0].__name__}").replace("release/{kind}", "release/publish")
    named = named.replace("{kind}", "queries")
    return named.replace("{name}", "survey").replace("{seq:int}", "3")


@pytest.mark.parametrize("role", ROLES)
def test_every_page_renders_for_those_it_is_for(visitor: Visitor, role: str) -> None:
    """Each page is well made for its roles, is not there for others, and carries the policy."""
    visitor.sign_in("analyst").send("/datasets/survey/ask", sql=GROUPED, amount="0.1")
    visitor.sign_in(role)
    for path, roles in READ:
        if "{key}" in path:
            continue
        reply = visitor.get(address(path))
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.status_code in ((200, 303) if role in roles else (404,)), path
        if reply.headers.get("content-type", "").startswith("text/html"):
            shown(reply)


def test_nobody_without_a_session_sees_a_page(visitor: Visitor) -> None:
    """Whoever is not signed in is sent to the door, from every page and every form."""
    for method, path, _, _ in PAGES:
        reply = visitor.request(method, address(path).replace("{key}", "k"), headers=ORIGIN)
        assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in"), path
    assert visitor.get("/datasets", headers={"HX-Request": "true"}).headers["hx-redirect"] == "/sign-in"


def test_every_answer_carries_the_headers(visitor: Visitor) -> None:
    """Pages, files, refusals and lost addresses alike; only public files may be kept."""
    for path in ("/sign-in", "/nowhere", "/static/console.css", "/static/../app.py", "/"):
        reply = visitor.get(path)
        assert all(reply.headers[name] == value for name, value in HEADERS.items()), path
        kept = "immutable" in reply.headers["cache-control"]
        assert kept == (path == "/static/console.css")


def test_signing_in_and_out(visitor: Visitor) -> None:
    """A good token becomes a cookie that no script reads and no other site sends; signing out drops it (T80, T81)."""
    for wrong, status in (("sulq_" + "x" * 43, 401), ("short", 400), ("<script>" * 9, 400)):
        reply = visitor.request("POST", "/sign-in", data={"token": wrong}, headers=ORIGIN)
        assert reply.status_code == status
        assert "set-cookie" not in reply.headers
        assert wrong not in reply.text
    reply = visitor.request("POST", "/sign-in", data={"token": visitor.office.tokens["analyst"]}, headers=ORIGIN)
    cookie = reply.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert "expires" not in cookie
    assert "analyst" in shown(visitor.get("/datasets")).words
    assert visitor.send("/sign-out").status_code == 303
    assert visitor.get("/datasets").headers["location"] == "/sign-in"


def test_over_tls_the_cookie_is_bound_to_the_host_T80(visitor: Visitor) -> None:
    """With TLS the cookie is Secure and carries the prefix that ties it to this host."""
    headers = {"Origin": "https://localhost"}
    token = visitor.office.tokens["analyst"]
    reply = visitor.request("POST", "https://localhost/sign-in", data={"token": token}, headers=headers)
    assert reply.headers["set-cookie"].startswith("__Host-sulq=")
    assert "secure" in reply.headers["set-cookie"].lower()


def test_behind_a_proxy_with_tls_the_cookie_is_bound_to_the_host_T80(tmp_path: Path) -> None:
    """With `public_url` likewise, though this server itself hears plain HTTP; forms must come from that address.

    Control: without it the same request gets a cookie that is not Secure.
    """
    secure = []
    for public in ("https://curator.example", None):
        office = Office(tmp_path / str(public)[:4], survey=survey(sulq.Epsilon(2)))
        office.service = replace(office.service, public_url=public)
        with Visitor(office) as visitor:
            token = {"token": office.tokens["analyst"]}
            headers = {"Origin": public or "http://localhost"}
            reply = visitor.request("POST", "/sign-in", data=token, headers=headers)
            cookie = reply.headers["set-cookie"]
            secure.append((cookie.startswith("__Host-sulq="), "secure" in cookie.lower()))
            if public:
                assert "max-age" in reply.headers["strict-transport-security"]
                for other in ("http://curator.example", "http://localhost", "https://curator.example:8443"):
                    assert visitor.request("POST", "/sign-in", data=token, headers={"Origin": other}).status_code == 403
    assert secure == [(True, True), (False, False)]


def test_the_cookie_is_no_token_and_holds_none_that_can_be_read_T80(visitor: Visitor) -> None:
    """Whoever is sent the cookie finds no token in it, and the API takes no part of it for one.

    Control: the console itself does find the session.
    """
    visitor.sign_in("owner")
    cookie = visitor.http.cookies["sulq"]
    assert cookie.startswith("session_")
    assert len(cookie) - len("session_") >= 128 / 6
    for shown_as in (cookie, cookie.removeprefix("session_"), hashed(cookie)):
        visitor.http.cookies.clear()
        assert visitor.get("/v1/me", headers={"Authorization": f"Bearer {shown_as}"}).status_code == 401
    visitor.http.cookies["sulq"] = cookie
    assert visitor.get("/v1/me").status_code == 401, "the API has no cookies"
    assert visitor.get("/datasets").status_code == 200


def test_a_copied_cookie_ends_with_its_session_T80(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing out, here or everywhere, revoking, replacing, time: the next page asks to sign in, in every web process.

    Control: until then each copy opens the page.
    """
    office, clock = visitor.office, [time.time()]
    monkeypatch.setattr(office.access, "_clock", lambda: clock[0])
    beside = Visitor(office)  # another web process over the same clerk

    def status(cookie: str) -> tuple[int, int]:
        found = []
        for each in (visitor, beside):
            each.http.cookies.clear()
            each.http.cookies["sulq"] = cookie
            found.append(each.get("/datasets").status_code)
        return found[0], found[1]

    def signed_in() -> str:
        cookie = visitor.sign_in("analyst").http.cookies["sulq"]
        assert status(cookie) == (200, 200)
        return cookie

    copied = signed_in()
    for wrong in (copied[:-2], f"{copied[:30]}{'A' if copied[30] != 'A' else 'B'}{copied[31:]}", "", "x", "session_"):
        assert status(wrong) == (303, 303)
    kept = signed_in()
    visitor.http.cookies["sulq"] = copied
    assert visitor.send("/sign-out").status_code == 303
    assert (status(copied), status(kept)) == ((303, 303), (200, 200))
    other = signed_in()
    assert visitor.send("/sign-out-everywhere").status_code == 303
    assert (status(kept), status(other)) == ((303, 303), (303, 303))
    old = signed_in()
    clock[0] += MAX_IDLE_SECONDS
    assert status(old) == (303, 303)
    old = signed_in()
    office.tokens["analyst"] = office.access.rotate("analyst", 60)
    assert status(old) == (200, 200), "during the overlap"
    new = signed_in()
    clock[0] += 60
    assert (status(old), status(new)) == ((303, 303), (200, 200))
    office.access.revoke("analyst")
    assert status(new) == (303, 303)
    beside.close()


def test_a_token_stands_on_no_page_T80(visitor: Visitor) -> None:
    """The session's own token is never written into a page."""
    visitor.sign_in("owner")
    for path, _ in READ:
        assert visitor.office.tokens["owner"] not in visitor.get(address(path)).text


def test_the_price_is_shown_before_and_costs_nothing(visitor: Visitor) -> None:
    """Price and expected error follow the form; the budget is what it was."""
    visitor.sign_in("analyst")
    widths = []
    for amount in ("0.1", "0.4"):
        page = shown(visitor.send("/datasets/survey/price", piece=True, sql=GROUPED, amount=amount))
        assert f"ε {amount}" in page.words
        widths.append(int(re.search(r"± (\d+)", page.words)[1]))
    assert widths[0] > 2 * widths[1]
    assert "ε 2 left of ε 2" in shown(visitor.get("/datasets/survey")).words
    quiet = visitor.send("/datasets/survey/price", piece=True, sql="SELECT FROM", amount="0.1")
    assert quiet.status_code == 200
    assert "Nothing is spent yet" in shown(quiet).words


def test_the_price_says_what_would_be_left_and_the_noise_may_be_named(tmp_path: Path) -> None:
    """What would be left after the ask, in epsilon and in counts; of an epsilon and a delta either noise is had."""
    sql = "SELECT COUNT(*) AS n FROM survey"
    with Visitor(Office(tmp_path, survey=survey(budget=sulq.EpsilonDelta(1, 1e-6)))) as visitor:
        visitor.sign_in("analyst")
        page = shown(visitor.send("/datasets/survey/price", piece=True, sql=sql, amount="0.25")).words
        assert "ε 0.75 (75%) would be left after this: about 17 more counts" in page
        much = shown(visitor.send("/datasets/survey/price", piece=True, sql=sql, amount="1.5")).words
        assert "This is more than is left" in much
        assert "would be left after this" not in much
        assert "Which noise" in shown(visitor.get("/datasets/survey/ask")).words
        both = {"sql": sql, "way": "both", "amount": "0.25", "delta": "1e-7"}
        for law, words in (("", "Laplace"), ("gaussian", "Gaussian"), ("laplace", "Laplace")):
            told = shown(visitor.send("/datasets/survey/price", piece=True, law=law, **both)).words
            assert f"discrete {words} noise" in told
        wrong = shown(visitor.send("/datasets/survey/price", piece=True, sql=sql, amount="0.25", law="gaussian")).words
        assert "buys Laplace noise alone" in wrong


def test_bounds_are_searched_by_a_box_to_tick(visitor: Visitor) -> None:
    """Of the page Ask: the price tells the search, the answer its clip."""
    visitor.sign_in("analyst")
    assert "search for where the values" in shown(visitor.get("/datasets/survey/ask")).words
    sent = {"sql": "SELECT AVG(income) AS m FROM survey", "amount": "0.6", "bounds": "auto"}
    assert "a search for where values lie" in shown(visitor.send("/datasets/survey/price", piece=True, **sent)).words
    answer = shown(visitor.send("/datasets/survey/ask", piece=True, **sent)).words
    assert "values are clipped: income to [" in answer


def test_a_quantile_may_be_asked_without_an_interval(tmp_path: Path) -> None:
    """A box says so; the price then has one choice, and the answer a note of how near the rank is."""
    asked = {"sql": "SELECT MEDIAN(income) AS m FROM survey", "amount": "0.25"}
    with Visitor(Office(tmp_path, survey=survey())) as visitor:
        visitor.sign_in("analyst")
        assert "quantiles without an interval" in shown(visitor.get("/datasets/survey/ask")).words
        told = [shown(visitor.send("/datasets/survey/price", piece=True, **asked, **more)).words
                for more in ({}, {"bare": "yes"})]  # fmt: skip
        assert "of the spend" in told[0]
        assert "of the spend" not in told[1]
        page = shown(visitor.send("/datasets/survey/ask", bare="yes", **asked)).words
        assert "no interval was bought" in page


def test_an_accuracy_may_be_named_instead_of_a_price(visitor: Visitor) -> None:
    """The price that a width costs is shown before, and paid; the bars are as sure as was wished; no more than the cap.

    Control: a price named by hand, with the same fields filled in, is paid as it stands.
    """
    visitor.sign_in("analyst")
    asked = {"sql": GROUPED, "amount": "1", "by": "accuracy", "width": "20", "sure": "0.1"}
    page = shown(visitor.send("/datasets/survey/price", piece=True, **asked))
    paid = float(re.search(r"ε ([\d.]+)", page.words)[1])
    assert 0.05 < paid < 0.5
    assert "with 90% confidence" in page.words
    assert float(re.search(r"± ([\d.]+)", page.words)[1]) <= 20
    answer = shown(visitor.send("/datasets/survey/ask", piece=True, **asked)).words
    assert "with 90% confidence" in answer
    assert float(re.search(r"Spent ε ([\d.]*\d)", answer)[1]) == pytest.approx(paid, rel=0.02)
    above = asked | {"amount": "0.01"}
    assert (
        "costs more than the most you named" in shown(visitor.send("/datasets/survey/price", piece=True, **above)).words
    )
    assert visitor.send("/datasets/survey/ask", piece=True, **above, fresh="yes").status_code in {400, 402}
    for wrong in ({"width": ""}, {"width": "-1"}, {"width": "wide"}, {"sure": "2"}):
        refused = visitor.send("/datasets/survey/ask", piece=True, **(asked | wrong))
        assert refused.status_code == 400
        assert "Nothing was spent" in shown(refused).words
    by_hand = shown(visitor.send("/datasets/survey/ask", piece=True, **(asked | {"by": "price", "fresh": "yes"}))).words
    assert re.search(r"Spent ε ([\d.]*\d)", by_hand)[1] == "1"


def test_the_form_of_a_refused_ask_keeps_what_was_named(visitor: Visitor) -> None:
    """Without scripts the page comes back whole, with the accuracy and how sure still in it."""
    visitor.sign_in("analyst")
    asked = {"sql": GROUPED, "amount": "0.01", "by": "accuracy", "width": "20", "sure": "0.01"}
    page = shown(visitor.send("/datasets/survey/ask", **asked))
    given = {str(fields.get("name")): fields for tag, fields in page.tags if tag in {"input", "select"}}
    assert given["width"]["value"] == "20"
    chosen = [fields.get("value") for tag, fields in page.tags if tag == "option" and "selected" in fields]
    assert "0.01" in chosen
    checked = [fields for _, fields in page.tags if fields.get("name") == "by" and "checked" in fields]
    assert [fields["value"] for fields in checked] == ["accuracy"]


def test_groups_too_small_to_show_may_have_one_row_together(tmp_path: Path) -> None:
    """Where keys are found in the data, the form asks for the name of a row for the rest; elsewhere it does not."""
    database = sulq.connect(
        pa.table({"age": [30] * 400, "town": ["Haifa"] * 390 + [f"hamlet {i}" for i in range(10)]}), table="survey",
        columns={"age": sulq.Int(0, 120), "town": sulq.Text()}, budget=sulq.EpsilonDelta(8, 1e-3),
    )  # fmt: skip
    sql = "SELECT town, COUNT(*) FROM survey GROUP BY town"
    with Visitor(Office(tmp_path, survey=database)) as visitor:
        visitor.sign_in("analyst")
        assert "Groups that are too small to show" in shown(visitor.get("/datasets/survey/ask")).words
        asked = {"sql": sql, "amount": "1", "way": "both", "delta": "1e-5"}
        rows = []
        for other in ("", "elsewhere"):
            page = shown(visitor.send("/datasets/survey/ask", piece=True, **asked, other=other, fresh="yes"))
            rows.append("elsewhere" in page.words)
            assert "Haifa" in page.words
        assert rows == [False, True]


def test_an_answer_has_its_chart_its_table_and_its_receipt(visitor: Visitor) -> None:
    """Asked with and without scripts, the answer says what it means, what was spent and what is left."""
    visitor.sign_in("analyst")
    for piece in (True, False):
        sql = GROUPED if piece else GROUPED.replace("COUNT(*)", "AVG(income)")
        reply = visitor.send("/datasets/survey/ask", piece=piece, sql=sql, amount="0.1")
        page = shown(reply)
        assert reply.status_code == 200
        assert ("<html" in reply.text) != piece
        assert "with 95% confidence" in page.words
        assert "Spent ε 0.1" in page.words
        assert [tag for tag, given in page.tags if tag == "svg" and "chart" in str(given.get("class"))]
        assert "Haifa" in page.words
        assert "Receipt" in page.words
    alone = shown(visitor.send("/datasets/survey/ask", piece=True, sql="SELECT COUNT(*) FROM survey", amount="0.1"))
    assert re.search(r"With 95% confidence the true count lies between [\d−]+ and \d+\.", alone.words)


def test_an_answer_names_whom_it_hides_and_what_was_spent_in_all_T93(visitor: Visitor) -> None:
    """Unit, neighbour relation, this ask's loss, the total to date and the budget stand beside every answer."""
    visitor.sign_in("analyst").send("/datasets/survey/ask", sql="SELECT COUNT(*) FROM survey", amount="0.3")
    words = shown(visitor.send("/datasets/survey/ask", piece=True, sql=GROUPED, amount="0.2")).words
    assert "Protects any one row (add remove)" in words
    assert "Spent ε 0.2" in words
    assert "Spent up to now: ε 0.5 of ε 2." in words


def test_a_price_above_what_is_left_is_said_before(visitor: Visitor) -> None:
    """Nobody has to be refused to learn that the budget does not hold a price."""
    visitor.sign_in("analyst")
    for amount, over in (("1.9", False), ("2.5", True)):
        page = shown(visitor.send("/datasets/survey/price", piece=True, sql=GROUPED, amount=amount))
        assert ("This is more than is left." in page.words) is over


def test_what_the_api_does_not_know_stays_its_own_to_refuse(visitor: Visitor) -> None:
    """An address under /v1 is answered by the API in JSON, any other by a page."""
    assert visitor.get("/v1/nowhere").json()["error"]["code"] == "not-found"
    assert visitor.request("PATCH", "/v1/me").status_code == 405
    assert "There is no page at this address" in shown(visitor.get("/nowhere")).words


def test_an_answer_given_again_is_marked_and_free(visitor: Visitor) -> None:
    """The same question twice is charged once; new noise is charged again."""
    visitor.sign_in("analyst")
    first = shown(visitor.send("/datasets/survey/ask", piece=True, sql=GROUPED, amount="0.1"))
    again = shown(visitor.send("/datasets/survey/ask", piece=True, sql=GROUPED, amount="0.1"))
    fresh = shown(visitor.send("/datasets/survey/ask", piece=True, sql=GROUPED, amount="0.1", fresh="yes"))
    assert "answered before: free" not in first.words
    assert "answered before: free" in again.words
    assert "Left: ε 1.9" in again.words
    assert "Left: ε 1.8" in fresh.words


def test_a_refusal_is_kind_and_free(visitor: Visitor) -> None:
    """What cannot be asked, or paid, is said with what to do next; nothing is spent."""
    visitor.sign_in("analyst")
    cases = [
        ("SELECT age FROM survey", "0.1", 400, "raw-rows"),
        ("SELECT COUNT(*) FROM nothing", "0.1", 400, "unknown-table"),
        ("DROP TABLE survey", "0.1", 400, "sql-"),
        (GROUPED, "3", 402, "budget-exceeded"),
        (GROUPED, "much", 400, "bad-loss"),
        (GROUPED, "nan", 400, "bad-loss"),
        (GROUPED, "-1", 400, "bad-loss"),
    ]
    for sql, amount, status, code in cases:
        for piece in (True, False):
            reply = visitor.send("/datasets/survey/ask", piece=piece, sql=sql, amount=amount)
            assert reply.status_code == status, sql
            page = shown(reply)
            assert "What you can do:" in page.words
            assert "Nothing was spent." in page.words
            assert code in page.words
    assert "2 left of ε 2" in shown(visitor.get("/datasets/survey")).words


def test_an_answer_can_be_taken_along(visitor: Visitor) -> None:
    """CSV and Parquet hold what the page shows, intervals beside; nothing is asked again."""
    visitor.sign_in("analyst")
    reply = visitor.send("/datasets/survey/ask", piece=True, sql=GROUPED, amount="0.1")
    kept = next(given["value"] for tag, given in shown(reply).tags if tag == "input" and given.get("name") == "table")
    calls = len(visitor.office.seen)
    text = visitor.send("/download/csv", table=kept)
    assert text.headers["content-disposition"] == 'attachment; filename="answer.csv"'
    assert text.text.splitlines()[0] == "city,count,low_count,high_count"
    parquet = pq.read_table(io.BytesIO(visitor.send("/download/parquet", table=kept).content))
    assert parquet.column_names == ["city", "count", "low_count", "high_count"]
    assert parquet.num_rows == len(text.text.splitlines()) - 1
    assert not any('"ask"' in frame for frame in visitor.office.seen[calls:])
    assert visitor.send("/download/xlsx", table=kept).status_code == 404
    for bad in ("{}", "[]", "NaN", '{"columns":["a"],"rows":[[1,2]],"low":[],"high":[]}'):
        assert visitor.send("/download/csv", table=bad).status_code == 400


def test_a_long_answer_is_cut_and_says_where_the_rest_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has 200 rows; what a form cannot carry is asked for elsewhere, free. Control: a shorter one is carried."""
    frame = pa.table({"k": list(range(300))})
    db = sulq.connect(frame, columns={"k": sulq.Int(0, 298)}, budget=sulq.Epsilon(9), synthetic=True)
    with Visitor(Office(tmp_path, survey=db)) as visitor:
        visitor.sign_in("analyst")
        for limit, saved in ((2**20, True), (2**11, False)):
            monkeypatch.setattr(views_answer, "MAX_DOWNLOAD_BYTES", limit)
            sql = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"
            page = shown(visitor.send("/datasets/survey/ask", piece=True, sql=sql, amount="1"))
            assert "100 more rows are not on this page." in page.words
            assert ("300 rows are too many to be saved from a page" in page.words) is not saved
            assert any(given.get("name") == "table" for _, given in page.tags) is saved


def test_history_and_receipts(visitor: Visitor) -> None:
    """An analyst finds their own asks with receipts to keep; the owner finds everybody's."""
    visitor.sign_in("owner").send("/datasets/survey/ask", sql="SELECT COUNT(*) FROM survey", amount="0.1")
    visitor.sign_in("analyst").send("/datasets/survey/ask", sql=GROUPED, amount="0.1")
    own = shown(visitor.get("/datasets/survey/history"))
    assert "1 ask of yours" in own.words
    assert "count by city" in own.words
    receipts = [str(given["href"]) for tag, given in own.tags if tag == "a" and "/receipts/" in str(given.get("href"))]
    reply = visitor.get(receipts[0])
    assert reply.headers["content-disposition"].startswith("attachment")
    assert isinstance(reply.json(), dict)
    assert "2 asks of everyone" in shown(visitor.sign_in("owner").get("/datasets/survey/history")).words
    assert visitor.get("/datasets/survey/receipts/999").status_code == 404


def test_a_job_is_a_form_of_its_signature_and_shows_its_progress(visitor: Visitor) -> None:
    """The form has the kind's parameters; the job is watched to its end and its answers are shown."""
    visitor.sign_in("analyst")
    form = shown(visitor.get("/datasets/survey/jobs/new/queries"))
    assert {"p-queries", "p-spend", "p-beta", "p-weights", "p-law", "p-together"} <= {
        str(given.get("name")) for _, given in form.tags
    }
    several = f"SELECT COUNT(*) FROM survey\n\n{GROUPED}"
    path = "/datasets/survey/jobs/new/queries"
    assert visitor.send(path, **{"p-queries": "", "p-spend": "0.2"}).status_code == 400
    assert visitor.send(path, **{"p-queries": several, "p-spend": "x"}).status_code == 400
    assert visitor.send(path, **{"p-queries": several, "p-spend": "0.2", "p-weights": "x"}).status_code == 400
    more = {"p-weights": "2, 1", "p-law": "", "p-together": "no"}
    begun = visitor.send(path, **{"p-queries": several, "p-spend": "0.2", "p-beta": "0.05"}, **more)
    assert begun.status_code == 303
    until = time.monotonic() + 120
    while time.monotonic() < until:
        piece = visitor.get(begun.headers["location"], headers={"HX-Request": "true"})
        page = shown(piece)
        if "Done" in page.words:
            break
        assert "every 1s" in piece.text
        time.sleep(0.05)
    assert "Done: 2 of 2" in page.words
    assert "every 1s" not in piece.text
    assert "Haifa" in page.words
    assert "Result 2" in shown(visitor.get(begun.headers["location"])).words
    assert "done" in shown(visitor.get("/datasets/survey/jobs")).words
    assert visitor.send(begun.headers["location"] + "/end").status_code == 303


def test_a_token_is_made_shown_once_and_ended(visitor: Visitor) -> None:
    """A new token works, is on one page only, and is worthless once revoked: its session ends with it."""
    visitor.sign_in("owner")
    reply = visitor.send("/people", name="dana", role="analyst", days="7", datasets="survey")
    page = shown(reply)
    token = next(str(given["value"]) for _, given in page.tags if given.get("id") == "new-token")
    assert token not in visitor.get("/people").text
    assert "dana" in shown(visitor.get("/people")).words
    visitor.office.tokens["dana"] = token
    assert visitor.sign_in("dana").get("/datasets/survey").status_code == 200
    assert visitor.sign_in("owner").send("/people/dana/revoke").status_code == 303
    assert "revoked" in shown(visitor.get("/people")).words
    refused = visitor.request("POST", "/sign-in", data={"token": token}, headers=ORIGIN)
    assert refused.status_code == 401
    assert visitor.send("/people", name="no name!", role="analyst").status_code == 400
    assert visitor.send("/people", name="erin", role="analyst", days="x").status_code == 400


def test_grants_name_their_datasets_and_tokens_are_rotated(visitor: Visitor) -> None:
    """None ticked is none, the box says all; a new token leaves the old one good; the last owner cannot be ended."""
    visitor.sign_in("owner")

    def made(path: str, **fields: object) -> str:
        page = shown(visitor.send(path, **fields))
        return next(str(given["value"]) for _, given in page.tags if given.get("id") == "new-token")

    tokens = [made("/people", name=f"new-{i}", role="analyst", **more) for i, more in enumerate(({}, {"every": "yes"}))]
    found = [visitor.office.access.find(hashed(token)) for token in tokens]
    assert [known and known.datasets for known in found] == [(), None]
    newer = made("/people/new-0/rotate", hours="2")
    assert all(visitor.office.access.find(hashed(token)) for token in (tokens[0], newer))
    newest = made("/people/new-0/rotate", hours="0")
    assert [visitor.office.access.find(hashed(token)) is None for token in (newer, newest)] == [True, False]
    assert visitor.send("/people/new-0/rotate", hours="x").status_code == 400
    refused = visitor.send("/people/owner/revoke")
    assert refused.status_code == 403
    assert "last-owner" in shown(refused).words
    assert visitor.send("/people/new-0/revoke").status_code == 303
    assert "name-revoked" in shown(visitor.send("/people", name="NEW-0", role="analyst")).words


@pytest.mark.parametrize(("hours", "older", "signed_out"), [("0", False, True), ("2", True, True), ("2", False, False)])
def test_an_owner_s_own_new_token_is_shown(visitor: Visitor, hours: str, *, older: bool, signed_out: bool) -> None:
    """Also where it ends the session it was asked for in: at once, or as that was begun with the older of two tokens.

    Control: a session that goes on shows the rest of the page too.
    """
    visitor.sign_in("owner")
    if older:
        visitor.office.access.rotate("owner", 3600)
    reply = visitor.send("/people/owner/rotate", hours=hours)
    page = shown(reply)
    token = next(str(given["value"]) for _, given in page.tags if given.get("id") == "new-token")
    assert visitor.office.access.find(hashed(token)) is not None
    assert (reply.status_code, 'sulq=""' in reply.headers.get("set-cookie", "")) == (200, signed_out)
    assert ("/people/analyst/rotate" in reply.text) is not signed_out
    visitor.office.tokens["owner"] = token
    assert visitor.sign_in("owner").get("/people").status_code == 200


def test_the_access_log_is_a_page_of_the_owner(visitor: Visitor) -> None:
    """Acts and asks, the latest first, page by page; others have no such page, and no token stands on it."""
    visitor.sign_in("analyst").send("/datasets/survey/ask", sql="SELECT COUNT(*) FROM survey", amount="0.1")
    assert visitor.get("/access").status_code == 404
    visitor.sign_in("owner")
    for i in range(30):
        visitor.send("/people", name=f"p{i}", role="analyst")
    page = visitor.get("/access")
    assert "add_principal" in shown(page).words
    assert "page 1 of 2" in shown(page).words
    older = shown(visitor.get("/access?page=2")).words
    assert "ask" in older.split()
    assert "ε 0.1" in older
    assert not any(token in page.text for token in visitor.office.tokens.values())
    assert shown(visitor.get("/access?page=99")).words == older


def test_a_revoked_session_is_sent_to_the_door(visitor: Visitor) -> None:
    """A session whose token was revoked meanwhile is over at its next click."""
    visitor.sign_in("analyst")
    visitor.office.access.revoke("analyst")
    reply = visitor.get("/datasets")
    assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in")
    assert 'sulq=""' in reply.headers["set-cookie"]


def test_shares_are_set_and_shown(visitor: Visitor) -> None:
    """An owner sets a share and a reserve in per cent; a share that is none is refused."""
    visitor.sign_in("analyst").send("/datasets/survey/ask", sql=GROUPED, amount="0.5")
    visitor.sign_in("owner")
    assert visitor.send("/datasets/survey/budget", analyst="analyst", share="50", reserve="10").status_code == 303
    page = shown(visitor.get("/datasets/survey/budget"))
    assert "at most 50%, 10% kept for them" in page.words
    assert "spent ε 0.5" in page.words
    assert "25% of the budget" in " ".join(str(given.get("aria-label")) for _, given in page.tags)
    assert visitor.send("/datasets/survey/budget", analyst="analyst", share="150", reserve="0").status_code == 400
    assert visitor.sign_in("auditor").send("/datasets/survey/budget", analyst="a", share="1").status_code == 404


def test_the_auditor_checks_takes_along_and_reports(visitor: Visitor) -> None:
    """The ledger verifies, the transcript is a file, the report names the promise, the ledger and who spent."""
    visitor.sign_in("analyst").send("/datasets/survey/ask", sql=GROUPED, amount="0.5")
    visitor.sign_in("auditor")
    for piece in (True, False):
        assert "The ledger verifies" in shown(visitor.send("/datasets/survey/ledger", piece=piece)).words
    export = visitor.get("/datasets/survey/export")
    assert export.headers["content-disposition"].startswith("attachment")
    assert len(json.loads(export.content)["lines"]) == 1
    report = shown(visitor.get("/datasets/survey/audit")).words
    assert all(word in report for word in ("What is promised", "The ledger verifies", "analyst 1 25.0%", "The machine"))
    assert "After these answers, the odds that a given" in report  # what all answers so far mean for one person
    assert "moved by at most a factor of 2.72." in report  # add_remove at .5, two steps


def test_a_dataset_is_registered_step_by_step(visitor: Visitor, tmp_path: Path) -> None:
    """Each step asks for what is missing, keeps what was said, warns before the end, and ends in the API's own call."""
    visitor.sign_in("owner")
    (tmp_path / "people.parquet").write_bytes(b"")
    held = []
    visitor.office.hold = held.append
    visitor.office.look = lambda _: {
        "columns": [
            {"name": name, "type": kind, "suggests": suggested(kind, name)}
            for name, kind in (("who", "BIGINT"), (HOSTILE, "INTEGER"), ("city", "VARCHAR"), ("note", "BLOB"))
        ]
    }
    assert "people.parquet" in shown(visitor.get("/register")).words
    given: dict[str, str] = {}

    def step(path: str, **fields: str) -> tuple[int, str]:
        """Send a step with all the fields the page before carried."""
        reply = visitor.send(path, **(given | fields))
        page = shown(reply)
        given.clear()
        given.update(
            {
                str(attributes["name"]): str(attributes.get("value") or "")
                for tag, attributes in page.tags
                if tag == "input" and attributes.get("name") and attributes.get("type") not in ("radio", "checkbox")
            }
        )
        return reply.status_code, page.words

    status, words = step("/register/columns?look=yes", file="people.parquet", name="people")
    assert status == 200
    assert "BIGINT" in words
    assert HOSTILE in words
    kinds = {"k0": "skip", "k1": "int", "k2": "category", "k3": "skip"}
    status, words = step("/register/unit", **kinds, a1="0", b1="")
    assert status == 400
    assert "Give the lowest and the highest" in words
    assert "List the values" in words
    status, words = step("/register/unit", **kinds, a1="0", b1="110", v2="Haifa\nLod")
    assert "Whom must an answer hide?" in words
    status, words = step("/register/budget", whose="column", person="", rows="4", neighbors="add_remove")
    assert status == 400
    assert "Choose the column that says whose row it is" in words
    status, words = step("/register/budget", whose="column", person="who", rows="4", neighbors="add_remove")
    assert status == 200
    parts = {"basic_share": "0.3", "key_share": "0.2"}
    status, words = step("/register/review", way="both", epsilon="30", delta="0.1", size="1,000", **parts)
    assert "Part of δ for asks that are added one by one 0.3" in words
    assert "Part of δ for groups that are found in the data 0.2" in words
    assert "Delta is at least 1/size" in words
    assert "past epsilon 20" in words
    status, words = step("/register")
    assert "people is registered" in words
    (declared,) = held
    assert declared.unit == sulq.Unit("who", rows=4)
    assert declared.budget == sulq.EpsilonDelta(30, 0.1)
    assert (declared.basic_share, declared.key_share) == (Fraction(3, 10), Fraction(1, 5))
    assert declared.tables[0].size == 1000
    assert dict(declared.tables[0].facts.schema.columns) == {
        HOSTILE: sulq.Int(0, 110), "city": sulq.Category(["Haifa", "Lod"]),
    }  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Visitor]:
    """Data whose columns, categories and analysts' queries are written to break pages and spreadsheets."""
    frame = pa.table({HOSTILE: [1, 2, 3] * 100, "kind": list(CATEGORIES) * 75, "=1+1": [1.0] * 300})
    columns = {HOSTILE: sulq.Int(0, 9), "kind": sulq.Category(CATEGORIES), "=1+1": sulq.Real(0, 1)}
    data = sulq.connect(frame, table="survey", columns=columns, budget=sulq.Epsilon(10), synthetic=True)
    with Visitor(Office(tmp_path, survey=data)) as opened:
        yield opened.sign_in("analyst")


def test_hostile_names_stay_text_T82(hostile: Visitor) -> None:
    """Markup in column names, categories and queries is shown as it is written and never becomes markup."""
    sql = f'SELECT kind, SUM("{HOSTILE}") AS "{HOSTILE}" FROM survey GROUP BY kind'
    pages = [
        hostile.get("/datasets/survey"),
        hostile.get("/datasets/survey/ask", params={"sql": f"</textarea>{HOSTILE}"}),
        hostile.send("/datasets/survey/ask", sql=sql, amount="1"),
        hostile.send("/datasets/survey/ask", piece=True, sql=sql, amount="1"),
        hostile.send("/datasets/survey/price", piece=True, sql=sql, amount="1"),
        hostile.send("/datasets/survey/ask", piece=True, sql=f'SELECT "{HOSTILE}x" FROM survey', amount="1"),
        hostile.get("/datasets/survey/history"),
    ]
    for reply in pages:
        page = shown(reply)
        assert HOSTILE not in reply.text
        assert "<script>alert" not in reply.text
        assert not [tag for tag, given in page.tags if given.get("src") == "x"]
    assert CATEGORIES[0] in shown(pages[2]).words
    assert HOSTILE in shown(pages[0]).words


def test_no_cell_of_a_csv_is_a_formula_T82(hostile: Visitor) -> None:
    """Texts that a spreadsheet would run get an apostrophe before them; numbers stay numbers."""
    sql = 'SELECT kind, COUNT(*) AS "=1+1" FROM survey GROUP BY kind'
    page = shown(hostile.send("/datasets/survey/ask", piece=True, sql=sql, amount="0.001"))
    kept = next(given["value"] for _, given in page.tags if given.get("name") == "table")
    lines = hostile.send("/download/csv", table=kept).text
    assert "'=1+1" in lines.splitlines()[0]
    assert "'=HYPERLINK" in lines
    assert "'@SUM" in lines
    assert not re.search(r'(?:^|,|")[=@+]', lines, re.MULTILINE)


def test_a_failure_is_one_constant_page(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks inside the console, the page says the same and shows no trace of it (T31, T87)."""
    visitor.sign_in("analyst")

    def broken(*_: object) -> None:
        raise ValueError("canary-7781")

    monkeypatch.setattr("sulq.service.console.pages.dataset.words.guarantee", broken)
    reply = visitor.get("/datasets/survey")
    assert reply.status_code == 500
    assert "canary-7781" not in reply.text
    assert "Traceback" not in reply.text
    shown(reply)


def test_every_template_is_used() -> None:
    """No template lies about that no page shows (the walks above and here load each of them)."""
    named = {
        name
        for path in Path(console.__file__).parent.rglob("*.py")
        for name in re.findall(r'"(\w+\.html)"', path.read_text(encoding="utf-8"))
    }
    named |= {f"register_{step}.html" for step in ("file", "columns", "unit", "budget", "check", "review")}
    named |= {f"{name}.html" for name in ("learn_new", "release_new")}
    inner = {
        name
        for path in TEMPLATES.glob("*.html")
        for name in re.findall(r'(?:extends|include|import) "(\w+\.html)"', path.read_text(encoding="utf-8"))
    }
    assert {path.name for path in TEMPLATES.glob("*.html")} == named | inner
    for name in named:
        _PAGES.get_template(name)  # each of them parses


def test_the_console_knows_the_api_and_the_vocabulary_alone() -> None:
    """No module of the console imports the curator, the clerk or anything of the server but itself."""
    for path in Path(console.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                allowed = ("sulq.service.console", "sulq.service.web.limits", "sulq.service.web.scope", *VOCABULARY)
                assert not name.startswith("sulq") or name.startswith(allowed), f"{path.name}: {name}"
