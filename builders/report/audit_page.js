(() => {
  const data = embedded("data");
  const key = "bestofn-audit:" + data.run + ":" + data.settings.sample + ":" + data.settings.seed;
  const marks = {};
  let shown = [], at = 0;

  Object.assign(marks, stored(key));

  const block = (title, html) => [element("h2", "", title), withHtml("div", "", html)];

  function refresh() {
    const choice = byId("shown").value;
    shown = data.items.filter((item) => choice === "all" || (choice === "open" ? !marks[item.id] : item.disagrees));
    at = 0;
    show();
  }

  function show() {
    const item = shown[at], box = byId("item");
    byId("count").textContent = Object.keys(marks).length + " of " + data.items.length + " answers are marked";
    ["right", "wrong", "undecided"].forEach((name) => byId(name).classList.toggle("on", Boolean(item) && marks[item.id] === name));
    if (!item) { box.replaceChildren(element("p", "empty", "No answer is left here. Save the marks.")); return; }
    const parts = [...block("Question (" + item.split + ")", item.prompt)];
    if (item.reference) parts.push(...block("Reference", item.reference));
    parts.push(...block("Answer", item.answer));
    if (marks[item.id]) {
      const verdict = withHtml("p", "why", item.why + " <small>" + item.verifier + "</small>");
      parts.push(element("h2", "", "Verdict of the run"), element("span", "badge " + item.outcome, item.outcome), verdict);
      Object.entries(item.opinions).forEach(([source, opinion]) => parts.push(element("p", "why", source + ": " + opinion)));
    }
    box.replaceChildren(...parts, element("p", "why", item.id));
  }

  function step(by) {
    if (at + by >= 0 && at + by < shown.length) { at += by; show(); }
  }

  function mark(opinion) {
    if (!shown[at]) return;
    marks[shown[at].id] = opinion;
    store(key, marks);
    show();
  }

  byId("save").addEventListener("click", () => {
    const text = JSON.stringify({ run: data.run, ...data.settings, marks }, null, 1);
    download("marks.json", "application/json", text);
  });
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  ["right", "wrong", "undecided"].forEach((name) => byId(name).addEventListener("click", () => mark(name)));
  byId("shown").addEventListener("change", refresh);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const actions = { r: () => mark("right"), w: () => mark("wrong"), u: () => mark("undecided"), j: () => step(1), k: () => step(-1) };
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  });
  refresh();
})();
