// Puts what is new into the page, without moving what a reader looks at. When nobody answers, the page says that it is old.
(() => {
  "use strict";
  const notice = document.createElement("p");
  notice.className = "stale";
  notice.setAttribute("role", "status");
  notice.hidden = true;
  document.querySelector("header.top").after(notice);
  let answered = Date.now();

  function put(fresh) {
    document.title = fresh.title;
    for (const part of ["header.top", "main", "footer"]) {
      const old = document.querySelector(part);
      const now = fresh.querySelector(part);
      if (old && now && old.innerHTML !== now.innerHTML) {
        const boxes = [...old.querySelectorAll(".table")].map((box) => box.scrollLeft);
        old.replaceChildren(...now.childNodes);
        old.querySelectorAll(".table").forEach((box, k) => { box.scrollLeft = boxes[k] ?? 0; });
      }
    }
  }

  async function look() {
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.statusText);
      put(new DOMParser().parseFromString(await answer.text(), "text/html"));
      answered = Date.now();
      notice.hidden = true;
    } catch {
      const seconds = Math.round((Date.now() - answered) / 1000);
      notice.textContent = `The site has not answered for ${seconds} s. What is shown is old: the site may have ended.`;
      notice.hidden = false;
    }
    setTimeout(look, SECONDS * 1000);
  }
  setTimeout(look, SECONDS * 1000);
})();
