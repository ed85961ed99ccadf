// What paper cannot do: values under the pointer, lines to be hidden and shown, commands to be copied.
// Without this script the page says the same.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function button(className, text, action) {
    const made = element("button", className, text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  }

  function shape(tag, className, parent) {
    const made = document.createElementNS(SVG, tag);
    made.setAttribute("class", className);
    parent.append(made);
    return made;
  }

  function place(made, attributes) {
    for (const name in attributes) made.setAttribute(name, attributes[name]);
  }

  // Numbers as in the rest of the report: few digits, a true minus sign, powers of ten.
  function pretty(text) {
    const raised = (power) => [...power].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
    return text
      .replace(/e\+?(-?\d+)$/, (_, power) => "×10" + raised(power))
      .replace(/^-/, "−");
  }

  function plain(value) {
    const size = Math.abs(value);
    if (value === 0 || (size >= 1e-3 && size < 1e6)) return pretty(String(Number(value.toPrecision(5))));
    return pretty(value.toExponential(3));
  }

  // The mean with as many decimals as its deviation needs for two digits.
  function withSpread(mean, low, high) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return plain(mean);
    const [below, above] = [mean - low, high - mean];
    const spread = (above + below) / 2;
    const isSymmetric = Math.abs(above - below) <= 1e-3 * spread + 1e-6 * Math.abs(mean);
    if (!isSymmetric) return `${plain(mean)} (${plain(low)} to ${plain(high)})`;
    const decimals = spread > 0 ? 1 - Math.floor(Math.log10(spread)) : 99;
    if (decimals > 6 || Math.abs(mean) >= 1e6) return `${plain(mean)} ± ${plain(spread)}`;
    const digits = Math.max(0, decimals);
    return pretty(mean.toFixed(digits)) + " ± " + spread.toFixed(digits);
  }

  function isOn(axis, value) {
    return value !== null && value !== undefined && (!axis.log || value > 0);
  }

  function share(axis, value) {
    const at = axis.log ? Math.log10(value) : value;
    return Math.min(1, Math.max(0, (at - axis.low) / (axis.high - axis.low)));
  }

  // One panel: the crosshair, the dots on it, and the box with the values.
  function Plot(svg, panel, isVisible) {
    const box = svg.parentElement;
    const [left, top, width, height] = panel.frame;
    const toX = (value) => left + share(panel.x, value) * width;
    const toY = (value) => top + (1 - share(panel.y, value)) * height;
    const layer = shape("g", "pointer", svg);
    const tip = element("div", "tip");
    tip.setAttribute("role", "status");
    tip.hidden = true;
    box.append(tip);
    let current = null;

    const shown = () => panel.series.filter((series) => isVisible(series.key));
    const stops = () => {
      const found = new Set();
      for (const { x, y } of shown()) {
        x.forEach((value, k) => isOn(panel.x, value) && isOn(panel.y, y[k]) && found.add(value));
      }
      return [...found].sort((a, b) => a - b);
    };

    function hide() {
      current = null;
      tip.hidden = true;
      layer.replaceChildren();
    }

    function show(x) {
      current = x;
      layer.replaceChildren();
      const px = toX(x);
      place(shape("line", "crosshair", layer), { x1: px, x2: px, y1: top, y2: top + height });
      const rows = [element("b", "", `${panel.xLabel || "x"}: ${plain(x)}`)];
      for (const series of shown()) {
        const k = series.x.indexOf(x);
        if (k < 0 || !isOn(panel.y, series.y[k])) continue;
        place(shape("circle", "dot " + series.class, layer), { cx: px, cy: toY(series.y[k]), r: 4 });
        const row = element("div", series.class);
        const words = withSpread(series.y[k], series.low?.[k], series.high?.[k]);
        row.append(element("i"), element("span", "", series.label), element("span", "value", words));
        rows.push(row);
      }
      tip.replaceChildren(...rows);
      tip.hidden = false;
      // Beside the crosshair where there is more room, and never outside the window.
      const plot = svg.getBoundingClientRect();
      const at = (px / svg.viewBox.baseVal.width) * plot.width;
      const wanted = at < plot.width / 2 ? at + 12 : at - tip.offsetWidth - 12;
      const limit = document.documentElement.clientWidth - tip.offsetWidth - 4;
      tip.style.left = Math.max(4, Math.min(limit, plot.left + wanted)) - plot.left + "px";
      tip.style.top = (top / svg.viewBox.baseVal.height) * plot.height + 4 + "px";
    }

    function follow(event) {
      const plot = svg.getBoundingClientRect();
      const px = ((event.clientX - plot.left) / plot.width) * svg.viewBox.baseVal.width;
      const all = stops();
      if (px < left - 12 || px > left + width + 12 || all.length === 0) return hide();
      const nearest = all.reduce((a, b) => (Math.abs(toX(b) - px) < Math.abs(toX(a) - px) ? b : a));
      if (nearest !== current) show(nearest);
    }

    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.tabIndex = 0;
    svg.addEventListener("keydown", (event) => {
      const all = stops();
      if (event.key === "Escape") return hide();
      const here = all.indexOf(current);
      const targets = { ArrowLeft: here < 0 ? all.length - 1 : here - 1, ArrowRight: here + 1, Home: 0, End: all.length - 1 };
      if (!(event.key in targets) || all.length === 0) return;
      event.preventDefault();
      show(all[Math.min(all.length - 1, Math.max(0, targets[event.key]))]);
    });

    return () => {
      panel.series.forEach((series, index) => {
        for (const group of svg.querySelectorAll(`[data-series="${index}"]`)) {
          group.classList.toggle("off", !isVisible(series.key));
        }
      });
      hide();
    };
  }

  // One figure: its legends switch lines in all panels that show them.
  function chart(figure) {
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const hidden = new Set();
    const isVisible = (key) => key === null || !hidden.has(key);
    const plots = [...figure.querySelectorAll("svg.plot")];
    const redraws = plots.map((svg, index) => Plot(svg, data.panels[index], isVisible));
    const toggles = new Map();
    const all = button("small", "Show all", () => {
      hidden.clear();
      update();
    });

    function update() {
      for (const [key, toggle] of toggles) toggle.setAttribute("aria-pressed", String(!hidden.has(key)));
      all.disabled = hidden.size === 0;
      redraws.forEach((redraw) => redraw());
    }

    function addLegend(legend) {
      const items = [...legend.querySelectorAll("li")];
      const keys = items.map((item) => Number(item.dataset.key));
      items.forEach((item, index) => {
        const key = keys[index];
        const isolate = () => {
          keys.forEach((other) => (other === key ? hidden.delete(other) : hidden.add(other)));
          update();
        };
        const toggle = button("key", undefined, () => {
          if (!hidden.delete(key)) hidden.add(key);
          update();
        });
        toggle.title = "Click to hide or show, double-click to show this line only";
        toggle.addEventListener("dblclick", isolate);
        toggle.append(...item.childNodes);
        toggles.set(key, toggle);
        item.append(toggle);
        if (items.length > 1) {
          const only = button("only", "only", isolate);
          only.setAttribute("aria-label", "Show only " + toggle.textContent);
          item.append(only);
        }
      });
    }

    figure.querySelectorAll(".legend").forEach(addLegend);
    if (toggles.size > 1) figure.querySelector(".tools").prepend(all);
    update();
  }

  function addCopy(command) {
    const code = command.querySelector("code");
    const copy = button("small", "Copy", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        copy.textContent = "Copied";
      } catch {
        // Where scripts may not write to the clipboard, the reader can with the text selected.
        getSelection().selectAllChildren(code);
        copy.textContent = "Selected";
      }
    });
    copy.setAttribute("aria-live", "polite");
    copy.addEventListener("blur", () => (copy.textContent = "Copy"));
    command.classList.add("copies");
    command.append(copy);
  }

  document.querySelectorAll("figure.chart").forEach(chart);
  document.querySelectorAll(".command").forEach(addCopy);
})();
