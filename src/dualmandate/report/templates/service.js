// Asks the service and shows what it says. Nothing is computed here but places on a screen; text is never read as HTML.
const KEY = "dualmandate.key";
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const id = (name) => document.getElementById(name);
const page = document.body.dataset.page;
let me = null;

function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function drawn(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

class Refused extends Error {
  constructor(refusal, status) {
    super(refusal.what);
    this.refusal = refusal;
    this.status = status;
  }
}

async function api(method, path, body, headers = {}) {
  const sent = { method, headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}`, ...headers } };
  if (body !== undefined) {
    sent.headers["Content-Type"] = "application/json";
    sent.body = JSON.stringify(body);
  }
  let reply;
  try {
    reply = await fetch(path, sent);
  } catch {
    throw new Refused({ what: "the service does not answer", why: "it was stopped, or the connection was lost", instead: "try again; what was asked is paid for once" }, 0);
  }
  const said = await reply.json().catch(() => ({ what: "a reply that cannot be read", why: "", instead: "try again" }));
  if (!reply.ok) throw new Refused(said, reply.status);
  return said;
}

function refusalShown(error) {
  if (!(error instanceof Refused)) throw error;
  const { what, why, instead } = error.refusal;
  const said = make("div", { class: "trouble", role: "alert" }, sentence(what));
  if (why) said.append(make("small", {}, `Why: ${why}.`));
  if (instead) said.append(make("small", {}, `Instead: ${instead}.`));
  return said;
}

const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

// A part is empty, loading, in trouble, or there: each is shown.
async function fill(name, load) {
  const place = part(name);
  if (!place) return;
  place.setAttribute("aria-busy", "true");
  place.replaceChildren(make("p", { class: "loading" }, "Loading …"));
  try {
    place.replaceChildren(...[await load()].flat());
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return signOut();
    place.replaceChildren(refusalShown(error));
  } finally {
    place.setAttribute("aria-busy", "false");
  }
}

const nothing = (words) => make("p", { class: "quiet" }, ...words.split("`").map((each, at) => (at % 2 ? make("code", {}, each) : each)));

function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

// To two digits of its error, as the command line prints it.
function rounded(value, error) {
  if (typeof value !== "number" || !(error > 0)) return number(value);
  const places = Math.max(0, 1 - Math.floor(Math.log10(error)));
  return value.toLocaleString("en", { minimumFractionDigits: Math.min(places, 20), maximumFractionDigits: Math.min(places, 20) });
}

const SIGN = { epsilon: "ε", rho: "ρ" };
const amount = (currency, value) => `${SIGN[currency]} = ${number(typeof value === "number" ? value : value.amount)}`;

function table(caption, columns, rows) {
  const head = make("tr", { role: "row" }, ...columns.map(([heading, digits]) =>
    make("th", { role: "columnheader", scope: "col", class: digits ? "digits" : "text" }, heading)));
  const body = rows.map((cells) => make("tr", { role: "row" }, ...cells.map((cell, at) =>
    make("td", { role: "cell", "data-heading": columns[at][0], class: columns[at][1] ? "digits" : "text" }, cell ?? "–"))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", { role: "table", class: "cards" }, make("caption", {}, caption),
      make("thead", { role: "rowgroup" }, head), make("tbody", { role: "rowgroup" }, ...body)));
}

function meter(cap, left, currency, of, about) {
  const share = cap > 0 ? Math.max(0, Math.min(1, left / cap)) : 0;
  const bar = drawn("svg", { class: "meter", width: "100%", role: "img", "aria-label": `${Math.round(100 * share)} % is left` },
    drawn("rect", { width: `${100 * share}%`, height: "100%" }));
  return make("div", { class: "left" },
    make("p", {}, make("strong", {}, of), make("span", {}, `${amount(currency, left)} of ${number(cap)} left`)), bar,
    about ? make("small", { class: "quiet" }, about) : null);
}

const day = (time) => time.slice(0, 16).replace("T", " ");

// ---- who

function signOut() {
  if (sessionStorage.getItem(KEY)) fetch("/v1/session", { method: "DELETE", headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` } });
  sessionStorage.removeItem(KEY);
  id("content").hidden = true;
  id("who").hidden = true;
  id("sign-in").hidden = false;
  id("key").focus();
}

async function signIn() {
  try {
    me = await api("GET", "/v1/me");
    await api("POST", "/v1/session");
  } catch (error) {
    if (error.status === 401) {
      signOut();
      return trouble(new Refused({ what: "this key opens nothing here", why: "it was revoked, or is not whole", instead: "paste all of it, from dm_ to the end, or ask for a new one" }, 401));
    }
    return trouble(error);
  }
  id("trouble").hidden = true;
  id("sign-in").hidden = true;
  id("content").hidden = false;
  id("who-words").textContent = `${me.name}, ${me.role}`;
  id("who").hidden = false;
  await { home, ask, ledger }[page]();
}

function trouble(error) {
  id("trouble").replaceChildren(...refusalShown(error).childNodes);
  id("trouble").hidden = false;
}

// ---- what is left

async function budgets() {
  const { programs } = await api("GET", "/v1/programs");
  const accounts = [...new Set(programs.filter((each) => each.asked).map((each) => each.account))];
  const purposes = me.role === "analyst" ? [undefined, ...me.purposes] : [undefined];
  const shown = [];
  for (const account of accounts) {
    for (const purpose of purposes) {
      const budget = await api("GET", `/v1/budget/${encodeURIComponent(account)}${purpose ? `?purpose=${encodeURIComponent(purpose)}` : ""}`);
      const tightest = budget.parts.reduce((least, each) => (each.left.amount < least.left.amount ? each : least));
      const spent = `you have spent ${amount(budget.currency, budget.spent_by_user)}, everybody together ${amount(budget.currency, budget.spent)}; what holds is ${tightest.cap}`;
      shown.push(meter(me.role === "analyst" ? budget.remaining.amount + budget.spent_by_user.amount : budget.cap.amount, budget.remaining.amount, budget.currency, purpose ? `${account}, for ${purpose}` : account, me.role === "analyst" ? spent : `everybody together has spent ${amount(budget.currency, budget.spent)}`));
    }
  }
  return shown.length ? shown : nothing("No account can be asked from yet: somebody opens one with `dualmandate ledger open`.");
}

async function home() {
  await Promise.all([fill("waiting", waiting), me.role === "administrator" ? fill("accounts", () => nothing("A key of an administrator makes keys; what is left is for the others to see.")) : fill("accounts", budgets), fill("programs", programList), fill("published", published)]);
}

async function waiting() {
  if (me.role === "administrator") return keysShown();
  const { requests } = await api("GET", "/v1/requests");
  const open = requests.filter((each) => each.state === "open");
  if (me.role === "curator") return open.length ? open.map(deciding) : nothing("No request for more is open.");
  const own = me.role === "analyst";
  if (!requests.length) return own ? [nothing("Nothing."), await more()] : nothing("Nobody has asked for more.");
  const shown = table("Requests for more", [["who"], ["for"], ["asked", true], ["why"], ["what became of it"]], requests.map((each) =>
    [each.by, `${each.scope} ${each.name}`, number(each.amount.amount), each.reason, outcome(each)]));
  return own ? [shown, await more()] : shown;
}

// An analyst's request that a limit be raised.
async function more() {
  const { programs } = await api("GET", "/v1/programs");
  const account = make("select", {}, ...[...new Set(programs.map((each) => each.account))].map((name) => make("option", {}, name)));
  const wanted = make("input", { required: "", inputmode: "decimal", size: "8" });
  const reason = make("input", { required: "", maxlength: "200" });
  const said = make("div", { "aria-live": "polite" });
  const send = async (event) => {
    event.preventDefault();
    try {
      await api("POST", "/v1/requests", { account: account.value, amount: wanted.value.trim(), reason: reason.value.trim() });
      fill("waiting", waiting);
    } catch (error) {
      said.replaceChildren(refusalShown(error));
    }
  };
  return make("details", {}, make("summary", {}, "Ask for more than your limit"),
    make("form", { class: "deciding", onsubmit: send },
      make("label", {}, "Account", account), make("label", {}, "So much more", wanted), make("label", {}, "Because", reason),
      make("p", {}, make("button", { type: "submit", class: "primary" }, "Send it to a curator")), said));
}

function outcome(request) {
  if (request.state === "open") return "open";
  const { by, reason, granted } = request.decision;
  return granted ? `${number(granted.amount)} granted by ${by}: ${reason}` : `refused by ${by}: ${reason}`;
}

function deciding(request) {
  const grant = make("input", { inputmode: "decimal", value: request.amount.exact });
  const reason = make("input", { required: "", maxlength: "200" });
  const said = make("div", { "aria-live": "polite" });
  const decide = async (granted) => {
    if (!reason.reportValidity()) return;
    try {
      const decided = await api("POST", `/v1/requests/${request.number}/decision`, { grant: granted, reason: reason.value.trim() });
      said.replaceChildren(make("p", {}, `${sentence(outcome(decided))} It is entry ${decided.number}'s decision in the ledger.`));
      form.querySelectorAll("input, button").forEach((each) => { each.disabled = true; });
      fill("accounts", budgets);
    } catch (error) {
      said.replaceChildren(refusalShown(error));
    }
  };
  const form = make("form", { class: "deciding", "aria-label": `Request ${request.number}`, onsubmit: (event) => { event.preventDefault(); decide(grant.value.trim()); } },
    make("p", {}, make("strong", {}, `${request.by} asks for ${number(request.amount.amount)} more`), ` for the ${request.scope} ${request.name}, in ${request.account}, ${day(request.requested_at)}`),
    make("p", {}, `“${request.reason}”`),
    make("label", {}, "Grant", grant), make("label", {}, "Because", reason),
    make("p", {}, make("button", { type: "submit", class: "primary" }, "Grant it"), " ", make("button", { type: "button", onclick: () => decide(null) }, "Refuse")), said);
  return form;
}

async function keysShown() {
  const { keys } = await api("GET", "/v1/keys");
  return table("Keys", [["whose"], ["role"], ["group"], ["for"], ["made"], ["key"]], keys.map((each) =>
    [each.name, each.role, each.group, each.purposes.join(", ") || null, `${each.made_at.slice(0, 10)} by ${each.made_by}`, each.revoked_at ? `${each.identifier}, revoked` : each.identifier]));
}

async function programList() {
  const { programs, refused } = await api("GET", "/v1/programs");
  const shown = programs.map((each) => make("p", {}, make("strong", {}, each.asked && me.role === "analyst" ? make("a", { href: `/ask?program=${encodeURIComponent(each.name)}` }, each.name) : each.name),
    ` protects each ${each.unit}, by ${each.neighbors}; account ${each.account}. `, make("span", { class: "quiet" }, each.asked ? "Questions to its records are answered." : `Not asked: ${each.why_not}.`)));
  shown.push(...refused.map((each) => make("div", { class: "trouble" }, `${each.file} cannot be used: ${each.refusal.what}.`,
    make("small", {}, `${each.refusal.where.line ? `Line ${each.refusal.where.line}. ` : ""}Why: ${each.refusal.why}. Instead: ${each.refusal.instead}.`))));
  return shown.length ? shown : nothing("The project has no program yet: `dualmandate init` begins one.");
}

async function published() {
  const { plans, releases, audits } = await api("GET", "/v1/project");
  const name = (each) => (each.link ? make("a", { href: `/v1/files/${each.link}`, target: "_blank", rel: "noopener" }, each.name) : each.name);
  const file = (each) => make("a", { href: `/v1/files/${each.file}`, target: "_blank", rel: "noopener" }, "JSON");
  const shown = [];
  if (plans.length) shown.push(table("Plans", [["plan"], ["loss"], ["approval"], ["for machines"]], plans.map((each) => [name(each), each.loss, each.state, file(each)])));
  if (releases.length) shown.push(table("Releases", [["release"], ["loss"], ["account"], ["for machines"]], releases.map((each) => [name(each), each.loss, each.account, file(each)])));
  if (audits.length) shown.push(table("Public audits", [["audit of"], ["findings", true], ["for machines"]], audits.map((each) => [name(each), String(each.count), file(each)])));
  return shown.length ? shown : nothing("Nothing is planned or published yet: `dualmandate plan` begins.");
}

// ---- asking

const EXAMPLE = "SELECT COUNT(*) FROM records";
const terms = () => document.querySelector('input[name="terms"]:checked').value;
const steps = (low, high, at) => Number((low * (high / low) ** (at / 60)).toPrecision(2));
let declared = null;
let asking = 0;

const spend = () => steps(0.001, 10, id("spend-slider").valueAsNumber);
const within = () => steps(0.1, 50, id("within-slider").valueAsNumber);

async function ask() {
  if (me.role !== "analyst" && me.role !== "curator") {
    id("ask").hidden = true;
    trouble(new Refused({ what: `a key of an ${me.role} asks nothing`, why: "who sees everything spends nothing", instead: "sign in with an analyst's key" }, 403));
  }
  const chosen = new URLSearchParams(location.search).get("program");
  const { programs } = await api("GET", "/v1/programs");
  id("program").replaceChildren(...programs.map((each) => make("option", { value: each.name }, each.asked ? each.name : `${each.name} (prices only)`)));
  if (programs.some((each) => each.name === chosen)) id("program").value = chosen;
  if (!programs.length) {
    id("ask").hidden = true;
    return trouble(new Refused({ what: "there is no program to ask", why: "the project has none that can be used", instead: "begin one with dualmandate init" }, 404));
  }
  if (me.purposes.length) {
    id("purpose").replaceChildren(make("option", { value: "" }, "no purpose"), ...me.purposes.map((each) => make("option", { value: each }, each)));
    id("purpose").hidden = id("purpose-label").hidden = false;
  }
  if (!id("query").value) id("query").value = EXAMPLE;
  for (const name of ["query", "spend-slider", "within-slider", "records"]) id(name).addEventListener("input", soon);
  document.querySelectorAll('input[name="terms"]').forEach((each) => each.addEventListener("change", soon));
  id("program").addEventListener("change", chooseProgram);
  id("ask").addEventListener("submit", (event) => { event.preventDefault(); askNow(); });
  await Promise.all([chooseProgram(), fill("budget", me.role === "analyst" ? budgets : () => nothing("A curator prices questions, and asks none.")), fill("history", history)]);
}

async function chooseProgram() {
  await fill("declared", async () => {
    declared = await api("GET", `/v1/programs/${encodeURIComponent(id("program").value)}`);
    return declared.attributes.map((each) => make("div", {},
      make("strong", {}, each.name), make("span", { class: "quiet" }, ` ${each.kind}, ${each.size.toLocaleString("en")}${each.groupings.length ? `; grouped by ${each.groupings.join(", ")}` : ""}`),
      make("div", { class: "chips" }, ...each.levels.slice(0, 24).map((level) => make("button", { type: "button", onclick: () => insert(each, level) }, level)),
        each.size > 24 ? make("span", { class: "quiet" }, "…") : null)));
  });
  soon();
}

function insert(attribute, level) {
  const query = id("query");
  const literal = attribute.kind === "numbers" ? level : `'${level.replaceAll("'", "''")}'`;
  const joint = /\bWHERE\b/i.test(query.value) ? " AND" : " WHERE";
  const [before, grouping] = query.value.split(/(?=\s+GROUP\s+BY\b)/i);
  query.value = `${before}${joint} ${attribute.name} = ${literal}${grouping ?? ""}`;
  query.focus();
  soon();
}

let timer = 0;
function soon() {
  for (const each of document.querySelectorAll("[data-terms]")) each.hidden = each.dataset.terms !== terms();
  id("spend-words").textContent = `ε = ${number(spend())}`;
  id("spend-slider").setAttribute("aria-valuetext", `epsilon ${spend()}`);
  id("within-words").textContent = `± ${number(within())} % of the population`;
  id("within-slider").setAttribute("aria-valuetext", `plus or minus ${within()} percent of the population`);
  const mean = /\bAVG\s*\(/i.test(id("query").value);
  id("records").hidden = id("records-label").hidden = !mean;
  id("submit").disabled = true;
  clearTimeout(timer);
  timer = setTimeout(price, 250);
}

function stated() {
  const said = { query: id("query").value.trim() };
  if (terms() === "spend") said.spend = String(spend());
  else if (/\b(AVG|SUM)\s*\(/i.test(said.query)) Object.assign(said, { within: `${within()}%`, of: String(declared.population_size) });
  else said.within = `${within()}%`;
  if (id("purpose").value) said.purpose = id("purpose").value;
  if (!id("records").hidden) said.records = id("records").value.trim() || String(declared.population_size);
  return said;
}

async function price() {
  const mine = ++asking;
  const place = id("price");
  try {
    const { purpose, ...asked } = stated();
    const told = await api("POST", `/v1/programs/${encodeURIComponent(id("program").value)}/prices`, asked);
    if (mine !== asking) return;
    const enough = told.remaining && told.charge.amount <= told.remaining.amount;
    const fact = (name, value, more) => make("div", {}, make("dt", {}, name), make("dd", {}, value), more ? make("dd", { class: "small" }, more) : null);
    const facts = [
      fact("costs", amount(told.charge.currency, told.charge), "nothing is spent before you ask"),
      fact(`± with ${number(100 * told.probability)} %`, number(told.half_width, 3), told.numbers > 1 ? `each of ${told.numbers} numbers; ± ${number(told.together, 3)} for all at once` : `in ${told.unit}`),
      fact("left for it", told.remaining ? amount(told.charge.currency, told.remaining) : "–", told.remaining ? (enough ? null : "not enough for this") : "nobody has opened its account"),
    ];
    place.replaceChildren(make("dl", { class: "numbers" }, ...facts));
    id("submit").textContent = `Ask, and spend ${amount(told.charge.currency, told.charge)}`;
    id("submit").disabled = !enough || me.role !== "analyst";
  } catch (error) {
    if (mine === asking) place.replaceChildren(refusalShown(error));
  }
}

async function askNow() {
  if (id("submit").disabled) return;
  id("submit").disabled = true;
  id("answer-section").hidden = false;
  await fill("answer", async () => {
    const body = stated();
    const told = await api("POST", `/v1/programs/${encodeURIComponent(id("program").value)}/answers`, body, { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) });
    return answerShown(told);
  });
  id("answer-title").focus();
  fill("budget", budgets);
  fill("history", history);
  soon();
}

function answerShown(told) {
  const spent = told.spent ? `It cost ${amount(told.spent.currency, told.spent)}` : "It was answered before, and cost nothing";
  const numbers = told.rows.every((each) => [each.value, each.lower, each.upper].every((cell) => typeof cell === "number"));
  const columns = [...told.columns.map((each) => [each]), [told.statistic === "count" ? "records" : `${told.statistic} of ${told.of}`, true], ["standard error", true], [`from (${number(100 * told.probability)} %)`, true], ["to", true]];
  const rows = told.rows.slice(0, 1000).map((each) => [...each.labels, rounded(each.value, each.standard_error), rounded(each.standard_error, each.standard_error), rounded(each.lower ?? "unbounded", each.standard_error), rounded(each.upper ?? "unbounded", each.standard_error)]);
  return [
    make("p", { class: "lead" }, headline(told)),
    numbers && told.rows.length > 1 && told.rows.length <= 40 ? intervals(told) : null,
    table(`Answer ${told.release}, with intervals`, columns, rows),
    make("p", { class: "quiet" }, `${spent}; it is ${told.release} in the ledger, measured at ${amount(told.loss.currency, told.loss)}. The same question again is free, for everybody. Numbers are unbiased: a count may come out below 0.`),
  ].filter((each) => each !== null);
}

function headline(told) {
  if (told.rows.length !== 1) return `${told.rows.length} numbers, each with an interval that holds with ${number(100 * told.probability)} %.`;
  const [row] = told.rows;
  const shown = (cell) => (cell === null ? "any number" : rounded(cell, row.standard_error));
  return `${shown(row.value)}, and between ${shown(row.lower)} and ${shown(row.upper)} with ${number(100 * told.probability)} %.`;
}

// A line for each interval, a point for each number; the table beside it says the same.
function intervals(told) {
  const { rows } = told;
  const wide = Math.min(document.getElementById("main").clientWidth - 32, 720);
  const height = 24;
  const labels = rows.map((each) => each.labels.join(", "));
  const room = Math.min(wide * 0.4, 16 + 7.2 * Math.max(...labels.map((each) => each.length)));
  const [low, high] = [Math.min(0, ...rows.map((each) => each.lower)), Math.max(...rows.map((each) => each.upper))];
  const x = (value) => room + ((wide - room - 12) * (value - low)) / (high - low || 1);
  const picture = drawn("svg", { class: "intervals", width: wide, height: height * (rows.length + 1), role: "img", "aria-label": `Intervals of ${rows.length} numbers; the table below says the same` });
  for (const value of [...new Set([low, 0, high])]) {
    picture.append(drawn("line", { class: "axis", x1: x(value), x2: x(value), y1: 0, y2: height * rows.length }));
    const text = drawn("text", { class: "quiet", x: x(value), y: height * rows.length + 15, "text-anchor": value === low ? "start" : value === high ? "end" : "middle" });
    text.textContent = number(value, 3);
    if (value !== 0 || x(0) - x(low) > 50 || low === 0) picture.append(text);
  }
  rows.forEach((each, at) => {
    const y = height * (at + 0.5);
    const text = drawn("text", { x: 0, y: y + 4 });
    const most = Math.floor((room - 8) / 7.2);
    text.textContent = labels[at].length > most ? `${labels[at].slice(0, most - 1)}…` : labels[at];
    picture.append(text, drawn("line", { x1: x(each.lower), x2: x(each.upper), y1: y, y2: y }), drawn("circle", { cx: x(each.value), cy: y, r: 4.5 }));
  });
  return make("figure", {}, picture);
}

async function history() {
  const { asked } = await api("GET", "/v1/history");
  if (!asked.length) return nothing("Nothing yet.");
  const rows = asked.slice(0, 200).map((each) => [each.release, day(each.reserved_at), each.user, question(each), number(each.cost.amount), each.state === "settled" ? "answered" : each.state]);
  return table(asked.length > 200 ? `The newest 200 of ${asked.length}` : `${asked.length} in all`, [["name"], ["when (UTC)"], ["who"], ["what"], ["cost", true], ["state"]], rows);
}

function question(each) {
  const asked = each.question;
  if (!asked) return each.program ?? "a release";
  const by = asked.by.length ? ` by ${asked.by.map((name) => (Array.isArray(name) ? name[0] : name)).join(", ")}` : "";
  const where = Object.keys(asked.where).length ? `, where ${Object.keys(asked.where).join(", ")} …` : "";
  return `${asked.statistic}${asked.of ? ` of ${asked.of}` : ""}${by}${where} (${each.program})`;
}

// ---- ledger

async function ledger() {
  const overseer = me.role === "curator" || me.role === "auditor";
  await Promise.all([
    fill("forecasts", overseer ? forecasts : me.role === "analyst" ? budgets : () => nothing("A key of an administrator sees no account.")),
    fill("history", me.role === "administrator" ? () => nothing("A key of an administrator sees no history.") : history),
    fill("events", overseer ? entries : () => nothing("The entries are for curators and auditors.")),
  ]);
}

async function forecasts() {
  const { accounts } = await api("GET", "/v1/accounts");
  if (!accounts.length) return nothing("No account is open yet.");
  return Promise.all(accounts.map(async (each) => {
    const told = await api("GET", `/v1/accounts/${encodeURIComponent(each.name)}/forecast`);
    return meter(each.cap.amount, each.remaining.amount, each.currency, `${each.name} (each ${each.unit})`, sentence(told.words));
  }));
}

async function entries() {
  const { events } = await api("GET", "/v1/ledger/events?most=10000");
  if (!events.length) return nothing("The ledger has no entry yet.");
  const rows = events.slice(-300).reverse().map((each) => [String(each.sequence), day(each.recorded_at), each.kind, each.by, each.release ?? each.account, each.amount ? number(each.amount.amount) : null]);
  return table(events.length > 300 ? `The newest 300 of ${events.length.toLocaleString("en")}` : `${events.length} entries, each chained to the one before`, [["entry", true], ["when (UTC)"], ["what"], ["who"], ["of"], ["amount", true]], rows);
}

id("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, id("key").value.trim());
  id("key").value = "";
  signIn();
});
id("sign-out").addEventListener("click", signOut);
if (sessionStorage.getItem(KEY)) signIn();
else signOut();
