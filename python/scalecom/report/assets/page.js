"use strict";

(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const darkens = matchMedia("(prefers-color-scheme: dark)");
  // Where a finger scrolls the page, a plot must not take the gesture.
  const touches = matchMedia("(pointer: coarse)").matches;
  const clear = "rgba(0, 0, 0, 0)";

  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);

  /** "@ink", or "@ink/0.2" for one that is seen through, as the present theme has it. */
  function colour(name) {
    const [variable, alpha] = name.slice(1).split("/");
    probe.style.color = `var(--${variable})`;
    const rgb = getComputedStyle(probe).color;
    return alpha ? rgb.replace("rgb(", "rgba(").replace(")", `, ${alpha})`) : rgb;
  }

  /** A copy with all colours put in. */
  function coloured(value, key = "") {
    if (Array.isArray(value)) return value.map((one) => coloured(one, key));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, coloured(inner, name)]));
    }
    const named = typeof value === "string" && value.startsWith("@") && key.endsWith("color");
    return named ? colour(value) : value;
  }

  function axis(own) {
    return {
      automargin: true,
      zeroline: false,
      gridcolor: colour("@line"),
      linecolor: colour("@line"),
      fixedrange: touches,
      ...own,
      title: { standoff: 10, font: { size: 13 }, ...own.title },
    };
  }

  function layout(view) {
    const own = coloured(view.layout);
    return {
      margin: { l: 8, r: 14, t: 8, b: 8 },
      showlegend: false,
      hovermode: "closest",
      dragmode: touches ? false : "zoom",
      paper_bgcolor: clear,
      plot_bgcolor: clear,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("@muted") },
      hoverlabel: {
        bgcolor: colour("@surface"),
        bordercolor: colour("@line"),
        font: { color: colour("@ink"), size: 13 },
        namelength: -1,
      },
      ...own,
      xaxis: axis(own.xaxis),
      yaxis: axis(own.yaxis),
    };
  }

  const settings = { displayModeBar: false, responsive: true, showTips: false };
  const states = figures.map(() => ({ view: 0, hidden: new Set() }));

  function draw(plot) {
    const { view: number, hidden } = states[plot.dataset.figure];
    const view = figures[plot.dataset.figure].views[number];
    const traces = coloured(view.data).map((trace) => ({ ...trace, visible: !hidden.has(trace.legendgroup) }));
    return Plotly.react(plot, traces, layout(view), settings);
  }

  const plots = [...document.querySelectorAll(".plot")];
  const drawAll = () => Promise.all(plots.map(draw));

  function offerViews(plot) {
    const state = states[plot.dataset.figure];
    const chooser = plot.closest("figure").querySelector(".views");
    if (!chooser) return;
    const show = (number) => {
      state.view = number;
      draw(plot);
    };
    if (chooser.tagName === "SELECT") {
      chooser.addEventListener("change", () => show(Number(chooser.value)));
      return;
    }
    const buttons = [...chooser.children];
    buttons.forEach((button, number) => button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      show(number);
    }));
  }

  const dashes = { dash: "6 4", dot: "2 3", dashdot: "6 3 2 3", longdash: "10 4", longdashdot: "10 3 2 3" };

  /** What a trace looks like, in its own colour in either theme. */
  function sample({ colour: name, dash }) {
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const isBlock = dash === "block";
    drawing.setAttribute("width", isBlock ? "12" : "24");
    drawing.setAttribute("height", "12");
    drawing.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS(drawing.namespaceURI, "path");
    stroke.setAttribute("d", isBlock ? "M0 6H12" : "M0 6H24");
    stroke.setAttribute("stroke-width", isBlock ? "12" : "2.5");
    stroke.setAttribute("stroke-dasharray", dashes[dash] ?? "none");
    stroke.style.stroke = `var(--${name.slice(1)})`;
    drawing.append(stroke);
    return drawing;
  }

  function offerLegend(plot) {
    const { hidden } = states[plot.dataset.figure];
    const list = plot.closest("figure").querySelector(".legend");
    for (const entry of figures[plot.dataset.figure].legend) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(sample(entry), entry.label);
      button.addEventListener("click", () => {
        if (!hidden.delete(entry.group)) hidden.add(entry.group);
        button.setAttribute("aria-pressed", String(!hidden.has(entry.group)));
        draw(plot);
      });
      const item = document.createElement("li");
      item.append(button);
      list.append(item);
    }
  }

  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : darkens.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    drawAll();
  });
  darkens.addEventListener("change", drawAll);

  plots.forEach(offerViews);
  plots.forEach(offerLegend);
  drawAll().then(() => { root.dataset.drawn = String(plots.length); });
})();
