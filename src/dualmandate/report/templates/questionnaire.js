// Shows the tasks of one block in an order of chance and writes down what was chosen. Nothing leaves this page by itself.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const part = (name) => document.getElementById(name);
  const NAMES = "ABCDEFGHIJ";

  // A whole number below `size`, each as likely as the others.
  function chance(size) {
    const box = new Uint32Array(1);
    const most = Math.floor(2 ** 32 / size) * size;
    do crypto.getRandomValues(box); while (box[0] >= most);
    return box[0] % size;
  }
  function shuffled(list) {
    const copy = [...list];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = chance(i + 1);
      [copy[i], copy[j]] = [copy[j], copy[i]];
    }
    return copy;
  }

  const block = String(chance(data.blocks) + 1);
  const respondent = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const tasks = shuffled(data.tasks.filter((task) => task.block === block))
    .map((task) => ({ ...task, alternatives: shuffled(task.alternatives) }));
  const chosen = tasks.map(() => null);
  let at = 0;
  let handedOver = false;

  function show(name) {
    for (const section of ["start", "asking", "end"]) part(section).hidden = section !== name;
    document.querySelector("main").className = name;
    scrollTo(0, 0);
  }

  function text(tag, words, className) {
    const element = document.createElement(tag);
    element.textContent = words;
    if (className) element.className = className;
    return element;
  }

  // "16 in 1,000" stays on one line.
  const together = (words) => words.replace(/(\d) in (\d)/g, "$1\u00a0in\u00a0$2");

  function ask() {
    const cards = tasks[at].alternatives.map((alternative, place) => {
      const card = document.createElement("label");
      card.className = "alternative";
      const radio = document.createElement("input");
      Object.assign(radio, { type: "radio", name: "choice", value: String(place), checked: chosen[at] === place });
      const name = text("strong", ` Plan ${NAMES[place]}`);
      name.prepend(radio);
      card.append(name);
      card.style.setProperty("--rows", String(data.headings.length + 1));
      data.headings.forEach((heading, i) => {
        const row = document.createElement("span");
        row.append(text("span", heading, "heading"), text("span", together(alternative.words[i]), "level"));
        card.append(row);
      });
      return card;
    });
    part("alternatives").replaceChildren(...cards);
    part("progress").value = at / tasks.length;
    part("progress-words").textContent = `Question ${at + 1} of ${tasks.length}`;
    part("task-missing").textContent = "";
    part("back").hidden = at === 0;
    part("next").textContent = at + 1 === tasks.length ? "Finish" : "Next";
    show("asking");
    part("question").focus({ preventScroll: true });
  }

  const cell = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  function answers() {
    const rows = tasks.flatMap((task, i) => task.alternatives.map((alternative, place) => [
      respondent, task.block, task.task, alternative.label, String(place + 1), ...alternative.recorded,
      chosen[i] === place ? "1" : "0",
    ]));
    return [data.columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }

  function finish() {
    part("answers").value = answers();
    part("said").textContent = "";
    show("end");
    part("thanks").focus({ preventScroll: true });
  }

  part("begin").addEventListener("click", () => {
    if (!part("agree").checked) {
      part("start-missing").textContent = "Please agree first, or close this page.";
      part("agree").focus();
      return;
    }
    ask();
  });
  part("task").addEventListener("submit", (event) => {
    event.preventDefault();
    const picked = document.querySelector("input[name=choice]:checked");
    if (!picked) {
      part("task-missing").textContent = "Please choose one of the plans, even if it is a close call.";
      return;
    }
    chosen[at] = Number(picked.value);
    handedOver = false;
    if (at + 1 < tasks.length) { at += 1; ask(); } else finish();
  });
  part("back").addEventListener("click", () => { at -= 1; ask(); });
  part("again").addEventListener("click", ask);
  part("download").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([answers()], { type: "text/csv" }));
    link.download = `answers-${respondent.slice(0, 8)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    handedOver = true;
    part("said").textContent = `Saved as ${link.download}. Please hand this file over.`;
  });
  part("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(answers());
    } catch {
      part("answers").select();
      document.execCommand("copy");
    }
    handedOver = true;
    part("said").textContent = "Copied. Please paste it where you were asked to.";
  });
  addEventListener("beforeunload", (event) => {
    if (chosen.some((choice) => choice !== null) && !handedOver) event.preventDefault();
  });
  show("start");
})();
