// The sugar of stile:capability/browser.
import { wait } from "../../toolchain/prelude/bindings";
import { type Blob, hostBlob } from "../../toolchain/prelude/blob";
import { dictionary } from "../../toolchain/prelude/dictionary";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import { toJson } from "../../toolchain/prelude/json";
import { telling } from "../../toolchain/prelude/missing";
import type { Raw } from "../../toolchain/prelude/session";

interface Page {
  url: string;
  title: string;
  status: number;
}
interface Shot {
  fullPage?: boolean;
  selector?: string;
}

/** Awaits an action, and returns its outcome. */
async function outcome(begin: () => Raw): Promise<any> {
  const pending: Raw = ask(begin);
  try {
    await wait(pending.subscribe());
    return ask(() => pending.take()).val;
  } finally {
    pending.drop();
  }
}

/** An outcome that is a page: data, which says so if a method of it is called. */
const page = async (begin: () => Raw): Promise<Page> => telling(await outcome(begin), "a page is data, and env.browser acts on it; it");

const blob = (raw: Raw | undefined): Blob | undefined => raw && hostBlob(raw);

export default function browser(session: Raw) {
  return {
    open: async (url: string | URL): Promise<Page> => page(() => session.open(`${url}`)),
    click: async (selector: string): Promise<Page> => page(() => session.click(selector)),
    fill: async (selector: string, text: string | number | boolean): Promise<void> => outcome(() => session.fill(selector, `${text}`)),
    press: async (key: string): Promise<Page> => page(() => session.press(key)),
    waitFor: async (what: string | { text?: string; url?: string }): Promise<Page> => page(() => session.waitFor(awaited(what))),
    text: async (selector?: string): Promise<string> => outcome(() => session.text(selector)),
    html: async (selector?: string): Promise<string> => outcome(() => session.html(selector)),
    markdown: async (): Promise<string> => outcome(() => session.markdown()),
    evaluate: async (code: string | Function, ...args: unknown[]): Promise<unknown> => {
      const json: string = await outcome(() => session.evaluate(`${code}`, toJson(args, "arguments")));
      return json === "" ? undefined : JSON.parse(json);
    },
    screenshot: async (options?: Shot): Promise<Blob | undefined> => {
      const { fullPage = false, selector } = dictionary(options, "screenshot") as Shot;
      return blob(await outcome(() => session.screenshot(fullPage, selector)));
    },
    pdf: async (): Promise<Blob | undefined> => blob(await outcome(() => session.pdf())),
    get downloads(): Promise<Blob | undefined> {
      return outcome(() => session.download()).then(blob);
    },
    close: async (): Promise<void> => outcome(() => session.leave()),
  };
}

function awaited(what: string | { text?: string; url?: string }) {
  if (typeof what === "string") return { tag: "selector", val: what };
  const { text, url } = what ?? {};
  if ((text === undefined) === (url === undefined)) {
    throw new CapabilityError("invalid", "waitFor takes a selector, { text } or { url }");
  }
  return text === undefined ? { tag: "url", val: `${url}` } : { tag: "text", val: `${text}` };
}
