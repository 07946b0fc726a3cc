// Looks up a choice made beforehand, moves the circle to its place and says it in words. Nothing is computed here.
(() => {
  const data = JSON.parse(document.getElementById("what-if-data").textContent);
  const part = (name) => document.getElementById(`what-if-${name}`);
  const [privacy, accuracy] = [part("privacy"), part("accuracy")];
  const pictures = [...document.querySelectorAll(".what-if svg")].map((picture) => ({
    here: picture.querySelector(".here_marks path"),
    places: picture.querySelectorAll(".places_marks path"),
  }));

  function show() {
    const [i, j] = [privacy.valueAsNumber, accuracy.valueAsNumber];
    const choice = data.choices[i - j + data.privacy.length - 1];
    for (const [slider, name, words] of [[privacy, "privacy", data.privacy[i]], [accuracy, "accuracy", data.accuracy[j]]]) {
      part(`${name}-words`).textContent = words;
      slider.setAttribute("aria-valuetext", words);
    }
    part("answer").textContent = choice.words + (choice.place === null ? "" : ` ${data.cost[i][j]}`);
    for (const { here, places } of pictures) {
      here.style.visibility = choice.place === null ? "hidden" : "visible";
      if (choice.place !== null) here.setAttribute("transform", places[choice.place].getAttribute("transform"));
    }
  }

  privacy.addEventListener("input", show);
  accuracy.addEventListener("input", show);
  part("reset").addEventListener("click", () => {
    privacy.value = accuracy.value = String((data.privacy.length - 1) / 2);
    show();
  });
  part("controls").hidden = false;
  show();

  // On paper every table is open.
  const tables = [...document.querySelectorAll("details")];
  let open = [];
  addEventListener("beforeprint", () => { open = tables.map((table) => table.open); tables.forEach((table) => { table.open = true; }); });
  addEventListener("afterprint", () => tables.forEach((table, i) => { table.open = open[i]; }));
})();
