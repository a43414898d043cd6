"""The named asks over a remote curator: what `connect` returns for a URL."""

from __future__ import annotations

from types import TracebackType
from typing import Final, NoReturn, Self, cast

import httpx

from sulq.api.named_asks import NamedAsks
from sulq.api.transcript import TranscriptList
from sulq.client.http import PATIENCE_SECONDS, Http
from sulq.client.oracle import RemoteOracle
from sulq.errors import AccessDenied, SulqError

PAGE_LINES: Final = 500


class Client(NamedAsks):
    """What `sulq.connect("https://...", token=...)` gives: the same asks, answered by a remote curator.

    SQL is compiled here; the curator sees questions of the language, and its
    answers come back whole, with their error bars and receipts.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        insecure: bool = False,
        patience: float = PATIENCE_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = Http(url, token, insecure=insecure, patience=patience, transport=transport)
        self._closed = False
        oracle = RemoteOracle(self._http)
        self._waits = oracle.waits
        super().__init__(oracle)

    def transcript(self) -> TranscriptList:
        """The questions and answers this token may see, in order: dictionaries, printed as a table."""
        lines = TranscriptList()
        while True:
            after = cast("int", lines[-1]["seq"]) if lines else 0
            page = self._http.get(self._http.at("transcript"), after=after, limit=PAGE_LINES)["lines"]
            lines.extend(cast("list[dict[str, object]]", page))
            if len(cast("list[object]", page)) < PAGE_LINES:
                return lines

    def receipt(self, seq: int) -> dict[str, object]:
        """The receipt of one debit, to keep and to check offline."""
        return cast("dict[str, object]", self._http.get(self._http.at("receipts", seq))["receipt"])

    def shares(self) -> dict[str, object]:
        """Budget, spent, remaining and the shares this token may see, as the service tells them."""
        return self._http.get(self._http.at("budget"))

    def cancel(self) -> None:
        """End all calls under way, from another thread: they raise `cancelled`, and say what they were charged.

        What was sent is answered and kept by the curator all the same.
        """
        self._waits.cancel(wait=0.0)

    def close(self) -> None:
        """End calls under way as `cancel` does, and the conversation."""
        if not self._closed:
            self._closed = True
            self._waits.cancel(wait=0.0)
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise AccessDenied("private-value", "A client holds a token and cannot be pickled.")

    def __repr__(self) -> str:
        where = f"{self._http.base}/{self._http.dataset}"
        if self._closed:
            return f"<sulq client of {where}: closed>"
        try:
            return f"<sulq client of {where}: {self.facts}>"
        except SulqError as error:
            return f"<sulq client of {where}: {error.code}>"
