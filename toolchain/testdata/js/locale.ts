// bindings:
import { equal, throws } from "./assert";

export default function (): void {
  const date = new Date(0);
  const refused = (action: () => unknown, part: string) => throws(action, { name: "TypeError", message: part });
  // What would be ignored is refused, and the error says what and what to do.
  for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"] as const) {
    refused(() => date[name]("de-DE"), `${name}: there is no Intl here, so the locale "de-DE" would be ignored`);
    refused(() => date[name](["de", "en"]), '"de", "en"');
    refused(() => date[name](undefined, { timeZone: "Asia/Tokyo" }), 'the option timeZone: "Asia/Tokyo" would be ignored; use toISOString()');
    refused(() => date[name]([], { month: "long" }), 'the option month: "long"');
    refused(() => date[name](undefined, Object.create({ hour12: false })), "the option hour12: false");
    refused(() => date[name](undefined, null as any), "not null");
    equal(date[name](), date[name](undefined, { timeZone: "UTC" }));
    equal(date[name](), date[name]([], { timeZone: undefined }));
    equal([date[name].name, date[name].length], [name, 0]);
  }
  refused(() => (1234.5).toLocaleString("en-US"), "use toFixed()");
  refused(() => (1234.5).toLocaleString(undefined, { style: "currency", currency: "EUR" }), "the option style");
  refused(() => 1n.toLocaleString("de"), "the locale");
  refused(() => ([1.5, date] as any).toLocaleString("de"), "the locale");
  refused(() => (new Float64Array(1) as any).toLocaleString("de"), "the locale");
  refused(() => "a".localeCompare("b", "de"), "compare keys");
  refused(() => "a10".localeCompare("a9", undefined, { numeric: true }), "the option numeric: true");
  refused(() => "a".localeCompare("b", undefined, { sensitivity: "base" }), "sensitivity");
  for (const language of ["tr", "tr-TR", "AZ", "lt"]) {
    refused(() => "i".toLocaleUpperCase(language), "use toUpperCase()");
    refused(() => "I".toLocaleLowerCase(["en", language]), "use toLowerCase()");
  }
  // Without them all is as before.
  equal((1234.5).toLocaleString(), "1234.5");
  equal(["b", "a", "B", "ä"].sort((a, b) => a.localeCompare(b)), ["B", "a", "b", "ä"]);
  equal("a\u0308".localeCompare("ä"), 0);
  equal("a".localeCompare("b", undefined, {}), -1);
  equal(["ä".toLocaleUpperCase(), "Ä".toLocaleLowerCase("de"), "ä".toLocaleUpperCase(["en", "de"])], ["Ä", "ä", "Ä"]);
  equal([1, 2].toLocaleString(), "1,2");
  equal(["a".localeCompare.name, "a".localeCompare.length, typeof Intl], ["localeCompare", 1, "undefined"]);
  throws(() => new ("a".localeCompare as any)(), { name: "TypeError" });
  throws(() => String.prototype.localeCompare.call(null as any, ""), { name: "TypeError" });
  throws(() => Date.prototype.toLocaleString.call({} as any), { name: "TypeError" });
}
