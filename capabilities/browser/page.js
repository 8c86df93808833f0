// What the browser runs in a page to read it and to act on it: in a world of its own, whose globals the page cannot change. The page's elements
// can still lie, so nothing here is trusted. Every function is bounded.
(() => {
  const visits = 200_000; // nodes that one function looks at
  const get = (proto, name) => {
    const read = Object.getOwnPropertyDescriptor(proto, name).get;
    return (of) => read.call(of);
  };
  // Names of form fields hide the properties of a form and of the document.
  const nodes = get(Node.prototype, "childNodes");
  const own = get(Node.prototype, "textContent");
  const parent = get(Node.prototype, "parentElement");
  const tagOf = (e) => get(Element.prototype, "tagName")(e).toLowerCase();
  const attribute = (e, name) => Element.prototype.getAttribute.call(e, name);
  const body = () => Document.prototype.querySelector.call(document, "body") ?? document.documentElement;
  const box = (e) => Element.prototype.getBoundingClientRect.call(e);
  const squeeze = (text) => text.replace(/[\s\u00a0]+/g, " ");
  const short = (text, n = 60) => {
    text = squeeze(text.slice(0, 20 * n)).trim();
    return text.length > n ? text.slice(0, n) + "…" : text;
  };
  const all = (selector) => {
    try {
      return Document.prototype.querySelectorAll.call(document, selector);
    } catch {
      throw { invalid: `${short(selector, 200)} is not a CSS selector; write one like "#id", "button.save" or "input[name=q]"` };
    }
  };
  const visible = (e) => {
    const { width, height } = box(e);
    return width > 0 && height > 0 && getComputedStyle(e).visibility !== "hidden";
  };

  // A line about an element, which begins with a selector that finds it or its like.
  const about = (e) => {
    const id = attribute(e, "id"), name = attribute(e, "name"), kind = attribute(e, "type"), hint = attribute(e, "placeholder") ?? attribute(e, "aria-label");
    const classes = (attribute(e, "class") ?? "").split(/\s+/).filter((c) => /^[\w-]+$/.test(c)).slice(0, 2);
    let line = tagOf(e);
    if (id && /^[A-Za-z][\w-]*$/.test(id)) line += `#${id}`;
    else if (name && name.length < 60) line += `[name=${JSON.stringify(name)}]`;
    else if (classes.length) line += `.${classes.join(".")}`;
    else if (kind) line += `[type=${JSON.stringify(short(kind, 20))}]`;
    const label = short(/^(input|select|textarea)$/.test(line.match(/^\w+/)?.[0] ?? "") ? hint ?? "" : own(e) || hint || "", 40);
    return line + (label && ` (${JSON.stringify(label)})`);
  };

  // What the page has instead of an element that is not there.
  const near = (selector) => {
    const words = [...new Set(selector.toLowerCase().match(/[a-z0-9_-]{2,}/g) ?? [])].slice(0, 12);
    const found = [];
    let seen = 0;
    for (const e of all("a[href],button,input,select,textarea,[role],[onclick],[id],h1,h2,h3,main,form,table")) {
      if (++seen > 3000) break;
      if (!visible(e)) continue;
      const text = [tagOf(e), attribute(e, "id"), attribute(e, "class"), attribute(e, "name"), attribute(e, "type"), attribute(e, "placeholder"), attribute(e, "aria-label"), own(e).slice(0, 80)]
        .join(" ").slice(0, 500).toLowerCase();
      const acts = /^(a|button|input|select|textarea)$/.test(tagOf(e)) ? 0.5 : 0;
      const score = words.reduce((sum, w) => sum + (text.includes(w) ? 2 : w.split(/[-_]/).some((p) => p.length > 2 && text.includes(p)) ? 1 : 0), 0);
      found.push({ e, score: score + acts, at: seen });
    }
    found.sort((a, b) => b.score - a.score || a.at - b.at);
    return [...new Set(found.slice(0, 12).map(({ e }) => about(e)))].slice(0, 5);
  };
  const find = (selector) => {
    const found = all(selector);
    for (let i = 0; i < Math.min(found.length, 1000); i++) if (visible(found[i])) return found[i];
    if (found.length) return found[0];
    throw { missing: short(selector, 200), near: near(selector) };
  };
  const inView = (e) => Element.prototype.scrollIntoView.call(e, { block: "center", inline: "center", behavior: "instant" });
  const bounded = (text, most) => {
    if (text.length > most) throw { large: text.length };
    return text;
  };

  // Markdown of what can be seen. It is cut where it reaches its bound, and says so.
  const hidden = new Set("script style noscript template head iframe object embed canvas audio video svg math datalist".split(" "));
  const inside = "p,div,ul,ol,table,pre,h1,h2,h3,h4,section,article,blockquote";
  const over = {};
  const markdown = (root, most) => {
    const out = [];
    let left = visits, size = 0;
    const visit = () => {
      if (--left < 0) throw over;
    };
    const shown = (e) => {
      visit();
      if (hidden.has(tagOf(e)) || attribute(e, "aria-hidden") === "true") return false;
      const style = getComputedStyle(e);
      return style.display !== "none" && style.visibility !== "hidden";
    };
    const has = (e, selector) => Element.prototype.querySelector.call(e, selector) !== null;
    const isBlock = (e) => !/^(inline|contents)/.test(getComputedStyle(e).display) || has(e, inside);
    const url = (e, name) => {
      const value = attribute(e, name);
      if (!value || /^\s*(javascript|data|blob):/i.test(value)) return "";
      try {
        return new URL(value, document.baseURI).href.replace(/[()\s]/g, (c) => `%${c.charCodeAt(0).toString(16)}`).slice(0, 2048);
      } catch {
        return "";
      }
    };
    const plain = (text) => squeeze(text).replace(/[\\`*_[\]<]/g, "\\$&");
    const field = (e) => {
      const kind = attribute(e, "type") ?? "text";
      if (kind === "hidden") return "";
      if (kind === "checkbox" || kind === "radio") return e.checked === true ? "[x] " : "[ ] ";
      const name = attribute(e, "aria-label") ?? attribute(e, "placeholder") ?? attribute(e, "name") ?? kind;
      return `[${plain(short(name))}: ${kind === "password" ? "" : plain(short(`${e.value ?? ""}`))}]`;
    };
    const inlineOf = (e) => {
      const tag = tagOf(e);
      if (tag === "br") return "\n";
      if (tag === "img") {
        const alt = short(attribute(e, "alt") ?? "", 200);
        return alt && `![${plain(alt)}](${url(e, "src")})`;
      }
      if (tag === "input" || tag === "textarea" || tag === "select") return field(e);
      if (/^(code|kbd|samp)$/.test(tag)) return "`" + squeeze(own(e)).replaceAll("`", "'") + "`";
      const text = inline(e), trimmed = text.trim();
      if (!trimmed) return text;
      const wrap = (a, b) => text.slice(0, text.indexOf(trimmed)) + a + trimmed + b + text.slice(text.indexOf(trimmed) + trimmed.length);
      if (tag === "a") return url(e, "href") ? wrap("[", `](${url(e, "href")})`) : text;
      if (tag === "strong" || tag === "b") return wrap("**", "**");
      if (tag === "em" || tag === "i") return wrap("*", "*");
      if (tag === "button") return `[${trimmed}]`;
      return isBlock(e) ? ` ${text} ` : text;
    };
    const inline = (e) => {
      let text = "";
      for (const child of nodes(e)) {
        visit();
        if (child.nodeType === 3) text += plain(own(child));
        else if (child.nodeType === 1 && shown(child)) text += inlineOf(child);
        if (text.length > most) throw over;
      }
      return text;
    };
    const oneLine = (text) => squeeze(text).trim();
    // Where blocks go: the beginning of the next block's first line and of the other lines, and what separates it from the one before.
    const emit = (text, to) => {
      const block = to.first + text.replaceAll("\n", `\n${to.rest}`);
      const whole = out.length ? to.apart + block : block;
      if ((size += whole.length) > most) {
        out.push(whole.slice(0, Math.max(0, most - size + whole.length)));
        throw over;
      }
      out.push(whole);
      to.first = to.rest;
      to.apart = to.tight ? "\n" : `\n${to.rest}\n`;
    };
    const list = (e, to) => {
      let n = Number(attribute(e, "start") ?? 1) || 1;
      let apart = to.apart;
      for (const child of nodes(e)) {
        if (child.nodeType !== 1 || !shown(child)) continue;
        const mark = tagOf(e) === "ol" ? `${n++}. ` : "- ";
        const item = { first: to.first + mark, rest: to.rest + " ".repeat(mark.length), apart, tight: true };
        const before = out.length;
        blocks(child, item);
        if (out.length > before) to.first = to.rest, apart = "\n";
      }
    };
    const table = (e, to) => {
      const rows = [];
      for (const row of Element.prototype.querySelectorAll.call(e, "tr")) {
        visit();
        if (Element.prototype.closest.call(row, "table") !== e) continue;
        const cells = [...nodes(row)].filter((c) => c.nodeType === 1 && /^t[hd]$/.test(tagOf(c)) && shown(c));
        rows.push(cells.slice(0, 50).map((c) => oneLine(inline(c)).replaceAll("|", "\\|")));
        if (rows.length === 2000) break;
      }
      const width = rows.reduce((most, r) => Math.max(most, r.length), 0);
      if (!width) return;
      const line = (cells) => `| ${Array.from({ length: width }, (_, i) => cells[i] ?? "").join(" | ")} |`;
      emit([line(rows[0]), line(Array(width).fill("---")), ...rows.slice(1).map(line)].join("\n"), to);
    };
    const blocks = (e, to, depth = 0) => {
      if (depth > 300) return;
      let line = "";
      const flush = () => {
        const text = line.split("\n").map(oneLine).filter(Boolean).join("  \n");
        line = "";
        if (text) emit(text, to);
      };
      for (const child of nodes(e)) {
        visit();
        if (child.nodeType === 3) line += plain(own(child));
        if (line.length > most) throw (flush(), over);
        if (child.nodeType !== 1 || !shown(child)) continue;
        const tag = tagOf(child), heading = /^h([1-6])$/.exec(tag);
        if (!heading && !/^(pre|hr|ul|ol|menu|table|blockquote)$/.test(tag) && (!isBlock(child) || (/^(a|button|code|input|select|textarea|img|br|label)$/.test(tag) && !has(child, inside)))) {
          const text = inlineOf(child);
          line += /^inline$/.test(getComputedStyle(child).display) ? text : ` ${text} `;
          continue;
        }
        flush();
        if (heading) {
          const text = oneLine(inline(child));
          if (text) emit(`${"#".repeat(Number(heading[1]))} ${text}`, to);
        } else if (tag === "pre") {
          const code = own(child).slice(0, most).replace(/\n+$/, "");
          const longest = (code.match(/`+/g) ?? []).reduce((n, run) => Math.max(n, run.length), 2);
          const named = Element.prototype.querySelector.call(child, "code") ?? child;
          const language = /\blanguage-([\w+-]{1,20})/.exec(attribute(named, "class") ?? "")?.[1] ?? "";
          const fence = "`".repeat(Math.min(longest + 1, 100));
          emit(`${fence}${language}\n${code}\n${fence}`, to);
        } else if (tag === "hr") emit("---", to);
        else if (/^(ul|ol|menu)$/.test(tag)) list(child, to), (to.apart = to.tight ? "\n" : `\n${to.rest}\n`);
        else if (tag === "table" && has(child, "tr")) table(child, to);
        else if (tag === "blockquote") {
          blocks(child, { first: `${to.first}> `, rest: `${to.rest}> `, apart: to.apart, tight: false }, depth + 1);
          to.first = to.rest;
        } else blocks(child, to, depth + 1);
      }
      flush();
    };
    try {
      blocks(root, { first: "", rest: "", apart: "\n\n", tight: false });
    } catch (thrown) {
      if (thrown !== over) throw thrown;
      out.push("\n\n[The page continues. Read the rest with text(selector).]");
    }
    return out.join("");
  };

  // Sets the value of a field, as a person would.
  const fill = (selector, text) => {
    const e = find(selector), tag = tagOf(e);
    const set = (proto, name, value) => Object.getOwnPropertyDescriptor(proto, name).set.call(e, value);
    const happen = (...names) => names.forEach((name) => EventTarget.prototype.dispatchEvent.call(e, new Event(name, { bubbles: true, composed: true })));
    inView(e);
    HTMLElement.prototype.focus.call(e);
    if (tag === "input" && e.type === "file") throw { invalid: "files cannot be uploaded" };
    if (tag === "input" && /^(checkbox|radio)$/.test(e.type)) {
      if (!/^(true|false)$/.test(text)) throw { invalid: `${about(e)} is a ${e.type}: fill it with "true" or "false"` };
      if (e.checked !== (text === "true")) HTMLElement.prototype.click.call(e);
      return;
    }
    if (tag === "select") {
      const options = [...Element.prototype.querySelectorAll.call(e, "option")].slice(0, 10_000);
      const chosen = options.find((o) => o.value === text) ?? options.find((o) => squeeze(o.text).trim() === text.trim());
      if (!chosen) throw { invalid: `${about(e)} has no such option; it has ${options.slice(0, 10).map((o) => JSON.stringify(short(o.text, 40))).join(", ")}` };
      set(HTMLSelectElement.prototype, "value", chosen.value);
    } else if (tag === "input") set(HTMLInputElement.prototype, "value", text);
    else if (tag === "textarea") set(HTMLTextAreaElement.prototype, "value", text);
    else if (e.isContentEditable) set(Node.prototype, "textContent", text);
    else throw { invalid: `${about(e)} is no field; near it: ${near("input textarea select").join(", ")}` };
    happen("input", "change");
  };

  // Where to click. A link that would open a window opens in this one, as there is only one.
  const point = (selector) => {
    const e = find(selector);
    if (!visible(e)) throw { invalid: `${about(e)} is there, but it cannot be seen` };
    for (let up = e, i = 0; up && i < 50; up = parent(up), i++) if (/^(a|form|area)$/.test(tagOf(up))) Element.prototype.removeAttribute.call(up, "target");
    inView(e);
    const { left, top, width, height } = box(e);
    const x = left + width / 2, y = top + height / 2;
    const there = Document.prototype.elementFromPoint.call(document, x, y);
    const covered = there && there !== e && !Node.prototype.contains.call(e, there) && !Node.prototype.contains.call(there, e);
    return { x, y, covered: covered ? about(there) : "" };
  };

  const state = () => {
    const navigation = performance.getEntriesByType("navigation")[0];
    return { url: location.href.slice(0, 8192), title: short(document.title, 1000), status: navigation?.responseStatus ?? 0, ready: document.readyState };
  };
  const has = ({ selector, text }) => {
    if (selector != null) return [...all(selector)].slice(0, 1000).some(visible);
    return squeeze(body().innerText).includes(squeeze(text).trim());
  };
  const size = (selector) => {
    if (selector == null) return { x: 0, y: 0, width: document.documentElement.scrollWidth, height: Math.max(document.documentElement.scrollHeight, body().scrollHeight) };
    const e = find(selector);
    inView(e);
    const { left, top, width, height } = box(e);
    return { x: left + scrollX, y: top + scrollY, width, height };
  };
  const api = {
    state, fill, point, has, size,
    near: (selector) => near(selector),
    text: (selector, most) => bounded(selector == null ? body().innerText : find(selector).innerText ?? own(find(selector)), most),
    html: (selector, most) => bounded(selector == null ? document.documentElement.outerHTML : find(selector).outerHTML, most),
    markdown: (most) => markdown(body(), most),
  };
  return (name, args) => {
    try {
      return JSON.stringify({ value: api[name](...args) });
    } catch (thrown) {
      if (thrown && typeof thrown === "object" && !(thrown instanceof Error)) return JSON.stringify({ problem: thrown });
      return JSON.stringify({ problem: { invalid: `the page cannot be read: ${short(`${thrown}`, 200)}` } });
    }
  };
})()
