// The environment of an extension's code: the web APIs that npm code expects, and the SDK behind "stile".
import { AbortController, AbortSignal } from "./abort";
import { Blob, contentPart } from "./blob";
import { makeBuiltins } from "./builtins";
import { installClock } from "./clock";
import { structuredClone } from "./clone";
import { installConsole } from "./console";
import { TextDecoder, TextEncoder } from "./encoding";
import { CapabilityError, DeniedError } from "./errors";
import { CustomEvent, Event, EventTarget } from "./events";
import { extension } from "./extension";
import { install } from "./global";
import { Headers } from "./headers";
import { installLocale } from "./locale";
import { telling } from "./missing";
import { installRandom } from "./random";
import { installStacks } from "./stack";
import { clearTimer, queueMicrotask, setInterval, setTimeout } from "./timers";
import { installWeakRef } from "./weak";

install({
  AbortController,
  AbortSignal,
  Blob,
  CustomEvent,
  Event,
  EventTarget,
  Headers,
  TextDecoder,
  TextEncoder,
  clearInterval: clearTimer,
  clearTimeout: clearTimer,
  queueMicrotask,
  setInterval,
  setTimeout,
  structuredClone,
});

telling(Blob.prototype, "a Blob");

installStacks();
installLocale();
installWeakRef();
makeBuiltins();
installClock();
installConsole();
installRandom();

// The exports of the module "stile".
Object.defineProperty(globalThis, Symbol.for("stile.sdk"), {
  value: Object.freeze({ extension, CapabilityError, DeniedError, part: contentPart }),
});
