// Event and EventTarget.
import { dictionary, required } from "./dictionary";
import { report } from "./failure";

interface Init {
  bubbles?: boolean;
  cancelable?: boolean;
  composed?: boolean;
}
type Listener = ((event: Event) => void) | { handleEvent(event: Event): void };
interface Options {
  once?: boolean;
  signal?: EventTarget & { aborted: boolean };
  capture?: boolean;
}
interface Entry {
  listener: Listener;
  once: boolean;
  capture: boolean;
  removed: boolean;
}

export class Event {
  readonly type: string;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly timeStamp = 0;
  readonly isTrusted = false;
  #target: EventTarget | null = null;
  #dispatching = false;
  #prevented = false;
  #stopped = false;

  constructor(type: string, options?: Init | null) {
    required(arguments.length, 1, "Event");
    const init = dictionary(options, "Event");
    this.type = `${type}`;
    this.bubbles = !!init.bubbles;
    this.cancelable = !!init.cancelable;
    this.composed = !!init.composed;
  }
  get target(): EventTarget | null {
    return this.#target;
  }
  get currentTarget(): EventTarget | null {
    return this.#dispatching ? this.#target : null;
  }
  get defaultPrevented(): boolean {
    return this.#prevented;
  }
  preventDefault(): void {
    if (this.cancelable) this.#prevented = true;
  }
  // There is one target and no tree, so stopPropagation has no effect.
  stopPropagation(): void {}
  stopImmediatePropagation(): void {
    this.#stopped = true;
  }

  static dispatch(event: Event, target: EventTarget, entries: Entry[]): boolean {
    if (event.#dispatching) throw new DOMException("the event is being dispatched already", "InvalidStateError");
    event.#target = target;
    event.#dispatching = true;
    for (const entry of entries) {
      if (event.#stopped) break;
      if (entry.removed) continue;
      if (entry.once) target.removeEventListener(event.type, entry.listener, entry);
      try {
        if (typeof entry.listener === "function") entry.listener.call(target, event);
        else entry.listener.handleEvent(event);
      } catch (error) {
        report(error);
      }
    }
    event.#dispatching = false;
    event.#stopped = false;
    return !event.#prevented;
  }
}

export class CustomEvent extends Event {
  readonly detail: unknown;
  constructor(type: string, options?: (Init & { detail?: unknown }) | null) {
    required(arguments.length, 1, "CustomEvent");
    super(type, options);
    const { detail = null } = options ?? {};
    this.detail = detail;
  }
}

export class EventTarget {
  #listeners = new Map<string, Entry[]>();

  addEventListener(type: string, listener: Listener | null, options?: boolean | Options | null): void {
    const { once = false, signal, capture = false } = dictionary(typeof options === "boolean" ? { capture: options } : options, "addEventListener");
    if (signal !== undefined && !(signal instanceof EventTarget && "aborted" in signal))
      throw new TypeError("addEventListener: signal is an AbortSignal");
    if (!listener || signal?.aborted) return;
    const entries = this.#listeners.get(type) ?? [];
    if (entries.some((entry) => entry.listener === listener && entry.capture === !!capture)) return;
    this.#listeners.set(type, [...entries, { listener, once: !!once, capture: !!capture, removed: false }]);
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener, { capture }), { once: true });
  }
  removeEventListener(type: string, listener: Listener | null, options?: boolean | { capture?: boolean } | null): void {
    const capture = typeof options === "boolean" ? options : !!dictionary(options, "removeEventListener").capture;
    const entries = this.#listeners.get(type);
    const found = entries?.find((entry) => entry.listener === listener && entry.capture === capture);
    if (!entries || !found) return;
    found.removed = true;
    this.#listeners.set(type, entries.filter((entry) => entry !== found));
  }
  dispatchEvent(event: Event): boolean {
    return Event.dispatch(event, this, this.#listeners.get(event.type) ?? []);
  }
}
