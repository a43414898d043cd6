// What makes the console smoother; every page works without it.
"use strict";

(() => {
  const digits = (value) => Number(value.toPrecision(2)).toString();

  // The slider moves a price along powers of ten; the field beside it is what is sent.
  function slider(slide) {
    const field = document.getElementById(slide.dataset.for);
    const low = Math.log(Number(slide.dataset.low));
    const span = Math.log(Number(slide.dataset.high)) - low;
    const most = Number(slide.max);
    const follow = () => {
      const value = Number(field.value);
      if (value > 0) slide.value = String(Math.round(((Math.log(value) - low) / span) * most));
      slide.setAttribute("aria-valuetext", field.value);
    };
    slide.hidden = false;
    slide.addEventListener("input", () => {
      const place = Number(slide.value);
      // The last stop is all that is left, whatever its digits.
      field.value = place >= most ? slide.dataset.high : digits(Math.exp(low + (span * place) / most));
      slide.setAttribute("aria-valuetext", field.value);
    });
    field.addEventListener("input", follow);
    follow();
  }

  // Line numbers beside the editor.
  function lines(shown) {
    const text = shown.parentElement.querySelector("textarea");
    const count = () => {
      const rows = text.value.split("\n").length;
      shown.textContent = Array.from({ length: rows }, (_, i) => i + 1).join("\n");
      text.rows = Math.min(Math.max(rows + 1, 5), 24);
    };
    text.addEventListener("input", count);
    text.addEventListener("scroll", () => { shown.scrollTop = text.scrollTop; });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        text.form.requestSubmit();
      }
    });
    count();
  }

  function copier(button) {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
      button.textContent = "Copied";
    });
  }

  document.querySelectorAll("input[type=range][data-for]").forEach(slider);
  document.querySelectorAll("[data-lines]").forEach(lines);
  document.querySelectorAll("[data-copy]").forEach(copier);

  // The answer is what was waited for: bring it into view, and let a reader start there.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "answer") {
      event.detail.target.focus({ preventScroll: true });
      event.detail.target.scrollIntoView({ block: "start" });
    }
  });
  document.body.addEventListener("htmx:sendError", (event) => {
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.textContent = "The curator cannot be reached. Check your connection, then try again: an ask that was charged is answered again for nothing.";
    event.detail.target.replaceChildren(notice);
  });
})();
