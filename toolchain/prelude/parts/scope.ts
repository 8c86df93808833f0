// The names of the global object that are not globalThis, and what a browser says of itself.
import { define } from "../global";

define("self", globalThis);
define("global", globalThis);
define("navigator", Object.freeze({ userAgent: "Stile/1.0", hardwareConcurrency: 1, language: "en", languages: Object.freeze(["en"]), onLine: true, platform: "" }));
