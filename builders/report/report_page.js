"use strict";
(() => {
  const queries = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const list = byId("list"), detail = byId("detail"), search = byId("search"), split = byId("split"), mix = byId("mix");
  const marks = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#x27;": "'", "&#39;": "'" };
  const plain = (html) => html.replace(/<[^>]*>/g, "").replace(/&(?:lt|gt|amp|quot|#x27|#39);/g, (mark) => marks[mark]);
  let shown = [], at = -1, texts = null;

  const searchable = () => texts || (texts = queries.map((query) =>
    plain(query.id + " " + query.prompt + " " + query.candidates.map((one) => one.html).join(" ")).toLowerCase()));

  const matches = {
    "": () => true,
    mixed: (o) => o.includes("pass") && o.includes("fail"),
    pass: (o) => o.every((one) => one === "pass"),
    fail: (o) => o.every((one) => one === "fail"),
    abstain: (o) => o.includes("abstain"),
    error: (o) => o.includes("error"),
    pair: (o, query) => query.candidates.some((one) => one.sides.length),
    refused: (o, query) => query.candidates.some((one) => one.refused),
    disagree: (o, query) => {
      const top = (outcome) => Math.max(...query.candidates.filter((one) => one.outcome === outcome && one.score !== null).map((one) => one.score));
      return o.includes("pass") && top("fail") > top("pass");
    },
  };

  const element = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  function refresh() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const haystack = words.length ? searchable() : null;
    shown = queries.map((_, index) => index).filter((index) => {
      const query = queries[index];
      return (!split.value || query.split === split.value)
        && matches[mix.value](query.candidates.map((one) => one.outcome), query)
        && words.every((word) => haystack[index].includes(word));
    });
    byId("count").textContent = shown.length + " of " + queries.length + " queries";
    const rows = document.createDocumentFragment();
    shown.forEach((index, place) => {
      const query = queries[index], row = element("li");
      row.dataset.place = place;
      const title = element("span", "t");
      if (query.title) title.innerHTML = query.title; else title.textContent = query.id;
      const under = element("span", "m");
      query.candidates.forEach((one) => under.append(element("i", "dotmark cut " + one.outcome)));
      under.append(element("span", "id", query.split + " · " + query.id));
      row.title = query.id;
      row.append(title, under);
      rows.append(row);
    });
    list.replaceChildren(rows);
    show(shown.length ? 0 : -1);
  }

  // Scrolls the list, never the page: the page opens at its top and stays where the reader is.
  function within(row) {
    const above = row.offsetTop - list.offsetTop - list.scrollTop, below = above + row.offsetHeight - list.clientHeight;
    if (above < 0) list.scrollTop += above; else if (below > 0) list.scrollTop += below;
  }

  function step(by) {
    if (at + by < 0 || at + by >= shown.length) return;
    show(at + by);
    if (detail.getBoundingClientRect().top < 0) detail.scrollIntoView({ block: "start" });
  }

  function show(place) {
    at = place;
    list.querySelectorAll("li.on").forEach((row) => row.classList.remove("on"));
    if (place < 0) { detail.replaceChildren(element("p", "empty", "No query matches these filters.")); return; }
    const row = list.children[place];
    row.classList.add("on");
    within(row);
    const query = queries[shown[place]];
    const prompt = element("div", "prompt");
    prompt.innerHTML = query.prompt;
    const parts = [prompt];
    if (query.reference) {
      const reference = element("div", "reference");
      reference.innerHTML = query.reference;
      parts.push(reference);
    }
    const grid = element("div", "candidates");
    query.candidates.forEach((one) => grid.append(candidate(one)));
    parts.push(grid, element("p", "why", query.id));
    detail.replaceChildren(...parts);
  }

  function candidate(one) {
    const box = element("section", "candidate " + one.outcome), head = element("header");
    head.append(element("b", "", "#" + one.i), element("span", "badge " + one.outcome, one.outcome));
    one.sides.forEach((side) => head.append(element("span", "badge " + side, side)));
    if (one.score !== null) head.append(element("span", "", "reward " + one.score.toFixed(3).replace(/^-(0\.0+)$/, "$1")));
    if (one.refused) head.append(element("span", "badge refusal", "refusal"));
    if (one.tokens) head.append(element("span", "", one.tokens.toLocaleString("en") + " tokens"));
    if (one.stop !== "stop") head.append(element("span", "", one.stop));
    if (one.attempt) head.append(element("span", "", "attempt " + one.attempt));
    const why = element("p", "why");
    why.innerHTML = one.why + " <small>" + one.verifier + ", confidence " + one.confidence.toFixed(2) + "</small>";
    const answer = element("div", "answer");
    answer.innerHTML = one.html;
    box.append(head, why, answer);
    const parts = Object.entries(one.parts);
    if (parts.length) {
      const more = element("details");
      more.append(element("summary", "", "reward parts"), element("span", "", parts.map(([key, value]) => key + ": " + JSON.stringify(value)).join("\n")));
      box.append(more);
    }
    if (one.thinking) {
      const more = element("details"), body = element("div");
      body.innerHTML = one.thinking;
      more.append(element("summary", "", "thinking"), body);
      box.append(more);
    }
    return box;
  }

  [...new Set(queries.map((query) => query.split))].sort().forEach((name) => split.append(new Option(name, name)));
  split.prepend(new Option("all splits", "", true, true));
  list.addEventListener("click", (event) => { const row = event.target.closest("li"); if (row) step(Number(row.dataset.place) - at); });
  search.addEventListener("input", refresh);
  split.addEventListener("change", refresh);
  mix.addEventListener("change", refresh);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === search || event.target.tagName === "SELECT";
    if (event.key === "Escape") { search.value = ""; split.value = ""; mix.value = ""; search.blur(); refresh(); }
    else if (typing) return;
    else if (event.key === "/") { event.preventDefault(); search.focus(); }
    else if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); step(1); }
    else if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); step(-1); }
  });
  refresh();
})();
